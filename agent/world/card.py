"""A world's card: what a folder holds and how it was made, for programs (world.json) and for people (README.md)."""

import hashlib
import json
from collections.abc import Mapping
from operator import not_
from pathlib import Path
from typing import Final

from pydantic import Field

from agent.evidence import Frozen
from agent.world.knobs import Knobs
from agent.world.names import Split
from agent.world.records import Question

FILES: Final = ("documents.jsonl", "triples.tsv", "questions.jsonl")


class WorldCard(Frozen):
    """world.json: what a folder holds, and the hashes that prove it. What generator 1 did not write has a default."""

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
    knobs: Knobs | None = Field(default=None, exclude_if=not_)
    sources: dict[str, int] = Field(default={}, exclude_if=not_)
    """Source → documents."""
    types: dict[str, int] = Field(default={}, exclude_if=not_)
    """Type → questions."""
    baselines: dict[str, float] = Field(default={}, exclude_if=not_)
    """Baseline → share of right answers."""

    def as_json(self) -> str:
        return json.dumps(self.model_dump(), indent=1) + "\n"


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
        "## Knobs",
        "",
        *_table("knob", "value", card.knobs.model_dump() if card.knobs else {}),
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
        *(f"| {kind} | {_told(question)} | {_answer(question)} |" for kind, question in sorted(examples.items())),
        "",
        "## Baselines",
        "",
        "Share of right answers without searching well, well-known questions and those without an answer told apart:",
        "",
        *_table("baseline", "right", {_BASELINES[name]: share for name, share in card.baselines.items()}),
    ]
    return "\n".join(lines) + "\n"


def _table(left: str, right: str, rows: Mapping[str, object]) -> list[str]:
    return [f"| {left} | {right} |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())]


def _told(question: Question) -> str:
    earlier = " ".join(f"{asked} — {answered}." for asked, answered in question.history)
    return f"{earlier} {question.question}".strip()


def _answer(question: Question) -> str:
    return question.answers[0] if question.answers else "(none)"


def digest(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
