"""Oracle trajectories, or rows of distilled ones, as tokens: with a weight for each, in batches."""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from agent.cores import cores
from agent.errors import AgentError, SetupError
from agent.parallel.spread import mapped
from agent.policies.model_folder import with_passages
from agent.protocols import TextProtocol, load_protocol, protocol_named
from agent.world import Question, World
from agent.world.records import QuestionType
from train.common.recipe import LossWeights, SftData, SftRecipe
from train.data.built import read_built
from train.data.finish import QUESTIONS
from train.distill.rows import TrainingRow, read_rows
from train.safety.manifest import hash_of
from train.sft.episodes import Episode, EpisodePiece, episode, habitual_episode, noisy_episode
from train.sft.oracle import NotShown, Unreachable, can_fill
from train.sft.oracle.habits import HabitExpert, drawn_habits, possible_habits
from train.sft.oracle.noisy import NoisyExpert, draw, noises
from train.sft.tokenizer import EOS, encode_all, encode_marked, encode_plain, token_id


@dataclass(frozen=True)
class Example:
    """One trajectory, or a branch of one: ids, and the weight of each in the loss (0: not learned)."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    policy: tuple[bool, ...]
    """Whether the policy writes the token; in a branch, only of what it writes there."""
    answer_from: int = 0
    """Where the answer begins; 0 in a branch, which has none."""
    kind: str = ""
    """Protocol and type of question, for the report."""


def to_example(
    pieces: Sequence[EpisodePiece],
    tokenizer: Tokenizer,
    weights: LossWeights,
    *,
    kind: str = "",
    end: str = EOS,
    protocol: TextProtocol | None = None,
) -> Example:
    """Encode each piece on its own, as engines do; the token `end` is the policy's last one.

    Args:
        pieces: of the trajectory.
        tokenizer: of the model.
        weights: of each token in the loss.
        kind: protocol and type of question.
        end: the token that ends the policy's last turn.
        protocol: whose marks are tokens in what the environment says; without one, all tokens that are not special.
    """
    ids: list[int] = []
    weighed: list[float] = []
    policy: list[bool] = []
    answer_from = 0
    for piece, encoded in zip(pieces, _encoded(pieces, tokenizer, protocol), strict=True):
        policy.extend([piece.by == "policy"] * len(encoded))
        if piece.by != "policy":
            weighed.extend([weights.environment] * len(encoded))
        elif (at := answer_at(piece.text, encoded, tokenizer)) is not None:
            answer_from = len(ids) + at
            weighed.extend([weights.policy] * at + [weights.answer] * (len(encoded) - at))
        else:
            weighed.extend([weights.policy] * len(encoded))
        if piece.by == "policy" and weights.decision is not None:
            start = len(ids)
            for place in decisions(tokenizer, piece.text, encoded):
                weighed[start + place] = weights.decision
        ids.extend(encoded)
    return Example((*ids, token_id(tokenizer, end)), (*weighed, weights.policy), (*policy, True), answer_from, kind)


def answer_at(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> int | None:
    """The place among a text's ids where its answer block begins; None where it has none."""
    single = tokenizer.token_to_id(_ANSWER)
    if single is not None:
        return ids.index(single) if single in ids else None
    start = text.rfind(_ANSWER)
    if start < 0:
        return None
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return next((place for place, (_, until) in enumerate(offsets) if until > start), None)


_ANSWER = "<answer>"
_DECISIONS = re.compile(
    r"(?<=\w)(?: \d+| no)(?=[,.])|not found|(?:first|second)(?= is earlier)|(?<=<think>I )(?:know|need|do)"
    r"|(?<= is )(?!missing|earlier|before)[^.\[<\n]+|(?<=\]: )[^.,<\n]+(?=\. Nothing)"
)
"""Members of a list, what was not found, which of two years is earlier, known or not, the values of findings, and who
is in both of two lists."""


def decisions(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[int]:
    """Places of the tokens of a policy's text that decide something; none where the text is not read as these ids."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    if list(encoding.ids) != list(ids):
        return []
    spans = [match.span() for match in _DECISIONS.finditer(text)]
    return [
        place
        for place, (start, end) in enumerate(encoding.offsets)
        if any(start < until and since < end for since, until in spans)
    ]


def _encoded(pieces: Sequence[EpisodePiece], tokenizer: Tokenizer, protocol: TextProtocol | None) -> list[list[int]]:
    """Ids of each piece: its own, where this tokenizer reads its text from them; else those that an engine gives it.

    A special token in a passage, or in a quote of one, is text.
    """
    encoded: list[list[int]] = [[] for _ in pieces]
    for by in dict.fromkeys(piece.by for piece in pieces):
        places = [place for place, piece in enumerate(pieces) if piece.by == by]
        texts = [pieces[place].text for place in places]
        if by == "environment" and protocol is not None:
            ids = encode_marked(tokenizer, texts, marks=protocol.environment_marks)
        elif by in ("environment", "policy"):
            ids = encode_plain(tokenizer, texts, marks=protocol.all_marks if protocol else ())
        else:
            ids = encode_all(tokenizer, texts)
        for place, own in zip(places, ids, strict=True):
            encoded[place] = own
    for place, piece in enumerate(pieces):
        if piece.ids is not None and tokenizer.decode(list(piece.ids), skip_special_tokens=False) == piece.text:
            encoded[place] = list(piece.ids)
    return encoded


def to_branch(
    before: Sequence[EpisodePiece],
    pieces: Sequence[EpisodePiece],
    tokenizer: Tokenizer,
    weights: LossWeights,
    *,
    kind: str = "cairn fill",
    protocol: TextProtocol | None = None,
) -> Example:
    """A branch as a row of its own: what stands before the fork is context, and is learned from the main row alone."""
    encoded = _encoded((*before, *pieces), tokenizer, protocol)
    own_weight = weights.policy if weights.fill is None else weights.fill
    ids, weighed, policy = [], [], []
    for place, (piece, tokens) in enumerate(zip((*before, *pieces), encoded, strict=True)):
        own = place >= len(before)
        writes = own and piece.by == "policy"
        ids.extend(tokens)
        policy.extend([writes] * len(tokens))
        weighed.extend([own_weight if writes else weights.environment if own else 0.0] * len(tokens))
    return Example(tuple(ids), tuple(weighed), tuple(policy), kind=kind)


def row_example(row: TrainingRow, tokenizer: Tokenizer, weights: LossWeights, *, end: str = EOS) -> Example:
    """A row as an example."""
    pieces = [EpisodePiece(piece.by, piece.text, piece.ids) for piece in row.pieces]
    protocol = _protocol_of(row.protocol)
    if row.branch == "main":
        return to_example(pieces, tokenizer, weights, kind=row.kind, end=end, protocol=protocol)
    before, own = pieces[: row.context], pieces[row.context :]
    return to_branch(before, own, tokenizer, weights, kind=f"{row.protocol} fill", protocol=protocol)


@cache
def _protocol_of(name: str) -> TextProtocol | None:
    try:
        return protocol_named(name)
    except AgentError:  # one of the reader's own: its name is no file
        return None


_ROWS_AT_ONCE: Final = 500
"""That one process turns into tokens before it takes others."""


@dataclass(frozen=True)
class _Part:
    """Rows for one process, with what their tokens depend on."""

    tokenizer: str
    rows: Sequence[TrainingRow]
    weights: LossWeights
    end: str


def _examples_of(part: _Part) -> list[Example]:
    tokenizer = _read(part.tokenizer)
    return [row_example(row, tokenizer, part.weights, end=part.end) for row in part.rows]


@lru_cache(maxsize=1)
def _read(tokenizer: str) -> Tokenizer:
    return Tokenizer.from_str(tokenizer)


def row_examples(recipe: SftRecipe, tokenizer: Tokenizer, *, held_out: bool, progress: float = 0.0) -> list[Example]:
    """Every row of the recipe's file that is (or is not) held out, and no longer than trajectories may be.

    Raises:
        SetupError: the file cannot be read, or nothing is left of it to learn from.
    """
    rows = [row for row in read_rows(Path(recipe.data.rows)) if row.held_out == held_out]
    parts = [
        _Part(tokenizer.to_str(), rows[at : at + _ROWS_AT_ONCE], recipe.weights_at(progress), recipe.end or EOS)
        for at in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    read = mapped(_examples_of, parts, workers=min(cores(), max(1, len(parts) // 2)))
    kept = [example for examples in read for example in examples if len(example.ids) <= recipe.data.max_tokens]
    if not kept and not held_out:
        longest = recipe.data.max_tokens
        raise SetupError(f"{recipe.data.rows} has no row to learn from that is at most {longest} tokens long")
    return kept


def to_rows(made: Episode, tokenizer: Tokenizer, weights: LossWeights, *, kind: str = "") -> Iterator[Example]:
    """An episode and its branches."""
    yield to_example(made.pieces, tokenizer, weights, kind=kind)
    for fork in made.forks:
        yield to_branch(made.pieces[: fork.at], fork.pieces, tokenizer, weights)


def question_rows(
    world: World, question: Question, protocol: TextProtocol, tokenizer: Tokenizer, recipe: SftRecipe, *, fill: bool
) -> Iterator[Example]:
    """The rows of one question under one protocol; none where the protocol or its searches cannot answer it."""
    kind = f"{protocol.name} {question.type}"
    try:
        made = episode(world, question, protocol, fill=fill)
    except (NotShown, Unreachable):
        return
    yield from to_rows(made, tokenizer, recipe.weights, kind=kind)


def data_hashes(recipe: SftRecipe) -> dict[str, str]:
    """What a run is trained on, for its manifest: the first of its worlds stands for the generator and its seeds."""
    if recipe.data.rows:
        return {f"rows {Path(recipe.data.rows).name}": hash_of(Path(recipe.data.rows))}
    if recipe.data.built:
        return {f"built {Path(recipe.data.built).name}": hash_of(Path(recipe.data.built) / QUESTIONS)}
    seed = recipe.seed * 1_000_000
    world = recipe.data.world(seed, questions=recipe.data.questions_per_world)
    digest = hashlib.sha256()
    for record in (*world.documents, *world.questions):
        digest.update(record.model_dump_json().encode() + b"\n")
    return {f"world {world.name}": digest.hexdigest()}


def world_examples(recipe: SftRecipe, tokenizer: Tokenizer, *, world_seed: int, progress: float) -> Iterator[Example]:
    """Every trajectory of one world (or of as many questions of a build), each under one protocol drawn at random."""
    recipe = recipe.model_copy(update={"weights": recipe.weights_at(progress)})
    data, stage = recipe.data, recipe.stage(progress)
    rng = random.Random(f"protocols {recipe.seed} {world_seed}")
    protocols = [_at_most(spoken(data, name), stage.passages) for name in recipe.protocols]
    weights = [data.protocol_weights.get(name, 1.0) for name in recipe.protocols]
    for world in _worlds(data, world_seed, world_seed - recipe.seed * 1_000_000, data.questions_per_world, stage.mix):
        noise = random.Random(f"poor {recipe.seed} {world_seed}")
        expert = NoisyExpert(world) if data.noisy_share else HabitExpert(world) if data.habits else None
        for question in world.questions:
            protocol = rng.choices(protocols, weights)[0] if data.protocol_weights else rng.choice(protocols)
            fill = bool(data.fill_share) and can_fill(question.plan, protocol) and rng.random() < data.fill_share
            noisy = _noisy(expert, question, protocol, data, noise) if expert else None
            if noisy:
                rows = to_rows(noisy, tokenizer, recipe.weights, kind=f"{protocol.name} {question.type}")
            else:
                rows = question_rows(world, question, protocol, tokenizer, recipe, fill=fill)
            yield from (example for example in rows if len(example.ids) <= data.max_tokens)


def _worlds(
    data: SftData, seed: int, place: int, questions: int, mix: dict[QuestionType, float] | None = None
) -> Iterator[World]:
    """The world of a seed; of a build, the questions that come at this place."""
    if data.built:
        yield from read_built(Path(data.built)).worlds(place * questions, questions)
    else:
        yield data.world(seed, questions=questions, mix=mix)


def _noisy(
    expert: NoisyExpert | HabitExpert, question: Question, protocol: TextProtocol, data: SftData, rng: random.Random
) -> Episode | None:
    """A noisy episode, if one is drawn and can be made."""
    try:
        if isinstance(expert, HabitExpert):
            own = data.habits.get(protocol.name, {})
            habits = drawn_habits(rng, own, possible_habits(question, protocol))
            return habitual_episode(expert, question, protocol, habits) if habits else None
        noise = draw(rng, data.noisy_share, noises(question, protocol))
        return noisy_episode(expert, question, protocol, noise) if noise else None
    except LookupError:
        return None


def spoken(data: SftData, name: str) -> TextProtocol:
    """A protocol as it is trained on, by its name or its file."""
    protocol = load_protocol(Path(name)) if name.endswith(".toml") else protocol_named(name)
    return with_passages(protocol, data.passages)


def _at_most(protocol: TextProtocol, most: int) -> TextProtocol:
    return protocol.model_copy(update={"passages": most}) if 0 < most < protocol.passages else protocol


def pool_batches(recipe: SftRecipe, tokenizer: Tokenizer, *, pool: int, progress: float) -> list[list[Example]]:
    """The batches of one pool of worlds, or of all rows, in random order.

    Those of a batch are alike in length, and at most `batch_tokens` with padding. A pure function of its arguments, so
    that a resumed run sees what an unbroken one would have seen.

    Raises:
        SetupError: there is nothing to learn from.
    """
    size = recipe.data.worlds_per_pool
    first = recipe.seed * 1_000_000 + pool * size
    if recipe.data.rows:
        examples = row_examples(recipe, tokenizer, held_out=False, progress=progress)
    else:
        examples = [
            example
            for seed in range(first, first + size)
            for example in world_examples(recipe, tokenizer, world_seed=seed, progress=progress)
        ]
    if not examples:
        most, mix = recipe.data.max_tokens, dict(recipe.stage(progress).mix)
        raise SetupError(
            f"nothing is left to learn from at {progress:.0%} of the tokens: no trajectory has at most {most} tokens "
            f"(`max_tokens` in [data]) and answers a question of the stage's `mix` ({mix or 'all kinds'})"
        )
    examples.sort(key=lambda example: len(example.ids))
    batches: list[list[Example]] = [[]]
    for example in examples:
        if (len(batches[-1]) + 1) * len(example.ids) > recipe.optimizer.batch_tokens and batches[-1]:
            batches.append([])
        batches[-1].append(example)
    random.Random(f"batches {recipe.seed} {pool}").shuffle(batches)
    return batches


def tokenizer_texts(recipe: SftRecipe) -> Iterator[str]:
    """Trajectories of a few worlds, in every protocol; or the rows, where the recipe learns from those."""
    data = recipe.data
    if data.rows:
        yield from ("".join(piece.text for piece in row.pieces) for row in read_rows(Path(data.rows)))
        return
    worlds = (world for seed in range(data.tokenizer_worlds) for world in _worlds(data, seed, seed, 60))
    for world in worlds:
        for number, question in enumerate(world.questions):
            protocol = spoken(data, recipe.protocols[number % len(recipe.protocols)])
            yield "".join(piece.text for piece in _texts(world, question, protocol, data))


def _texts(world: World, question: Question, protocol: TextProtocol, data: SftData) -> Sequence[EpisodePiece]:
    try:
        return episode(world, question, protocol).pieces
    except (NotShown, Unreachable):
        return ()
