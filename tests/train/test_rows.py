"""Episodes as rows of tokens: what is learned, what is only context, and that engines read the same ids."""

from functools import cache
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from agent.policies.tokens import Codec
from agent.protocols import TextProtocol, protocol_named, protocol_names
from agent.world import World
from train.common.recipe import LossWeights, SftRecipe, read_recipe
from train.sft.episodes import Episode, episode
from train.sft.oracle import NotShown, Unreachable, can_fill
from train.sft.tokenizer import EOS, train_tokenizer
from train.sft.trajectories import decisions, pool_batches, to_rows
from train.world.shards import make_world

WEIGHTS = LossWeights(policy=1.0, answer=2.0, environment=0.1)
RECIPE = Path(__file__).parents[2] / "train" / "recipes" / "tiny_v2.toml"


@cache
def world() -> World:
    return make_world(4, split="train", questions=24)


@cache
def made(name: str, *, fill: bool) -> tuple[Episode, ...]:
    spoken = protocol_named(name)
    every: list[Episode] = []
    for question in world().questions:
        try:
            chain = fill and can_fill(question.plan, spoken)
            every.append(episode(world(), question, spoken, fill=chain))
        except (NotShown, Unreachable):
            continue
    return tuple(every)


@cache
def tokenizer() -> Tokenizer:
    texts = (piece.text for name in protocol_names() for each in made(name, fill=False) for piece in each.pieces)
    return train_tokenizer(texts, vocabulary=900)


def encoded(text: str, by: str, spoken: TextProtocol) -> tuple[int, ...]:
    """As an engine encodes what an author says: only marks that are theirs are control tokens."""
    codec = Codec(tokenizer().to_str(), ends=[EOS])
    tags = {"environment": spoken.environment_marks, "policy": spoken.all_marks, "loop": spoken.all_marks}
    return codec.encode(text, tags=tags.get(by, ()))


@pytest.mark.parametrize("name", protocol_names())
def test_a_row_holds_the_ids_that_an_engine_would_have(name: str) -> None:
    spoken = protocol_named(name)
    for each in made(name, fill=True)[:15]:
        rows = list(to_rows(each, tokenizer(), WEIGHTS))
        pieces = [each.pieces, *([*each.pieces[: fork.at], *fork.pieces] for fork in each.forks)]
        for row, parts in zip(rows, pieces, strict=True):
            ids = [number for piece in parts for number in encoded(piece.text, piece.by, spoken)]
            assert row.ids[: len(ids)] == tuple(ids)


@pytest.mark.parametrize("name", protocol_names())
def test_only_what_the_policy_writes_is_its_own(name: str) -> None:
    spoken = protocol_named(name)
    for each in made(name, fill=False)[:15]:
        (row,) = to_rows(each, tokenizer(), WEIGHTS)
        own = [n for n, mine in zip(row.ids[:-1], row.policy, strict=False) if mine]
        said = [n for piece in each.pieces if piece.by == "policy" for n in encoded(piece.text, "policy", spoken)]
        assert own == said
        assert {w for w, mine in zip(row.weights, row.policy, strict=True) if not mine} == {WEIGHTS.environment}


def test_what_stands_before_a_fork_is_learned_once() -> None:
    branched = [each for each in made("cairn", fill=True) if each.forks]
    assert branched
    for each in branched:
        _, *branches = to_rows(each, tokenizer(), WEIGHTS)
        for row, fork in zip(branches, each.forks, strict=True):
            before = sum(len(encoded(p.text, p.by, protocol_named("cairn"))) for p in each.pieces[: fork.at])
            assert not any(row.weights[:before])
            assert not any(row.policy[:before])
            written = encoded(fork.pieces[-1].text, "policy", protocol_named("cairn"))
            assert sum(row.policy) == len(written)
            assert row.policy[-len(written) :] == (True,) * len(written)


def test_what_finishes_a_query_can_weigh_more_than_the_policys_other_tokens() -> None:
    branched = next(each for each in made("cairn", fill=True) if each.forks)
    plain, weighed = (
        list(to_rows(branched, tokenizer(), WEIGHTS.model_copy(update={"fill": weight}))) for weight in (None, 5.0)
    )
    assert plain[0] == weighed[0]
    for row in weighed[1:]:
        assert {weight for weight, mine in zip(row.weights, row.policy, strict=True) if mine} == {5.0}


def test_a_pool_of_the_second_recipe_is_the_same_every_time_and_speaks_every_protocol() -> None:
    recipe = small(read_recipe(RECIPE))
    one, two = (pool_batches(recipe, tokenizer(), pool=3, progress=0.5) for _ in range(2))
    assert one == two
    rows = [row for batch in one for row in batch]
    assert {row.kind.split()[0] for row in rows} == set(protocol_names())
    assert max(len(row.ids) for row in rows) <= recipe.data.max_tokens


def small(recipe: SftRecipe) -> SftRecipe:
    data = recipe.data.model_copy(update={"questions_per_world": 30, "worlds_per_pool": 1, "people": 60})
    return recipe.model_copy(update={"data": data})


def test_a_stage_can_weigh_the_environment_otherwise() -> None:
    recipe = small(read_recipe(RECIPE))
    first, *others = recipe.curriculum
    later = others[-1].model_copy(update={"environment": 0.0})
    staged = recipe.model_copy(update={"curriculum": (first, later)})

    def weighed(progress: float) -> set[float]:
        batches = pool_batches(staged, tokenizer(), pool=0, progress=progress)
        rows = (zip(each.weights, each.policy, strict=True) for batch in batches for each in batch)
        return {weight for row in rows for weight, policy in row if not policy}

    assert 0.1 in weighed(0.0)
    assert weighed(0.9) == {0.0}


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ("Of the films [3]: The Tide no, The Orchard 12. In both: The Orchard.", "no 12"),
        ("The employer of Ana Bo is Wirsium Motors [2]. Nothing is missing.", "Wirsium Motors"),
        ("Both among the members of X [1] and the people born in Y [4]: Oda Bo. Nothing is missing.", "Oda Bo"),
        ("The mentor of Ana Bo is not found.", "not found"),
        (
            "1963 and 1952: 1 1, 9 9, 6 5, so the second is earlier. Bo is before Oda, so the later one is Oda.",
            "1 9 5 second Oda",
        ),
        ("<think>I know the founder of X: Oda.</think>", "know"),
    ],
)
def test_what_decides_is_recognised(text: str, decided: str) -> None:
    encoding = tokenizer().encode(text, add_special_tokens=False)
    found = "".join(text[slice(*encoding.offsets[place])] for place in decisions(tokenizer(), text, encoding.ids))
    assert found.replace(" ", "") == decided.replace(" ", "")


def test_what_decides_weighs_what_the_recipe_says() -> None:
    (each, *_) = made("cairn", fill=False)
    plain, heavy = (
        next(to_rows(each, tokenizer(), WEIGHTS.model_copy(update={"decision": weight}))) for weight in (None, 4.0)
    )
    assert plain.ids == heavy.ids
    assert 4.0 in heavy.weights
    assert 4.0 not in plain.weights
    changed = {
        policy for one, two, policy in zip(plain.weights, heavy.weights, plain.policy, strict=True) if one != two
    }
    assert changed == {True}
