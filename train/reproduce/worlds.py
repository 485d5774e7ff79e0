"""The worlds of a study: those that are asked, whose names no training sees, and those of the question lists."""

from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.world import Question, World, make_world
from agent.world.card import WorldCard
from agent.world.names import Split
from agent.world.store import write_world
from train.evaluation.datasets import write_questions
from train.evaluation.questions import world_questions
from train.reproduce.design import MIXES, WorldKind
from train.reproduce.study import Study

_KINDS_APART: Final = 1000
"""Between the seeds of two kinds of world."""
_LISTS: Final = 500_000
"""Seeds of the lists' worlds begin here."""
_MORE: Final = 2.8
"""Questions that are made for each one of a list: not all fit it."""


def asked_world(study: Study, kind: WorldKind, seed: int) -> Path:
    """Folder of the world that is asked with a seed; made where it is not there.

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
                number, split="dev", people=said.people, questions=said.questions, mix=mix, name=name, knobs=said.knobs
            )
        except ValueError as error:
            why = f"the world {kind} cannot be made: {error}: ask fewer questions, or name more people"
            raise SetupError(why) from error
        _write(study, world, number, "dev", folder)
    return folder


def question_lists(study: Study, seed: int) -> Path:
    """Folder of the question lists of a seed: those of the user, or made here by the world's grammar.

    Both lists are of one world: `pipeline.jsonl` holds questions that no single document answers, ordered from few
    documents to many; `single.jsonl` those that one document answers.

    Raises:
        SetupError: the world is too small for them, or they cannot be written.
    """
    folder = study.lists(seed)
    if study.questions is not None or (folder / "single.jsonl").exists():
        return folder
    said = study.recipe.worlds
    number = said.seed + _LISTS + seed
    wanted = round(said.listed * _MORE)
    try:
        world = make_world(
            number, split="train", people=said.people, questions=wanted, mix=MIXES["flat"], knobs=said.knobs
        )
    except ValueError as error:
        raise SetupError(f"the question lists cannot be made: {error}: `listed` fewer, or name more people") from error
    several = sorted((q for q in world.questions if len(q.supporting) > 1), key=lambda q: _spread(world, q))
    single = [q for q in world.questions if len(q.supporting) == 1]
    if min(len(several), len(single)) < said.listed:
        raise SetupError(f"{wanted} questions hold only {len(several)} and {len(single)} for the lists: `listed` fewer")
    _write(study, world, number, "train", folder / "world")
    for name, questions in (("pipeline", several), ("single", single)):
        write_questions(world_questions(questions[: said.listed]), folder / f"{name}.jsonl")
    return folder


def _spread(world: World, question: Question) -> tuple[int, int]:
    """Sources and documents that are needed."""
    return len({world.document(key).source for key in question.supporting}), len(question.supporting)


def _write(study: Study, world: World, seed: int, split: Split, folder: Path) -> None:
    said = study.recipe.worlds
    card = WorldCard(
        name=world.name,
        generator=2,
        seed=seed,
        split=split,
        people=said.people,
        documents=0,
        questions=0,
        files={},
        knobs=said.knobs,
    )
    write_world([world], card, folder)
