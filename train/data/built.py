"""The questions of a finished build on a little world, with their gold plans, for `built` in a recipe of train sft."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.world import Question, World, load_world
from agent.world.store import read_card, read_shards
from train.data.finish import QUESTIONS, WORLD
from train.evaluation.questions import read_questions

_HELD: Final = 2
"""Builds that are held in memory."""


class Built:
    """A build's questions in their order, each with the part of the world that it is about."""

    def __init__(self, folder: Path) -> None:
        """Read a build.

        Raises:
            SetupError: the folder holds none that came to its end, or one that is not of a little world.
        """
        if not (folder / WORLD / "world.json").is_file():
            raise SetupError(
                f"`built` names {folder}, which holds no finished build of a little world: make one with "
                f"cairn data build --world DIR --out {folder}"
            )
        card = read_card(folder / WORLD)
        worlds = [load_world(folder / WORLD)] if card.shards == 1 else list(read_shards(folder / WORLD))
        held = {question.id: (world, question) for world in worlds for question in world.questions}
        self._questions: list[tuple[World, Question]] = [held[one.id] for one in read_questions(folder / QUESTIONS)]

    def __len__(self) -> int:
        return len(self._questions)

    def worlds(self, first: int, number: int) -> Iterator[World]:
        """`number` questions from `first` on, after the last one from the first again, each run with its own world."""
        taken = [self._questions[place % len(self._questions)] for place in range(first, first + number)]
        for _, run in groupby(taken, key=lambda pair: pair[0].name):
            pairs = list(run)
            yield replace(pairs[0][0], questions=tuple(question for _, question in pairs))


@lru_cache(maxsize=_HELD)
def read_built(folder: Path) -> Built:
    """A build, read once.

    Raises:
        SetupError: as `Built`.
    """
    return Built(folder)
