"""Natural Questions, TriviaQA, PopQA, Bamboogle, FRAMES, FlashRAG's form of many sets, and multiple choice.

The forms of choice are those of MMLU, MMLU-Pro, ARC, CommonsenseQA, OpenBookQA and MedQA: a question with options.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from pydantic import AliasChoices, Field, field_validator, model_validator

from agent.outbound.urls import split_url
from agent.sources.questions import GoldQuestion
from train.evaluation.choices import LETTERS
from train.evaluation.datasets.base import (
    AnswerAliases,
    Paragraph,
    PublishedPart,
    PublishedQuestion,
    Row,
    distinct,
    gold_in,
)
from train.evaluation.datasets.files import literal_list
from train.evaluation.datasets.multihop import in_pairs

OPTION_FIELDS: Final = ("choices", "options")
ANSWER_FIELDS: Final = ("answerKey", "answer_idx", "answer_index", "answer", "label")


class NaturalQuestions(PublishedQuestion):
    """NQ-open, EfficientQA's files, and the table that DPR made of it."""

    question: str
    answer: tuple[str, ...] = Field(
        validation_alias=AliasChoices("answer_and_def_correct_predictions", "answer", "answers")
    )

    @field_validator("answer", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return literal_list(value) if isinstance(value, str) else value

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        return GoldQuestion(
            id=f"nq-{number}", question=self.question.strip(), answers=distinct(*self.answer), dataset="nq"
        )


class _TriviaAnswer(PublishedPart):
    value: str = Field(default="", validation_alias=AliasChoices("Value", "value"))
    aliases: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("Aliases", "aliases"))
    normalized: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("NormalizedAliases", "normalized_aliases")
    )
    human: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("HumanAnswers", "human_answers"))


class TriviaQa(PublishedQuestion):
    id: str = Field(validation_alias=AliasChoices("QuestionId", "question_id"))
    question: str = Field(validation_alias=AliasChoices("Question", "question"))
    answer: _TriviaAnswer = Field(validation_alias=AliasChoices("Answer", "answer"))

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        gold = self.answer
        answers = distinct(gold.value, *gold.aliases, *gold.normalized, *gold.human)
        return GoldQuestion(id=self.id, question=self.question.strip(), answers=answers, dataset="triviaqa")


class PopQa(PublishedQuestion):
    id: str
    question: str
    possible_answers: tuple[str, ...]
    prop: str = ""

    @field_validator("possible_answers", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return literal_list(value) if isinstance(value, str) else value

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        return GoldQuestion(
            id=self.id,
            question=self.question.strip(),
            answers=distinct(*self.possible_answers),
            hops=1,
            type=self.prop,
            dataset="popqa",
        )


class Bamboogle(PublishedQuestion):
    question: str = Field(validation_alias="Question")
    answer: str = Field(validation_alias="Answer")
    second: str = Field(default="", validation_alias="Answer 2")

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        answers = distinct(self.answer, self.second)
        return GoldQuestion(
            id=f"bamboogle-{number}", question=self.question.strip(), answers=answers, hops=2, dataset="bamboogle"
        )


class FramesRow(PublishedQuestion):
    """The gold are pages of Wikipedia, named by their addresses; no text of theirs comes with it."""

    number: str = Field(default="", validation_alias=AliasChoices("", "Unnamed: 0", "id"))
    prompt: str = Field(validation_alias="Prompt")
    answer: str = Field(validation_alias="Answer")
    wiki_links: tuple[str, ...] = ()
    reasoning_types: str = ""

    @field_validator("wiki_links", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return literal_list(value) if isinstance(value, str) else value

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        links = distinct(*self.wiki_links)
        return GoldQuestion(
            id=f"frames-{self.number or number - 1}",
            question=self.prompt.strip(),
            answers=distinct(self.answer),
            supporting=links,
            titles=tuple(map(page_title, links)),
            type=self.reasoning_types,
            dataset="frames",
        )


def page_title(url: str) -> str:
    """The title of a page of Wikipedia, from its address."""
    return unquote(split_url(url).path.rpartition("/wiki/")[2]).replace("_", " ")


class FlashRag(PublishedQuestion):
    """FlashRAG's form, also Search-R1's. Multi-hop sets keep their paragraphs under `metadata`."""

    id: str = ""
    question: str
    golden_answers: tuple[str, ...]
    data_source: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("golden_answers", mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("metadata", mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        return {} if value is None else value

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        facts = in_pairs(self.metadata.get("supporting_facts") or [], "title", "sent_id")
        supporting, titles = gold_in((str(fact[0]) for fact in facts), self.paragraphs())
        return GoldQuestion(
            id=self.id or f"{self.data_source or 'flashrag'}-{number}",
            question=self.question.strip(),
            answers=distinct(*self.golden_answers),
            supporting=supporting,
            titles=titles,
            type=str(self.metadata.get("type") or ""),
            dataset=self.data_source or "flashrag",
        )

    def paragraphs(self) -> Iterable[Paragraph]:
        pairs = in_pairs(self.metadata.get("context") or [], "title", "sentences", "content")
        return [Paragraph.of(str(title), sentences) for title, sentences in pairs]


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
