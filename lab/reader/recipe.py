"""The reader's recipe: everything that decides how its training ends, read once from a TOML file."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.world.records import QuestionType
from train.common.recipe_files import read_model
from train.reader.pages import ReaderShape


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Contexts(_Part):
    """How often a question of a training world comes with what. None of it is evidence of ours."""

    gold: float = Field(ge=0, le=1)
    """Its gold passages among others, in any order."""
    retrieved: float = Field(ge=0, le=1)
    """What one search for the question finds, in that order."""
    nothing: float = Field(ge=0, le=1)
    shortened: float = Field(ge=0, le=1)
    """Share of the gold contexts whose pages are cut down to some of their sentences."""


class ReaderStage(_Part):
    """A part of the curriculum: which kinds of questions, over how many pages, until which share of all pools."""

    until: float = Field(gt=0, le=1)
    mix: dict[QuestionType, float] = {}
    """Share of each kind; empty: as a world asks them by itself."""
    most_pages: int


class Data(_Part):
    """Where questions come from: world after world, train split, every world once."""

    pools: int
    """What the learning rate and the curriculum are laid out for."""
    stop_after: int | None = None
    """Pools after which training ends all the same; None: it runs to its end."""
    worlds_per_pool: int
    questions_per_world: int
    vocabulary_worlds: int
    """From them come the words and the classes."""
    vocabulary_share: float
    """A word of the vocabulary is in at least this share of the vocabulary worlds."""
    contexts: Contexts


class Optimizer(_Part):
    batch_words: int
    """Padded."""
    muon_lr: float
    adamw_lr: float
    final_lr: float
    warmup_steps: int
    weight_decay: float
    clip: float


class Report(_Part):
    every_steps: int
    dev_questions: int


class ReaderRecipe(_Part):
    kind: Literal["reader"]
    name: str
    seed: int
    shape: ReaderShape
    data: Data
    curriculum: tuple[ReaderStage, ...]
    optimizer: Optimizer
    report: Report

    def stage(self, pool: int) -> ReaderStage:
        """The stage that a pool belongs to."""
        return next((stage for stage in self.curriculum if pool < stage.until * self.data.pools), self.curriculum[-1])


def read_recipe(path: Path) -> ReaderRecipe:
    """Read a recipe.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key.
    """
    return read_model(path, ReaderRecipe)
