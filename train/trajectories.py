"""Oracle trajectories as tokens, with a weight for each, in batches."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from agent.protocols import protocol_named
from agent.world.v1 import make_world
from train.pieces import Piece, trajectory
from train.recipe import SftRecipe, Weights
from train.tokenizer import EOS, encode_all, token_id


@dataclass(frozen=True)
class Example:
    """One trajectory: ids, and the weight of each in the loss (0: not learned)."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    policy: tuple[bool, ...]
    """Whether the policy writes the token."""


def to_example(pieces: Sequence[Piece], tokenizer: Tokenizer, weights: Weights) -> Example:
    """Encode each piece on its own, as engines do; the end mark is the policy's last token."""
    ids: list[int] = []
    weighed: list[float] = []
    policy: list[bool] = []
    answer = token_id(tokenizer, "<answer>")
    for piece, encoded in zip(pieces, encode_all(tokenizer, [piece.text for piece in pieces]), strict=True):
        ids.extend(encoded)
        policy.extend([piece.by == "policy"] * len(encoded))
        if piece.by != "policy":
            weighed.extend([weights.environment] * len(encoded))
        elif answer in encoded:
            at = encoded.index(answer)
            weighed.extend([weights.policy] * at + [weights.answer] * (len(encoded) - at))
        else:
            weighed.extend([weights.policy] * len(encoded))
    return Example((*ids, token_id(tokenizer, EOS)), (*weighed, weights.policy), (*policy, True))


def world_examples(recipe: SftRecipe, tokenizer: Tokenizer, *, world_seed: int, progress: float) -> Iterator[Example]:
    """Every trajectory of one world, each question under one protocol drawn at random."""
    data = recipe.data
    mix = recipe.stage(progress).mix
    world = make_world(world_seed, split=data.split, people=data.people, questions=data.questions_per_world, mix=mix)
    rng = random.Random(f"protocols {recipe.seed} {world_seed}")
    protocols = [protocol_named(name) for name in recipe.protocols]
    for question in world.questions:
        pieces = trajectory(world, question, rng.choice(protocols))
        example = to_example(pieces, tokenizer, recipe.weights)
        if len(example.ids) <= data.max_tokens:
            yield example


def pool_batches(recipe: SftRecipe, tokenizer: Tokenizer, *, pool: int, progress: float) -> list[list[Example]]:
    """The batches of one pool of worlds: alike in length, at most `batch_tokens` with padding, in random order.

    A pure function of its arguments, so that a resumed run sees what an unbroken one would have seen.
    """
    size = recipe.data.worlds_per_pool
    first = recipe.seed * 1_000_000 + pool * size
    examples = [
        example
        for seed in range(first, first + size)
        for example in world_examples(recipe, tokenizer, world_seed=seed, progress=progress)
    ]
    examples.sort(key=lambda example: len(example.ids))
    batches: list[list[Example]] = [[]]
    for example in examples:
        if (len(batches[-1]) + 1) * len(example.ids) > recipe.optimizer.batch_tokens and batches[-1]:
            batches.append([])
        batches[-1].append(example)
    random.Random(f"batches {recipe.seed} {pool}").shuffle(batches)
    return batches
