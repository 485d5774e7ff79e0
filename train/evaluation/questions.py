"""What is asked in an evaluation: a question list, or the questions of a little world."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from agent.sources.questions import Question, read_questions

__all__ = ["Question", "fingerprint", "read_questions", "take", "world_questions"]


def world_questions(questions: Iterable[Any]) -> list[Question]:
    """The questions of a world without their gold plans, which nothing here may look at."""
    return [Question.model_validate(question) for question in questions]


def take(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """The first `limit`: a longer run contains a shorter one."""
    return list(questions if limit is None else questions[:limit])


def fingerprint(questions: Iterable[Question]) -> str:
    """Two lists with the same fingerprint ask the same, with the same gold."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(question.model_dump_json().encode() + b"\n")
    return digest.hexdigest()
