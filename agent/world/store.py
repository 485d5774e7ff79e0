"""Worlds as folders: documents, triples and questions in files, hashed, and the frozen test lists of the package.

documents.jsonl   id, source, title, text, url, date, states
triples.tsv       head, relation, tail: the knowledge graph
questions.jsonl   id, type, question, answers, supporting, hops, plan, …
world.json        name, generator, seed, counts, and the sha256 of the other three
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agent.errors import SetupError
from agent.evidence import Frozen
from agent.world.names import Split
from agent.world.records import Document, Question
from agent.world.v1.make import make_world
from agent.world.world import World

_M = TypeVar("_M", bound=BaseModel)

GENERATOR = 1
"""Version of the generator: the same version and seed give the same world."""
_LISTS = Path(__file__).parent / "lists"
_FILES = ("documents.jsonl", "triples.tsv", "questions.jsonl")


class WorldCard(Frozen):
    """world.json: what a folder holds, and the hashes that prove it."""

    name: str
    generator: int
    seed: int
    split: Split
    people: int
    documents: int
    questions: int
    files: dict[str, str]


def frozen_lists() -> list[str]:
    """The frozen lists in the package, oldest first."""
    return sorted((path.name for path in _LISTS.glob("test-v*")), key=lambda name: int(name.removeprefix("test-v")))


def build_world(seed: int, *, split: Split, people: int, questions: int, out: Path, name: str = "") -> WorldCard:
    """Generate a world and write it as a folder. The folder appears whole or not at all.

    Raises:
        SetupError: `out` exists and holds something else, or cannot be written.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "world.json").exists())):
        raise SetupError(f"{out} exists and is no world: name another --out")
    world = make_world(seed, split=split, people=people, questions=questions, name=name)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent) as folder:
            card = _write(world, Path(folder), seed=seed, split=split, people=people)
            out.mkdir(exist_ok=True)
            for file in (*_FILES, "world.json"):  # the card goes last: without it the folder is no world
                os.replace(Path(folder) / file, out / file)
    except OSError as error:
        raise SetupError(f"the world cannot be written to {out}: {error.strerror}") from error
    return card


def load_world(which: str | Path) -> World:
    """Load a world: `test` (the newest frozen list), `test-v1` and so on, `dev` (made on the spot), or a folder.

    Raises:
        SetupError: there is none, or its files are not what its card says.
    """
    if which == "dev":
        return make_world(0, split="dev", people=110, questions=200, name="dev")
    if which == "test":
        which = frozen_lists()[-1]
    folder = _LISTS / which if isinstance(which, str) and which in frozen_lists() else Path(which)
    card = read_card(folder)
    documents = _read(folder / "documents.jsonl", Document)
    questions = _read(folder / "questions.jsonl", Question)
    return World.of(card.name, documents, questions)


def read_card(folder: Path) -> WorldCard:
    """Read a world's card and hold its files against it."""
    try:
        card = WorldCard.model_validate_json((folder / "world.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        lists = ", ".join(["test", *frozen_lists(), "dev"])
        raise SetupError(f"{folder} is no world (it has no world.json): name a folder, or one of {lists}") from error
    except (OSError, ValidationError) as error:
        raise SetupError(f"{folder / 'world.json'} cannot be read: {error}") from error
    for file, digest in card.files.items():
        path = folder / file
        if not path.exists() or _digest(path) != digest:
            raise SetupError(f"{path} is missing or was changed since it was built: build the world again")
    return card


def _write(world: World, folder: Path, *, seed: int, split: Split, people: int) -> WorldCard:
    _write_lines(folder / "documents.jsonl", (document.model_dump_json() for document in world.documents))
    _write_lines(folder / "questions.jsonl", (question.model_dump_json() for question in world.questions))
    _write_lines(folder / "triples.tsv", _triples(world))
    card = WorldCard(
        name=world.name,
        generator=GENERATOR,
        seed=seed,
        split=split,
        people=people,
        documents=len(world.documents),
        questions=len(world.questions),
        files={file: _digest(folder / file) for file in _FILES},
    )
    (folder / "world.json").write_text(json.dumps(card.model_dump(), indent=1) + "\n", encoding="utf-8")
    return card


def _triples(world: World) -> Iterable[str]:
    for document in world.documents:
        if document.source == "kg":
            head, relation, tails = document.text.split(" | ")
            yield from ("\t".join((head, relation, tail)) for tail in tails.split("; "))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def _read(path: Path, model: type[_M]) -> list[_M]:
    with path.open(encoding="utf-8") as file:
        return [model.model_validate_json(line) for line in file]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
