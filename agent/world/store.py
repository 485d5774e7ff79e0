"""Worlds as folders: documents, triples and questions in files, hashed, and the frozen test lists of the package.

documents.jsonl   id, source, title, text, url, date, states
triples.tsv       head, relation, tail: the knowledge graph
questions.jsonl   id, type, question, answers, supporting, hops, plan, …
world.json        name, generator, seed, knobs, counts, baselines, and the sha256 of the other three
README.md         the same for people, with examples
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agent.errors import SetupError
from agent.world.card import FILES, WorldCard, digest, readme
from agent.world.knobs import Knobs
from agent.world.names import Split
from agent.world.records import Document, Question
from agent.world.shards import PEOPLE, make_world, part, people_for
from agent.world.v1 import make_world as make_first_world
from agent.world.world import World
from agent.world.writing import Part, Writing

_M = TypeVar("_M", bound=BaseModel)

GENERATOR = 2
"""Version of the generator: the same version, seed and knobs give the same world."""
MOST_HELD = 200_000
"""Documents of a world that is searched in memory."""
_LISTS = Path(__file__).parent / "lists"

Show = Callable[[int, int], None]
"""Is told how many documents are written, of about how many."""


def frozen_lists() -> list[str]:
    """The frozen lists in the package, oldest first."""
    return sorted((path.name for path in _LISTS.glob("test-v*")), key=lambda name: int(name.removeprefix("test-v")))


def build_world(
    seed: int,
    *,
    split: Split,
    size: int,
    questions: int,
    out: Path,
    name: str = "",
    knobs: Knobs | None = None,
    show: Show | None = None,
) -> WorldCard:
    """Generate a world of about `size` documents and write it as a folder, one shard in memory at a time.

    Raises:
        SetupError: `out` exists and holds something else, or cannot be written.
        ValueError: too many documents, or too few for the questions.
    """
    knobs = knobs or Knobs()
    shards, people = people_for(size, knobs)
    name = name or f"{split}-{seed}"
    parts = (
        part(seed, number, shards, split=split, people=people, knobs=knobs, questions=questions, name=name)
        for number in range(shards)
    )
    card = WorldCard(
        name=name, generator=GENERATOR, seed=seed, split=split, people=people, documents=0, questions=0, files={}
    )
    return write_world(parts, card.model_copy(update={"knobs": knobs, "shards": shards}), out, size=size, show=show)


def write_world(
    parts: Iterable[Part], card: WorldCard, out: Path, *, size: int = 0, show: Show | None = None
) -> WorldCard:
    """Write the parts of a world, and its card with what they add up to. The folder appears whole or not at all.

    Raises:
        SetupError: `out` exists and holds something else, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "world.json").exists())):
        raise SetupError(f"{out} exists and is no world: name another --out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
            folder = Path(temporary)
            with Writing(folder) as writing:
                for each in parts:
                    writing.add(each)
                    if show:
                        show(writing.documents, max(size, writing.documents))
            card = writing.finish(card)
            (folder / "README.md").write_text(readme(card, writing.examples), encoding="utf-8")
            (folder / "world.json").write_text(card.as_json(), encoding="utf-8")
            out.mkdir(exist_ok=True)
            for file in (*FILES, "README.md", "world.json"):  # the card goes last: without it the folder is no world
                os.replace(folder / file, out / file)
    except OSError as error:
        raise SetupError(f"the world cannot be written to {out}: {error.strerror}") from error
    return card


def load_world(which: str | Path) -> World:
    """Load a world: `test` (the newest frozen list), `test-v1` and so on, `dev-v1`, `dev-v2`, or a folder.

    `dev-v1` and `dev-v2` are made on the spot; `dev` is the first of them, which the shipped checkpoint is tuned on.

    Raises:
        SetupError: there is none, or its files are not what its card says, or it is too large to be held.
    """
    if which in ("dev", "dev-v1"):
        return make_first_world(0, split="dev", people=110, questions=200, name="dev")
    if which == "dev-v2":
        return make_world(0, split="dev", people=PEOPLE, questions=200, name="dev-v2")
    folder = folder_of(which)
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
    """Where a world's files are: `test`, a frozen list's name, or a folder."""
    if which == "test":
        which = frozen_lists()[-1]
    return _LISTS / which if isinstance(which, str) and which in frozen_lists() else Path(which)


def read_shards(folder: Path) -> Iterator[World]:
    """The shards of a folder that have questions, one at a time, however large the world is.

    Raises:
        SetupError: it is no world, or its files are not what its card says.
    """
    card = read_card(folder)
    asked: dict[int, list[Question]] = {}
    for question in _read(folder / "questions.jsonl", Question):
        asked.setdefault(question.shard, []).append(question)
    documents = _read(folder / "documents.jsonl", Document)
    if card.shards == 1:
        yield World.of(card.name, documents, asked.get(0, []))
        return
    for number, held in groupby(documents, key=_shard_of):
        if number in asked:
            yield World.of(f"{card.name}-{number}", held, asked[number])


def _shard_of(document: Document) -> int:
    part = document.id.split("-")[1]
    return int(part) if part.isdigit() else 0


def read_card(folder: Path) -> WorldCard:
    """Read a world's card and hold its files against it."""
    try:
        card = WorldCard.model_validate_json((folder / "world.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        lists = ", ".join(["test", *frozen_lists(), "dev-v1", "dev-v2"])
        raise SetupError(f"{folder} is no world (it has no world.json): name a folder, or one of {lists}") from error
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
