"""Remembers on disk which rung a model got: its exam takes a model on a laptop half a minute.

A file that is damaged, strange or too old is as good as none, and a folder that cannot be written costs only the exam.
"""

import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SetupError
from agent.files.own import private_file, private_folder, read_bounded
from agent.policies.ladder.policy import Rung

DAYS: Final = 7
"""After which a model takes its exam again: another one may be served under the same name."""
_BYTES: Final = 16 * 1024
_EXAM: Final = 1
"""Of the exam and the prompts; another number makes what is remembered void."""


class Remembered(BaseModel):
    """What an exam found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rung: Rung
    why: str = Field(max_length=4000)
    at: float
    """When, as seconds since 1970."""


def recall(*model: str) -> Remembered | None:
    """What is remembered of a model; None where there is nothing, or nothing that is recent.

    Args:
        model: everything that distinguishes it from others: address, name, server.
    """
    try:
        found = Remembered.model_validate_json(read_bounded(_file(model), most=_BYTES))
    except (OSError, ValidationError):
        return None
    return found if 0 <= time.time() - found.at < DAYS * 86_400 else None


def remember(rung: Rung, why: str, *model: str) -> None:
    """Keep it for this user alone. A file that is cut off half-way counts as none, so it is written in place."""
    said = Remembered(rung=rung, why=why[:4000], at=time.time()).model_dump_json()
    path = _file(model)
    with suppress(OSError, SetupError):
        private_folder(path.parent)
        private_file(path).write_text(said, encoding="utf-8")


def _file(model: tuple[str, ...]) -> Path:
    name = hashlib.sha256("\n".join((str(_EXAM), *model)).encode()).hexdigest()
    return user_cache_path("cairn", appauthor=False) / "rungs" / f"{name[:32]}.json"
