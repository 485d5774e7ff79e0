"""What the stages took and gave, kept in report.json while they run: it survives a kill, and says what is done."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent import __version__
from agent.errors import SetupError
from train.common.saving import replacing
from train.safety.manifest import Machine, machine

REPORT: Final = "report.json"
_BEAT: Final = 5.0
"""Seconds between two writings of a stage that runs: at most so many are missing after a kill."""

Figures = dict[str, float | str]


class Entry(BaseModel):
    """One stage."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = 0.0
    """In all sittings."""
    sittings: int = 0
    done: bool = False
    said: str = ""
    """What came out, in a few words."""
    figures: Figures = Field(default_factory=dict[str, float | str])


class Told(BaseModel):
    """report.json."""

    model_config = ConfigDict(extra="forbid")

    name: str
    version: str = __version__
    recipe_hash: str
    machine: Machine
    processes: int
    seconds: float = 0.0
    """Of all stages."""
    stages: dict[str, Entry] = Field(default_factory=dict[str, Entry])
    recipes: dict[str, Any] = Field(default_factory=dict[str, Any])


class Ledger:
    """The report of a run while it is written."""

    def __init__(self, out: Path, told: Told) -> None:
        self.out = out
        self.told = told
        self._written = 0.0
        self._open: tuple[Entry, float, float] | None = None
        """The stage that runs, what it had taken before, and when it began."""

    @classmethod
    def opened(cls, out: Path, *, name: str, recipes: dict[str, Any], processes: int, resume: bool) -> "Ledger":
        """Begin in a folder, or go on with what stands there.

        Raises:
            SetupError: the folder holds a run and `resume` is not set, or one of another recipe, or a damaged one.
        """
        path = out / REPORT
        digest = hashlib.sha256(json.dumps(recipes, sort_keys=True).encode()).hexdigest()
        if not path.exists():
            if out.exists() and (not out.is_dir() or any(out.iterdir())):
                raise SetupError(f"{out} holds something else: name another --out")
            told = Told(name=name, recipe_hash=digest, machine=machine(), processes=processes, recipes=recipes)
            return cls(out, told)
        if not resume:
            raise SetupError(f"{out} holds a run already: add --resume to go on with it, or name another --out")
        try:
            told = Told.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SetupError(f"{path} cannot be read ({error}): name another --out") from error
        if told.recipe_hash != digest:
            raise SetupError(f"{path} is of another recipe, or the recipe was changed: name another --out")
        return cls(out, told)

    def entry(self, name: str) -> Entry:
        """Of a stage; a fresh one where it has not begun."""
        return self.told.stages.setdefault(name, Entry())

    def forget(self, names: Iterable[str]) -> None:
        """These stages are to be done anew: what they stood on changes."""
        for name in names:
            self.told.stages.pop(name, None)

    @contextmanager
    def timing(self, name: str) -> Iterator[Entry]:
        """Count the seconds of a stage; it is done where it comes to its end."""
        entry = self.entry(name)
        entry.sittings += 1
        self._open = (entry, entry.seconds, perf_counter())
        self.write()
        try:
            yield entry
            entry.done = True
        finally:
            self._count()
            self._open = None
            self.write()

    def beat(self) -> None:
        """The stage goes on: write down what it took so far, now and then."""
        if perf_counter() - self._written >= _BEAT:
            self._count()
            self.write()

    def write(self) -> None:
        """As a whole or not at all.

        Raises:
            SetupError: the folder cannot be written.
        """
        self._written = perf_counter()
        self.told.seconds = round(sum(entry.seconds for entry in self.told.stages.values()), 1)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            with replacing(self.out / REPORT) as new:
                new.write_text(self.told.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise SetupError(f"the report cannot be written to {self.out}: {error.strerror or error}") from error

    def _count(self) -> None:
        if self._open:
            entry, before, began = self._open
            entry.seconds = round(before + perf_counter() - began, 1)
