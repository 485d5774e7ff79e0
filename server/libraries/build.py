"""The process that indexes shards of libraries: what is to be built on stdin, JSON lines about it on stdout.

It is a process of its own, so that the server goes on answering; it ends with the server, whose pipe then ends. What it
was writing is left as it was before.
"""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agent.errors import AgentError
from agent.sources.corpus.build import Outcome, Stage, update_found
from agent.sources.corpus.finding import FoundFiles, SkippedFile, SourceFile
from agent.sources.corpus.folder import read_entries
from agent.sources.corpus.gathering import NoDocuments


class FileToRead(BaseModel):
    """One file of a shard."""

    name: str
    """What it is called in the index."""
    path: Path
    title: str = ""
    url: str = ""


class ShardToBuild(BaseModel):
    """One index folder, and the files that it is to hold."""

    number: int
    folder: Path
    files: list[FileToRead]


class Shards(BaseModel):
    """What is to be built, one shard after the other."""

    shards: list[ShardToBuild]


class FileOutcome(BaseModel):
    """What came of one file."""

    name: str
    passages: int = 0
    why: str = ""
    """Why there are none, or not all."""


class Line(BaseModel):
    """What the process says: how far a shard is, or how it ended."""

    kind: Literal["progress", "shard", "failed"]
    shard: int
    stage: Stage = "reading"
    done: int = 0
    total: int = 0
    files: list[FileOutcome] = []
    why: str = ""


def main() -> None:
    """Build what stdin's first line says."""
    wanted = Shards.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for shard in wanted.shards:
        _say(_built(shard))


def _built(shard: ShardToBuild) -> Line:
    files = (SourceFile(file.path, file.name, file.path, file.title, file.url) for file in shard.files)
    found = FoundFiles(tuple(files), ())

    def progress(stage: Stage, done: int, total: int) -> None:
        _say(Line(kind="progress", shard=shard.number, stage=stage, done=done, total=total))

    try:
        outcome = update_found(found, shard.folder, wait=True, progress=progress)
    except NoDocuments as error:
        return Line(kind="shard", shard=shard.number, files=_outcomes(shard, error.skipped, {}))
    except AgentError as error:
        return Line(kind="failed", shard=shard.number, why=str(error))
    return Line(kind="shard", shard=shard.number, files=_outcomes(shard, outcome.skipped, _passages(shard, outcome)))


def _passages(shard: ShardToBuild, outcome: Outcome) -> dict[str, int]:
    return {entry.name: entry.rows for entry in read_entries(shard.folder, outcome.card)}


def _outcomes(shard: ShardToBuild, skipped: Sequence[SkippedFile], passages: dict[str, int]) -> list[FileOutcome]:
    why = {skip.name: skip.why for skip in skipped}
    return [
        FileOutcome(name=file.name, passages=passages.get(file.name, 0), why=why.get(file.name, ""))
        for file in shard.files
    ]


def _say(line: Line) -> None:
    sys.stdout.write(line.model_dump_json(exclude_defaults=True) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    while sys.stdin.read(4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
