"""The steps of a build, each done once and kept with what it took, gave and dropped. What they do is not here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, TypeVar

from pydantic import BaseModel

from agent.parallel.spread import HERE, Spread
from train.data.duplicates import Show as ShowStep
from train.data.folder import Folder, Step

UNITS: Final = {
    "reading": "documents",
    "unique": "documents",
    "embedding": "documents",
    "reducing": "documents",
    "clustering": "documents",
    "bundling": "documents",
    "writing": "questions",
    "by heart": "questions",
    "together": "questions",
    "alone": "questions",
    "found": "questions",
    "ordering": "questions",
}
"""The steps in their order, and what is counted in each."""

Show = Callable[[str, int, int], None]
"""Called with a step, how far it is, and of how many."""
_R = TypeVar("_R", bound=BaseModel)


@dataclass(frozen=True)
class Made:
    """What a step took and gave, beside its file."""

    taken: int
    given: int
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    of: str = ""
    """What it took, where that is not what is counted in it."""
    gives: str = ""


class Steps:
    """Does what is not done yet."""

    def __init__(self, folder: Folder, show: Show, spread: Spread = HERE) -> None:
        self.folder, self.spread = folder, spread
        self._show = show

    def progress(self, name: str) -> ShowStep:
        """For a caller that only knows how far it is."""
        return lambda done, total: self._show(name, done, total)

    def done(self, name: str) -> bool:
        return self.folder.step(name) is not None

    def rows(self, name: str, model: type[_R], make: Callable[[], tuple[Sequence[_R], Made]]) -> list[_R]:
        """What a step gives: made and kept now, or read where it is done.

        Raises:
            SetupError: as `make`; or the folder cannot be written or read.
        """
        if not self.done(name):
            began = perf_counter()
            rows, made = make()
            self.keep(name, rows, made, began=began)
        return self.read(name, model)

    def keep(self, name: str, rows: Sequence[BaseModel], made: Made, *, began: float) -> None:
        """Keep what a step gave.

        Raises:
            SetupError: the folder cannot be written.
        """
        self.folder.write_rows(_file(name), rows)
        self.end(name, made, began=began)

    def read(self, name: str, model: type[_R]) -> list[_R]:
        """What a step gave.

        Raises:
            SetupError: it cannot be read.
        """
        return self.folder.rows(_file(name), model)

    def end(self, name: str, made: Made, *, began: float) -> None:
        """Note that a step is done, where it was not.

        Raises:
            SetupError: the folder cannot be written.
        """
        if not self.done(name):
            step = Step(
                name=name,
                of=made.of or UNITS[name],
                taken=made.taken,
                gives=made.gives or UNITS[name],
                given=made.given,
                dropped=dict(made.dropped),
                figures=dict(made.figures),
                seconds=round(perf_counter() - began, 2),
            )
            self.folder.end(step)
        self._show(name, 1, 1)


def _file(step: str) -> str:
    return f"{step.replace(' ', '_')}.jsonl"
