"""Validation of what does not fit into memory at once: a large world's folder, or many worlds made on the spot."""

from collections.abc import Callable, Iterator
from typing import get_args

from agent.errors import SetupError
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from agent.world.records import Question, QuestionType
from agent.world.store import folder_of, read_card, read_shards
from agent.world.world import World
from train.world.questions import mix_of
from train.world.shards import Drawing, make_shard
from train.world.validate import WorldCheck, WorldTally

TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
_OF_EACH = 40
"""Questions of each type from one world: more would repeat the same facts."""

Show = Callable[[int, int], None]
"""Gets how many questions are checked, of how many."""
Outcome = tuple[list[WorldCheck], dict[str, int]]
"""The checks, and how many questions of each type they are about."""


def check_folder(which: str, show: Show) -> Outcome:
    """Check a world by its name or its folder, shard by shard.

    Raises:
        SetupError: it is no world, was changed since it was built, or has no questions.
    """
    folder = folder_of(which)
    card = read_card(folder)
    if not card.questions:
        raise SetupError(f"{which} has no questions to validate: build it with --questions")
    tally = WorldTally(card.split)
    for world in read_shards(folder):
        tally.add(world)
        show(tally.questions, card.questions)
    return tally.checks(card.difficulty), dict(tally.types)


def survey(each: int, seed: int, split: Split, show: Show, difficulty: Difficulty | None = None) -> Outcome:
    """Make one world after the other until `each` questions of every type are checked.

    Raises:
        SetupError: three worlds in a row give no question of some type.
    """
    difficulty = difficulty or Difficulty()
    tally = WorldTally(split)
    barren = 0
    while (missing := _missing(tally, each, difficulty)) and barren < 3:
        before = tally.questions
        drawing = Drawing(make_shard(seed, 0, split=split, difficulty=difficulty))
        wanted = {kind: min(_OF_EACH, each - tally.types[kind]) for kind in missing}
        drawn = tuple(question for kind in missing for question in _questions(drawing, kind, wanted[kind]))
        tally.add(World(f"{split}-{seed}", drawing.world.documents, drawn, drawing.world.indexes))
        barren = 0 if tally.questions > before else barren + 1
        seed += 1
        show(sum(min(each, tally.types[kind]) for kind in TYPES), each * len(TYPES))
    if barren:
        raise SetupError(f"no more questions of the types {', '.join(missing)} can be drawn at this difficulty")
    return tally.checks(difficulty, mixed=False), dict(tally.types)


def _missing(tally: WorldTally, each: int, difficulty: Difficulty) -> list[QuestionType]:
    """The types of which more questions are wanted; longer chains than the difficulty allows are not."""
    return [kind for kind in TYPES if tally.types[kind] < each and kind in mix_of(difficulty)]


def _questions(drawing: Drawing, kind: QuestionType, count: int) -> Iterator[Question]:
    for number in range(count):
        question = drawing.draw(kind, f"{drawing.world.name}-{kind}-{number}")
        if question is None:
            return
        yield question
