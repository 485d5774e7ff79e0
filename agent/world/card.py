"""A world's card, world.json: what a folder holds and how it was made."""

import hashlib
import json
from operator import not_
from pathlib import Path
from typing import Final

from pydantic import AliasChoices, Field

from agent.evidence import Frozen
from agent.world.difficulty import Difficulty
from agent.world.names import Split

FILES: Final = ("documents.jsonl", "triples.tsv", "questions.jsonl")


class WorldCard(Frozen):
    """What a folder holds, and the hashes that prove it. What the card of test-v1 does not say has a default."""

    name: str
    generator: int
    seed: int
    split: Split
    people: int
    """Of one shard."""
    documents: int
    questions: int
    files: dict[str, str]
    shards: int = Field(default=1, exclude_if=lambda shards: shards == 1)
    difficulty: Difficulty | None = Field(
        default=None, validation_alias=AliasChoices("difficulty", "knobs"), exclude_if=not_
    )
    """Older folders call it `knobs`."""
    sources: dict[str, int] = Field(default={}, exclude_if=not_)
    """Source → documents."""
    types: dict[str, int] = Field(default={}, exclude_if=not_)
    """Type → questions."""
    baselines: dict[str, float] = Field(default={}, exclude_if=not_)
    """Baseline → share of right answers."""

    def as_json(self) -> str:
        return json.dumps(self.model_dump(), indent=1) + "\n"


def digest(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
