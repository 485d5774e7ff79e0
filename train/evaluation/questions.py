"""The questions of an evaluation: a question list, or the questions of a little world."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent.sources.questions import GoldQuestion
from train.evaluation.datasets import read_dataset

__all__ = ["GoldQuestion", "fingerprint", "read_questions", "world_questions"]


def read_questions(path: Path, name: str | None = None) -> list[GoldQuestion]:
    """Read a question list, the project's own or a published one; see `train.evaluation.datasets`.

    Raises:
        CorpusError: a missing or empty file, one in another form than `name`, a row that is no question, or an id that
            occurs twice.
    """
    return read_dataset(path, name).questions


def world_questions(questions: Iterable[Any]) -> list[GoldQuestion]:
    """The questions of a world without their gold plans, which nothing here may look at."""
    return [_of_world(question) for question in questions]


def _of_world(question: Any) -> GoldQuestion:
    """A choice keeps its options: they are in the question."""
    checked = GoldQuestion.model_validate(question)
    return checked.model_copy(update={"options": question.candidates}) if question.type == "choice" else checked


def fingerprint(questions: Iterable[GoldQuestion]) -> str:
    """Two lists with the same fingerprint ask the same, with the same gold."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(question.model_dump_json().encode() + b"\n")
    return digest.hexdigest()
