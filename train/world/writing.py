"""Worlds as folders while they are written: part by part, so that one never has to be in memory as a whole."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agent.errors import SetupError
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from agent.world.records import Document, Question
from agent.world.store import FILES, WorldCard, digest
from agent.world.world import World
from train.world.baselines import Baselines
from train.world.shards import part, people_for

GENERATOR: Final = 2
"""Version of the generator: the same version, seed and difficulty give the same world. Version 1 made test-v1."""
Part = World | Sequence[Document]
"""A shard with its questions, or only its documents where it has none."""
Show = Callable[[int, int], None]
"""Gets how many documents are written, of about how many."""


def build_world(
    seed: int,
    *,
    split: Split,
    size: int,
    questions: int,
    out: Path,
    name: str = "",
    difficulty: Difficulty | None = None,
    show: Show | None = None,
) -> WorldCard:
    """Generate a world of about `size` documents and write it as a folder, one shard in memory at a time.

    Raises:
        SetupError: `out` exists and holds something else, or cannot be written.
        ValueError: too many documents, or too few for the questions.
    """
    difficulty = difficulty or Difficulty()
    shards, people = people_for(size, difficulty)
    name = name or f"{split}-{seed}"
    parts = (
        part(seed, number, shards, split=split, people=people, difficulty=difficulty, questions=questions, name=name)
        for number in range(shards)
    )
    card = new_card(name, seed, split=split, people=people, difficulty=difficulty)
    return write_world(parts, card.model_copy(update={"shards": shards}), out, size=size, show=show)


def new_card(name: str, seed: int, *, split: Split, people: int, difficulty: Difficulty) -> WorldCard:
    """The card of a world of one shard before anything of it is counted."""
    return WorldCard(
        name=name,
        generator=GENERATOR,
        seed=seed,
        split=split,
        people=people,
        documents=0,
        questions=0,
        files={},
        difficulty=difficulty,
    )


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


class Writing:
    """Three open files, and what was written so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._sources: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._baselines = Baselines()
        self.examples: dict[str, Question] = {}
        """The first question of each type."""

    def __enter__(self) -> Self:
        paths = [self._folder / name for name in FILES]
        opened = [self._open.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
        self._documents, self._triples, self._questions = opened
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def documents(self) -> int:
        return self._sources.total()

    def add(self, part: Part) -> None:
        documents = part.documents if isinstance(part, World) else part
        self._documents.writelines(document.model_dump_json() + "\n" for document in documents)
        self._triples.writelines(line + "\n" for line in _triples(documents))
        self._sources.update(document.source for document in documents)
        if not isinstance(part, World):
            return
        for question in part.questions:
            self._questions.write(question.model_dump_json() + "\n")
            self._types[question.type] += 1
            self._baselines.add(part, question)
            self.examples.setdefault(question.type, question)

    def finish(self, card: WorldCard) -> WorldCard:
        """The card with the counts, and the hashes of the closed files."""
        counted = {
            "documents": self.documents,
            "questions": self._types.total(),
            "files": {name: digest(self._folder / name) for name in FILES},
            "sources": dict(sorted(self._sources.items())),
            "types": dict(sorted(self._types.items())),
            "baselines": {name: round(share, 4) for name, share in self._baselines.shares().items()},
        }
        return card.model_copy(update=counted)


def _triples(documents: Iterable[Document]) -> Iterable[str]:
    for document in documents:
        if document.source == "kg":
            head, relation, tails = document.text.split(" | ")
            yield from ("\t".join((head, relation, tail)) for tail in tails.split("; "))


_BASELINES: Final = {
    "first_passage": "perfect reader of the first passage of one search",
    "closed_book": "best guess from the question alone",
    "always_abstain": "never answering",
    "first_passage_well_known": "first passage, well-known questions",
    "closed_book_well_known": "guess, well-known questions (who knows them by heart has 1)",
}


def readme(card: WorldCard, examples: Mapping[str, Question]) -> str:
    """The card for people."""
    lines = [
        f"# {card.name}",
        "",
        f"A little world for search agents: {card.documents} invented documents and {card.questions} questions about "
        f"them, made by generator {card.generator} of Cairn from seed {card.seed}, with the names of the split "
        f"`{card.split}` (no name of one split occurs in another one).",
        "",
        "Every name and every statement is invented; nothing here is about the real world.",
        "",
        "| file | sha256 |",
        "|---|---|",
        *(f"| {file} | `{sha256}` |" for file, sha256 in card.files.items()),
        "",
        "## Documents",
        "",
        f"{card.shards} shard(s) of {card.people} people; a shard's names stand in no other one.",
        "",
        *_table("source", "documents", card.sources),
        "",
        "## Difficulty",
        "",
        *_table("setting", "value", card.difficulty.model_dump() if card.difficulty else {}),
        "",
        "## Questions",
        "",
        *_table("type", "questions", card.types),
        "",
        "A question without an answer (`unanswerable`) is answered right by saying so. A follow-up leans on `history`. "
        "The well-known ones (`known`) are of a closed set that is the same in every world and split.",
        "",
        "| type | example | answer |",
        "|---|---|---|",
        *(
            f"| {kind} | {_with_history(question)} | {_answer(question)} |"
            for kind, question in sorted(examples.items())
        ),
        "",
        "## Baselines",
        "",
        "Share of right answers without searching well, with well-known questions and those without an answer apart:",
        "",
        *_table("baseline", "right", {_BASELINES[name]: share for name, share in card.baselines.items()}),
    ]
    return "\n".join(lines) + "\n"


def _table(left: str, right: str, rows: Mapping[str, object]) -> list[str]:
    return [f"| {left} | {right} |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())]


def _with_history(question: Question) -> str:
    earlier = " ".join(f"{question_before} — {answered}." for question_before, answered in question.history)
    return f"{earlier} {question.question}".strip()


def _answer(question: Question) -> str:
    return question.answers[0] if question.answers else "(none)"
