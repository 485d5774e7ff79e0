"""What is done of a study, and how long it took: ledger.json, written as a whole whenever a job ends or is given up."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SetupError
from lab.report import commit
from train.common.saving import as_a_whole
from train.safety.manifest import Machine, machine

LEDGER: Final = "ledger.json"

Figures = dict[str, float | str]


class Entry(BaseModel):
    """One job."""

    model_config = ConfigDict(extra="forbid")

    plan_sha256: str
    """Of everything that decides what comes out."""
    seconds: float = 0.0
    """In all sessions that ended by themselves; what those took that were killed is not known."""
    sessions: int = 0
    done: bool = False
    figures: Figures = Field(default_factory=dict[str, float | str])
    code: str = ""
    """The commit that it was begun at; before 2026-11-29 it was not kept."""

    @property
    def is_timed(self) -> bool:
        """Whether its seconds are all that it took: one session did it."""
        return self.done and self.sessions <= 1


class Kept(BaseModel):
    """ledger.json."""

    model_config = ConfigDict(extra="forbid")

    machine: Machine
    jobs: dict[str, Entry] = Field(default_factory=dict[str, Entry])


class Ledger:
    """The one that writes it is the one that starts the jobs."""

    def __init__(self, out: Path) -> None:
        """Open what is there, or begin.

        Raises:
            SetupError: it is damaged.
        """
        self.path = out / LEDGER
        try:
            kept = Kept.model_validate_json(self.path.read_bytes()) if self.path.exists() else None
        except (OSError, ValidationError) as error:
            raise SetupError(f"{self.path} cannot be read ({error}): name another --out") from error
        self.kept = kept or Kept(machine=machine())

    def is_done(self, name: str, plan: Any) -> bool:
        """Whether a job is done.

        Raises:
            SetupError: it was begun by another plan.
        """
        entry = self.kept.jobs.get(name)
        if entry is None:
            return False
        if entry.plan_sha256 != sha256_of(plan):
            raise SetupError(
                f"{name} in {self.path.parent} was made by another plan (a recipe, the start, --limit or the data "
                "changed): "
                "name another --out"
            )
        return entry.done

    def has(self, name: str, plan: Any) -> bool:
        """Whether a job is done, and by this very plan."""
        entry = self.kept.jobs.get(name)
        return entry is not None and entry.done and entry.plan_sha256 == sha256_of(plan)

    def begin(self, name: str, plan: Any) -> None:
        entry = self.kept.jobs.setdefault(name, Entry(plan_sha256=sha256_of(plan), code=commit()))
        entry.sessions += 1
        self.write()

    def end(self, name: str, seconds: float, figures: Figures | None) -> None:
        """A job came to its end, or (without figures) was interrupted."""
        entry = self.kept.jobs[name]
        entry.seconds = round(entry.seconds + seconds, 1)
        entry.done = figures is not None
        entry.figures = figures or {}
        self.write()

    def seconds(self, name: str) -> float | None:
        """What a job took; None where it is not done."""
        entry = self.kept.jobs.get(name)
        return entry.seconds if entry is not None and entry.done else None

    def timed(self, name: str) -> float | None:
        """What a job took; None where it is not done, or where that is not known."""
        entry = self.kept.jobs.get(name)
        return entry.seconds if entry is not None and entry.is_timed else None

    def figures(self, name: str) -> Figures:
        entry = self.kept.jobs.get(name)
        return entry.figures if entry is not None else {}

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with as_a_whole(self.path) as made:
            made.write_text(self.kept.model_dump_json(indent=1) + "\n", encoding="utf-8")


def core_minutes(done: Iterable[Entry]) -> str:
    """What jobs took: "12 core minutes", with "at least" where a session may have been killed."""
    done = list(done)
    minutes = sum(entry.seconds for entry in done) / 60
    return f"{'' if all(entry.is_timed for entry in done) else 'at least '}{minutes:.0f} core minutes"


def sha256_of(plan: Any) -> str:
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()
