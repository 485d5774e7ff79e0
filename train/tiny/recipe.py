"""The recipe of the whole way from nothing to a served agent: which recipes its parts follow, and what is asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import SetupError
from train.common.recipe import SftRecipe, read_recipe
from train.common.recipe_files import read_model
from train.rl.recipe import RlRecipe, read_rl_recipe

SHIPPED: Final = Path(__file__).parent.parent / "recipes" / "tiny.toml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Worlds(_Part):
    """The worlds that are written as folders. Training makes its own, world after world."""

    train_questions: int = Field(default=300, ge=1)
    """Of the first world that is trained on, to be looked at."""
    dev_questions: int = Field(default=300, ge=1)
    """They decide which policy is exported."""
    served_questions: int = Field(default=60, ge=1)
    """Of the world that the agent is served with; its names are in no training world."""
    seed: int = 1000
    """Of the last two."""


class TinyRecipe(_Part):
    kind: Literal["tiny"]
    name: str
    sft: str
    """File of the supervised part's recipe, beside this one."""
    rl: str
    """File of the recipe for reinforcement learning, beside this one; its start is put in."""
    test: str = "test-v1"
    """The world whose questions the exported policy is asked once."""
    test_questions: int = Field(default=0, ge=0)
    """The first ones; 0: all."""
    worlds: Worlds = Worlds()


@dataclass(frozen=True)
class Recipes:
    """The recipe with those of its parts."""

    tiny: TinyRecipe
    sft: SftRecipe
    rl: RlRecipe

    def said(self) -> dict[str, Any]:
        """All of it, as plain values."""
        parts = {"tiny": self.tiny, "sft": self.sft, "rl": self.rl}
        return {name: part.model_dump(mode="json") for name, part in parts.items()}


def read_recipes(path: Path, *, start: Path) -> Recipes:
    """Read a recipe and those that it names.

    Args:
        path: of the TOML file.
        start: where the supervised part leaves its model, from which reinforcement learning begins.

    Raises:
        SetupError: a file is missing, no TOML, or has a wrong or unknown key; or the two parts do not fit.
    """
    tiny = read_model(path, TinyRecipe)
    sft = read_recipe(path.parent / tiny.sft)
    rl = read_rl_recipe(path.parent / tiny.rl, start=str(start))
    if unknown := set(rl.protocols) - set(sft.protocols):
        names = ", ".join(sorted(unknown))
        raise SetupError(f"{tiny.rl} speaks {names}, which {tiny.sft} does not teach: name the same `protocols`")
    return Recipes(tiny, sft, rl)
