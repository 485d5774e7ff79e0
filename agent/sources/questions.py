"""Question lists: JSON lines with gold answers, and the ids of gold passages where they are known."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from agent.errors import CorpusError
from agent.files.foreign import read_file
from agent.sources.corpus.documents import line_problem

MOST_BYTES: Final = 2 << 30
"""Of a list of questions: it is read as a whole."""
_HINT = 'each line must be one object like {"id": "…", "question": "…", "answers": ["…"]}'


class GoldQuestion(BaseModel):
    """One question. Fields that no one needs are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True, from_attributes=True)

    id: str
    question: str
    unanswerable: bool = False
    """Whether saying that one does not know is right, and anything else is wrong."""
    answers: tuple[str, ...]
    """Any of them is right; empty only for what cannot be answered."""
    supporting: tuple[str, ...] = ()
    """Ids of the passages that are needed."""
    titles: tuple[str, ...] = ()
    """The title of each of them where it is known, for a corpus that has other ids."""
    hops: int | None = None
    type: str = ""
    options: tuple[str, ...] = ()
    """What a multiple choice offers, in the order of its letters."""
    dataset: str = ""
    """The published set that it comes from."""
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of the conversation as (question, answer), oldest first."""

    @field_validator("id", "question")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("answers")
    @classmethod
    def _one_can_be_given(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("unanswerable"):
            return value
        if not any(c.isalnum() for answer in value for c in answer):
            raise ValueError("needs at least one answer that holds a letter or a digit")
        return value


def read_questions(path: Path) -> list[GoldQuestion]:
    """Read a question list.

    Raises:
        CorpusError: a missing or empty file, a line that is no question, or an id that occurs twice.
    """
    questions: dict[str, GoldQuestion] = {}
    try:
        lines = read_file(path, most=MOST_BYTES).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise CorpusError(f"the questions {path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = GoldQuestion.model_validate_json(line)
        except ValidationError as error:
            raise CorpusError(f"{path}, line {number}: {line_problem(error)}; {_HINT}") from error
        if question.id in questions:
            raise CorpusError(
                f"{path}, line {number}: the id {question.id!r} occurs twice; give every question its own"
            )
        questions[question.id] = question
    if not questions:
        raise CorpusError(f"there are no questions in {path}; {_HINT}")
    return list(questions.values())


def gold_found(gold: Iterable[str], observed: Iterable[str]) -> set[str]:
    """Which gold ids were observed; a part `ID#2` of a long passage counts as the passage."""
    names = {name for passage in observed for name in (passage, passage.rpartition("#")[0])}
    return {passage for passage in gold if passage in names}
