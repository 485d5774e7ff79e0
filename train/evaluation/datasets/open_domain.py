"""Natural Questions, TriviaQA, PopQA, Bamboogle, FRAMES, and FlashRAG's form of many sets."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from pydantic import AliasChoices, Field, field_validator

from agent.outbound.urls import split_url
from agent.sources.questions import GoldQuestion
from train.evaluation.datasets.base import AnswerAliases, Paragraph, PublishedPart, PublishedQuestion, distinct, gold_in
from train.evaluation.datasets.files import literal_list
from train.evaluation.datasets.multihop import in_pairs


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
