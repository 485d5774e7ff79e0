"""The worlds of a study: those of the evaluation, whose names no training sees, and those of the question lists."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from agent.errors import SetupError
from agent.world import World
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from lab.reproduce.design import MIXES, QuestionList, WorldKind
from lab.reproduce.study import LISTED, Study
from train.evaluation.datasets import write_questions
from train.evaluation.questions import GoldQuestion, read_questions
from train.world.shards import make_world
from train.world.writing import new_card, write_world

_KINDS_APART: Final = 1000
"""Between the seeds of two kinds of world."""
_LISTS: Final = 500_000
"""Seeds of the lists' worlds begin here."""
_FEW: Final = 10
"""Questions of a list's world, which no one reads: the builds write their own."""
_BUNDLES: Final[dict[QuestionList, Literal["diverse", "same"]]] = {"pipeline": "diverse", "single": "same"}


def evaluation_world(study: Study, kind: WorldKind, seed: int) -> Path:
    """Folder of the evaluation's world of a seed; made where it is not there.

    Raises:
        SetupError: it is too small for its questions, or cannot be written.
    """
    folder = study.out / "worlds" / kind / str(seed)
    if not (folder / "world.json").exists():
        said = study.recipe.worlds
        number = said.seed + list(MIXES).index(kind) * _KINDS_APART + seed
        mix, name, difficulty = MIXES[kind], f"{kind}-{seed}", said.difficulty_of(kind)
        try:
            world = make_world(
                number,
                split="dev",
                people=said.people,
                questions=said.questions_of(kind),
                mix=mix,
                name=name,
                difficulty=difficulty,
            )
        except ValueError as error:
            why = f"the world {kind} cannot be made: {error}: ask fewer questions, or name more people"
            raise SetupError(why) from error
        _write(world, number, "dev", folder, people=said.people, difficulty=difficulty)
    return folder


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
        _write(world, number, "train", folder / "world", people=said.list_people, difficulty=said.difficulty)
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


def _write(world: World, seed: int, split: Split, folder: Path, *, people: int, difficulty: Difficulty) -> None:
    card = new_card(world.name, seed, split=split, people=people, difficulty=difficulty)
    write_world([world], card, folder)
