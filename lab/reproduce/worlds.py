"""The worlds of a study: those of the evaluation, whose names no training sees, and those of the question lists."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.world import Question, World
from agent.world.names import Split
from lab.reproduce.design import MIXES, QuestionList, WorldKind
from lab.reproduce.study import QUESTIONS, Study
from train.evaluation.datasets import write_questions
from train.evaluation.questions import world_questions
from train.world.shards import make_world
from train.world.writing import new_card, write_world

_KINDS_APART: Final = 1000
"""Between the seeds of two kinds of world."""
_LISTS: Final = 500_000
"""Seeds of the lists' worlds begin here."""
_MORE: Final = 3.0
"""Questions that are made for each one of a list: not all fit it."""
_PEOPLE_FACTOR: Final = 2
"""A list's world has this many times the people of an evaluation's, so that it has enough questions."""


def evaluation_world(study: Study, kind: WorldKind, seed: int) -> Path:
    """Folder of the evaluation's world of a seed; made where it is not there.

    Raises:
        SetupError: it is too small for its questions, or cannot be written.
    """
    folder = study.out / "worlds" / kind / str(seed)
    if not (folder / "world.json").exists():
        said = study.recipe.worlds
        number = said.seed + list(MIXES).index(kind) * _KINDS_APART + seed
        mix, name = MIXES[kind], f"{kind}-{seed}"
        try:
            world = make_world(
                number,
                split="dev",
                people=said.people,
                questions=said.questions,
                mix=mix,
                name=name,
                difficulty=said.difficulty,
            )
        except ValueError as error:
            why = f"the world {kind} cannot be made: {error}: ask fewer questions, or name more people"
            raise SetupError(why) from error
        _write(study, world, number, "dev", folder, people=said.people)
    return folder


def question_lists(study: Study, seed: int) -> Path:
    """Folder of the question lists of a seed: those of the user, or made here by the world's grammar.

    Both are of one world, in the form that `cairn data build` leaves: `pipeline` holds questions whose gold documents
    are of several sources, from few to many; `single` those of one source.

    Raises:
        SetupError: the world is too small for them, or they cannot be written.
    """
    folder = study.lists(seed)
    if study.questions is not None or (folder / "single" / QUESTIONS).exists():
        return folder
    said = study.recipe.worlds
    number, wanted = said.seed + _LISTS + seed, round(said.listed * _MORE)
    mix, people = MIXES["plain"], _PEOPLE_FACTOR * said.people
    try:
        world = make_world(number, split="train", people=people, questions=wanted, mix=mix, difficulty=said.difficulty)
    except ValueError as error:
        raise SetupError(f"the question lists cannot be made: {error}: `listed` fewer, or name more people") from error
    spread = sorted(world.questions, key=lambda question: _spread(world, question))
    lists: dict[QuestionList, list[Question]] = {
        "pipeline": [question for question in spread if _spread(world, question)[0] > 1],
        "single": [question for question in spread if _spread(world, question)[0] == 1],
    }
    if (fewest := min(map(len, lists.values()))) < said.listed:
        raise SetupError(f"of {wanted} questions only {fewest} fit one of the lists: `listed` fewer")
    for name, questions in lists.items():
        _write(study, world, number, "train", folder / name / "world", people=people)
        write_questions(world_questions(_thinned(questions, said.listed)), folder / name / QUESTIONS)
    return folder


def _thinned(questions: Sequence[Question], number: int) -> list[Question]:
    """`number` of them, from the whole range of their order."""
    return [questions[at * len(questions) // number] for at in range(number)]


def _spread(world: World, question: Question) -> tuple[int, int]:
    """Sources and documents that are needed."""
    return len({world.document(key).source for key in question.supporting}), len(question.supporting)


def _write(study: Study, world: World, seed: int, split: Split, folder: Path, *, people: int) -> None:
    card = new_card(world.name, seed, split=split, people=people, difficulty=study.recipe.worlds.difficulty)
    write_world([world], card, folder)
