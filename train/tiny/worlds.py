"""The worlds that the whole way writes as folders: one to look at, one to choose by, one to be served with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agent.errors import SetupError
from agent.world.card import WorldCard
from agent.world.names import Split
from agent.world.store import write_world
from agent.world.survey import check_folder
from train.common.recipe import Data
from train.sft.trajectories import data_world
from train.tiny.recipe import Recipes

Name = Literal["train", "dev", "served"]
FOLDER: Final = "worlds"


@dataclass(frozen=True)
class Wanted:
    """A world before it is made."""

    name: Name
    split: Split
    seed: int
    questions: int


def wanted(recipes: Recipes) -> tuple[Wanted, ...]:
    """The worlds of a recipe: the first one that training sees, and two with names that it never sees."""
    said = recipes.tiny.worlds
    return (
        Wanted("train", "train", recipes.sft.seed * 1_000_000, said.train_questions),
        Wanted("dev", "dev", said.seed, said.dev_questions),
        Wanted("served", "test", said.seed, said.served_questions),
    )


def write(world: Wanted, data: Data, out: Path) -> WorldCard:
    """Make a world with the recipe's generator, write it and check that its questions are sound.

    Raises:
        SetupError: it cannot be made or written, or a check does not hold.
    """
    own = data.model_copy(update={"split": world.split})
    try:
        made = data_world(own, world.seed, questions=world.questions)
    except ValueError as error:
        raise SetupError(f"the world {world.name!r} cannot be made: {error}: ask fewer questions of it") from error
    card = WorldCard(
        name=made.name,
        generator=data.generator,
        seed=world.seed,
        split=world.split,
        people=data.people,
        documents=0,
        questions=0,
        files={},
    )
    written = write_world([made], card, out)
    checks, _ = check_folder(str(out), lambda done, total: None)
    if wrong := [f"{check.name} is {check.value:.3f} ({check.bound})" for check in checks if not check.holds]:
        raise SetupError(f"the world in {out} is not sound: {'; '.join(wrong)}")
    return written
