"""Multiple choice in the forms of MMLU, MMLU-Pro, ARC, CommonsenseQA, OpenBookQA and MedQA: a question with options."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import AliasChoices, Field, model_validator

from agent.sources.questions import GoldQuestion
from train.evaluation.choices import LETTERS
from train.evaluation.datasets.base import AnswerAliases, PublishedQuestion, Row

OPTION_FIELDS: Final = ("choices", "options")
ANSWER_FIELDS: Final = ("answerKey", "answer_idx", "answer_index", "answer", "label")


class ChoiceRow(PublishedQuestion):
    """A question with its options and the place of the right one, however the file writes them."""

    id: str = Field(default="", validation_alias=AliasChoices("id", "question_id"))
    stem: str
    options: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))
    right: int
    type: str = Field(default="", validation_alias=AliasChoices("subject", "category", "type"))

    @model_validator(mode="before")
    @classmethod
    def _read(cls, row: Any) -> Any:
        return row if "stem" in row and "right" in row else {**row, **_parts(row)}

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        offered = " ".join(f"({letter}) {option}" for letter, option in zip(LETTERS, self.options, strict=False))
        right = self.options[self.right]
        return GoldQuestion(
            id=self.id or f"choice-{number}",
            question=f"{self.stem.strip()} Options: {offered}",
            answers=(right,) if any(c.isalnum() for c in right) else (LETTERS[self.right],),
            type=self.type,
            options=self.options,
            dataset="choice",
        )


def is_choice(row: Row) -> bool:
    """Whether a row has options: as a list, under letters, or in columns named A, B and so on."""
    inner = row.get("question")
    holder = inner if isinstance(inner, Mapping) else row
    listed = any(isinstance(holder.get(name), list | tuple | Mapping) for name in OPTION_FIELDS)
    return (listed or {"A", "B", "question"} <= row.keys()) and any(name in row for name in ANSWER_FIELDS)


def _parts(row: Row) -> dict[str, Any]:
    inner = row.get("question")
    holder = inner if isinstance(inner, Mapping) else row
    labels, options = _options(holder)
    return {
        "stem": holder.get("stem") or holder.get("question"),
        "options": options,
        "right": _right(row, labels, options),
    }


def _options(holder: Row) -> tuple[list[str], list[str]]:
    """Labels and texts."""
    given = next((holder[name] for name in OPTION_FIELDS if name in holder), None)
    if given is None:
        letters = [letter for letter in LETTERS if letter in holder]
        return letters, [str(holder[letter]) for letter in letters]
    if isinstance(given, Mapping):
        if "text" in given and "label" in given:
            return [str(label) for label in given["label"]], [str(text) for text in given["text"]]
        return [str(label) for label in given], [str(text) for text in given.values()]
    if given and isinstance(given[0], Mapping):
        return [str(one.get("label")) for one in given], [str(one.get("text")) for one in given]
    return list(LETTERS[: len(given)]), [str(text) for text in given]


def _right(row: Row, labels: Sequence[str], options: Sequence[str]) -> int:
    """The place of the right option, which files give by label, by place from 0, or in words."""
    for name in ANSWER_FIELDS:
        given = row.get(name)
        if given is None:
            continue
        if isinstance(given, int) and 0 <= given < len(options):
            return given
        if str(given).strip() in labels:
            return labels.index(str(given).strip())
        if given in options:
            return options.index(given)
    raise ValueError("the right option is not among the options")
