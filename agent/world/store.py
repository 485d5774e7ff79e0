"""Worlds as folders: documents, triples and questions in files, hashed, and the frozen lists of the package.

documents.jsonl   id, source, title, text, url, date, states
triples.tsv       head, relation, tail: the knowledge graph
questions.jsonl   id, type, question, answers, supporting, hops, plan, …
world.json        name, generator, seed, difficulty, counts, baselines, and the sha256 of the other three
README.md         the same for people, with examples

`cairn world build` writes them (train/world).
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import not_
from pathlib import Path
from typing import Final, TypeVar

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from agent.errors import SetupError
from agent.evidence import Frozen
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from agent.world.records import Document, Question
from agent.world.world import World

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


_M = TypeVar("_M", bound=BaseModel)

MOST_HELD = 200_000
"""Documents of a world that is searched in memory."""
_LISTS = Path(__file__).parent / "lists"


def frozen_lists() -> list[str]:
    """The frozen test lists in the package, oldest first."""
    return sorted((path.name for path in _LISTS.glob("test-v*")), key=lambda name: int(name.removeprefix("test-v")))


def world_names() -> list[str]:
    """What can be named instead of a folder: `test` (the newest test list), and each list in the package."""
    return ["test", *frozen_lists(), *sorted(path.name for path in _LISTS.glob("dev-v*"))]


def load_world(which: str | Path) -> World:
    """Load a world by its name (`test`, `test-v1`, `test-v2`, `dev-v2`) or its folder.

    Raises:
        SetupError: there is none, or its files are not what its card says, or it is too large to be held.
    """
    folder = folder_of(which)
    return _load_once(folder) if folder.parent == _LISTS else _load(folder)


@cache
def _load_once(folder: Path) -> World:
    """The lists of the package do not change while it runs, and an agent asks for its world more than once."""
    return _load(folder)


def _load(folder: Path) -> World:
    card = read_card(folder)
    if card.documents > MOST_HELD:
        raise SetupError(
            f"{folder} has {card.documents} documents, too many to be searched in memory; index them with "
            f"cairn index build {folder / 'documents.jsonl'} --out INDEX and ask with --corpus INDEX"
        )
    documents = _read(folder / "documents.jsonl", Document)
    questions = _read(folder / "questions.jsonl", Question)
    return World.of(card.name, documents, questions)


def folder_of(which: str | Path) -> Path:
    """Where a world's files are: `test`, a list's name, or a folder."""
    if which == "test":
        which = frozen_lists()[-1]
    return _LISTS / which if isinstance(which, str) and which in world_names() else Path(which)


def read_shards(folder: Path) -> Iterator[World]:
    """The shards of a folder that have questions, one at a time, however large the world is.

    Raises:
        SetupError: it is no world, or its files are not what its card says.
    """
    card = read_card(folder)
    by_shard: dict[int, list[Question]] = {}
    for question in _read(folder / "questions.jsonl", Question):
        by_shard.setdefault(question.shard, []).append(question)
    documents = _read(folder / "documents.jsonl", Document)
    if card.shards == 1:
        yield World.of(card.name, documents, by_shard.get(0, []))
        return
    for number, held in groupby(documents, key=_shard_of):
        if number in by_shard:
            yield World.of(f"{card.name}-{number}", held, by_shard[number])


def _shard_of(document: Document) -> int:
    part = document.id.split("-")[1]
    return int(part) if part.isdigit() else 0


def read_card(folder: Path) -> WorldCard:
    """Read a world's card and hold its files against it."""
    try:
        card = WorldCard.model_validate_json((folder / "world.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        names = ", ".join(world_names())
        raise SetupError(f"{folder} is no world (it has no world.json): name a folder, or one of {names}") from error
    except (OSError, ValidationError) as error:
        raise SetupError(f"{folder / 'world.json'} cannot be read: {error}") from error
    for file, expected in card.files.items():
        path = folder / file
        if not path.exists() or digest(path) != expected:
            raise SetupError(f"{path} is missing or was changed since it was built: build the world again")
    return card


def _read(path: Path, model: type[_M]) -> Iterator[_M]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield model.model_validate_json(line)
