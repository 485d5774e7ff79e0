"""The folder of a build: what every step gave, as a file of its own, and in steps.json what it took, gave and dropped.

A step that is there is not done again, so the same command goes on with a build that broke off. Each file appears whole
or not at all. Replies of a model are kept one by one, in `replies`.
"""

import io
import json
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SetupError
from train.common.saving import replacing

STEPS: Final = "steps.json"
_M = TypeVar("_M", bound=BaseModel)
Array = NDArray[np.float32]


class Step(BaseModel):
    """What one step did."""

    model_config = ConfigDict(extra="forbid")

    name: str
    of: str
    """What it took: documents, bundles, …"""
    taken: int
    given: int
    gives: str
    dropped: dict[str, int] = Field(default_factory=dict[str, int])
    """Why something was left out → how often."""
    figures: dict[str, float] = Field(
        default_factory=dict[str, float], validation_alias=AliasChoices("figures", "told")
    )
    """Further ones; builds of earlier versions have the second name."""
    seconds: float = 0.0
    """Of the session that ended it."""


class Folder:
    """Where a build keeps what it has."""

    def __init__(self, path: Path) -> None:
        """Open a folder; it is made if it is not there.

        Raises:
            SetupError: it holds something else, is damaged, or cannot be made.
        """
        self.path = path
        self.steps: dict[str, Step] = {}
        file = path / STEPS
        try:
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)
            if file.exists():
                self.steps = {name: Step.model_validate(step) for name, step in json.loads(file.read_bytes()).items()}
        except (ValueError, ValidationError, AttributeError) as error:
            raise SetupError(f"{file} is damaged; choose another --out") from error

    def step(self, name: str) -> Step | None:
        """A step that was done, or None."""
        return self.steps.get(name)

    def end(self, step: Step) -> None:
        """Note that a step is done; its file is there already.

        Raises:
            SetupError: the folder cannot be written.
        """
        self.steps[step.name] = step
        kept = {name: one.model_dump() for name, one in self.steps.items()}
        self.write(STEPS, (json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())

    def write(self, name: str, content: bytes) -> Path:
        """A file as a whole or not at all.

        Raises:
            SetupError: the folder cannot be written.
        """
        path = self.path / name
        with writing(self.path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as new, new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        return path

    def write_rows(self, name: str, rows: Iterable[BaseModel | Mapping[str, object]]) -> Path:
        """JSON lines."""
        lines = (row.model_dump_json() if isinstance(row, BaseModel) else _line(row) for row in rows)
        return self.write(name, "".join(f"{line}\n" for line in lines).encode())

    def rows(self, name: str, model: type[_M]) -> list[_M]:
        """What `write_rows` wrote.

        Raises:
            SetupError: it cannot be read.
        """
        path = self.path / name
        try:
            lines = path.read_bytes().splitlines()
            return [model.model_validate_json(line) for line in lines]
        except (OSError, ValidationError) as error:
            raise SetupError(f"{path} is missing or damaged: remove {path.parent} and build again") from error

    def write_array(self, name: str, array: Array) -> None:
        """An array of numpy's own form."""
        held = io.BytesIO()
        np.save(held, array, allow_pickle=False)
        self.write(name, held.getvalue())

    def array(self, name: str) -> Array | None:
        """What `write_array` wrote; None where it is not there.

        Raises:
            SetupError: it cannot be read.
        """
        path = self.path / name
        if not path.exists():
            return None
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise SetupError(f"{path} is damaged: remove it, and the same command makes it again") from error


@contextmanager
def writing(folder: Path) -> Generator[None]:
    """Say in a sentence why nothing can be written."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"{folder} cannot be written: {error.strerror or error}; finished work is intact: free some space there, "
            "then run the same command again"
        ) from error


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False)


def counted(names: Iterable[str]) -> dict[str, int]:
    """How often each occurs, the most frequent first."""
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
