"""The worlds of a study: those of the evaluation, whose names no training sees, and those of the question lists."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from agent.errors import SetupError
from agent.world.records import QuestionType
from agent.world.store import WorldCard, read_card
from lab.reproduce.design import MIXES, QuestionList, WorldKind
from lab.reproduce.study import LISTED, Study
from train.evaluation.datasets import write_questions
from train.evaluation.questions import GoldQuestion, read_questions
from train.world.questions import counts_of
from train.world.shards import make_world
from train.world.writing import new_card, write_world

_KINDS_APART: Final = 1000
"""Between the seeds of two kinds of world."""
_LISTS: Final = 500_000
"""Seeds of the lists' worlds begin here."""
_FEW: Final = 10
"""Questions of a list's world, which no one reads: the builds write their own."""
_DECIDE: Final = ("name", "generator", "seed", "split", "people", "difficulty")
"""What a world's card says of how it is made; the rest is counted."""
_BUNDLES: Final[dict[QuestionList, Literal["diverse", "same"]]] = {"pipeline": "diverse", "single": "same"}


def evaluation_world(study: Study, kind: WorldKind, seed: int) -> Path:
    """Folder of the evaluation's world of a seed; made where it is not there, or another recipe's is.

    Raises:
        SetupError: it is too small for its questions, or cannot be written.
    """
    folder, said, mix = study.out / "worlds" / kind / str(seed), study.recipe.worlds, MIXES[kind]
    number, questions = said.seed + list(MIXES).index(kind) * _KINDS_APART + seed, said.questions_of(kind)
    name, difficulty = f"{kind}-{seed}", said.difficulty_of(kind)
    card = new_card(name, number, split="dev", people=said.people, difficulty=difficulty)
    if _holds(folder, card, counts_of(questions, mix)):
        return folder
    try:
        world = make_world(
            number, split="dev", people=said.people, questions=questions, mix=mix, name=name, difficulty=difficulty
        )
    except ValueError as error:
        why = f"the world {kind} cannot be made: {error}: ask fewer questions, or name more people"
        raise SetupError(why) from error
    shutil.rmtree(folder, ignore_errors=True)
    write_world([world], card, folder)
    return folder


def _holds(folder: Path, wanted: WorldCard, questions: Mapping[QuestionType, int]) -> bool:
    """Whether a folder's world is the one of a card, with so many questions of each type."""
    if not (folder / "world.json").exists():
        return False
    card = read_card(folder)
    types = {kind: number for kind, number in questions.items() if number}
    return card.types == types and all(getattr(card, name) == getattr(wanted, name) for name in _DECIDE)


def question_lists(study: Study, seed: int) -> Path:
    """Folder of the question lists of a seed, each built as `cairn data build` builds one, of the same world.

    `pipeline` has bundles of several sources (duplicates out, clusters, filters, from few sources to many); `single`
    the same of one source each.

    Raises:
        SetupError: the world is too small for them, or they cannot be written.
    """
    folder, said = study.lists(seed), study.recipe.worlds
    if not (folder / "world" / "world.json").exists():
        number = said.seed + _LISTS + seed
        world = make_world(number, split="train", people=said.list_people, questions=_FEW, difficulty=said.difficulty)
        card = new_card(world.name, number, split="train", people=said.list_people, difficulty=said.difficulty)
        write_world([world], card, folder / "world")
    for name, bundles in _BUNDLES.items():
        if not (folder / name / LISTED).exists():
            _build(study, seed, folder, name, bundles)
    return folder


def _build(study: Study, seed: int, folder: Path, name: QuestionList, bundles: Literal["diverse", "same"]) -> None:
    from train.data.build import build
    from train.data.finish import QUESTIONS
    from train.data.inputs import WorldInput
    from train.data.recipe import DataRecipe

    said, inputs = study.recipe.worlds, WorldInput(str(folder / "world"))
    recipe = DataRecipe(
        name=name, seed=seed, documents=inputs.hashes(), thin_words=0, embedder=said.embedder, bundles=bundles
    )
    build(inputs, recipe, folder / name)
    built = read_questions(folder / name / QUESTIONS)
    if len(built) < said.listed:
        raise SetupError(f"the build {name} leaves {len(built)} questions: `listed` fewer, or name more list_people")
    write_questions(_thinned(built, said.listed), folder / name / LISTED)


def _thinned(questions: Sequence[GoldQuestion], number: int) -> list[GoldQuestion]:
    """`number` of them, from the whole range of their order."""
    return [questions[at * len(questions) // number] for at in range(number)]
