"""HotpotQA, 2WikiMultiHopQA, MuSiQue and MoreHopQA: questions over several paragraphs, which come with them."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import AliasChoices, Field, field_validator

from agent.sources.questions import GoldQuestion
from train.evaluation.datasets.base import AnswerAliases, Paragraph, PublishedPart, PublishedQuestion, distinct, gold_in

_ID = AliasChoices("_id", "id")


def in_pairs(value: Any, first: str, *others: str) -> Any:
    """Columns as pairs: hubs publish [[title, x], …] as {"title": […], "x": […]}."""
    if isinstance(value, dict):
        other = next((name for name in others if name in value), "")
        if first in value and other:
            return list(zip(value[first], value[other], strict=True))
    return value


class RowWithParagraphs(PublishedQuestion):
    """A row with paragraphs as [title, sentences]."""

    context: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @field_validator("context", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        return in_pairs(value, "title", "sentences", "content")

    def paragraphs(self) -> Iterable[Paragraph]:
        return [Paragraph.of(title, sentences) for title, sentences in self.context]


class Hotpot(RowWithParagraphs):
    id: str = Field(validation_alias=_ID)
    question: str
    answer: str
    type: str = ""
    supporting_facts: tuple[tuple[str, int], ...]

    @field_validator("supporting_facts", mode="before")
    @classmethod
    def _fact_pairs(cls, value: Any) -> Any:
        return in_pairs(value, "title", "sent_id")

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        return self._question("hotpotqa", (self.answer,))

    def _question(self, dataset: str, answers: Sequence[str]) -> GoldQuestion:
        supporting, titles = gold_in((title for title, _ in self.supporting_facts), self.paragraphs())
        return GoldQuestion(
            id=self.id,
            question=self.question.strip(),
            answers=distinct(*answers),
            supporting=supporting,
            titles=titles,
            hops=len(titles) or None,
            type=self.type,
            dataset=dataset,
        )


class TwoWiki(Hotpot):
    """Aliases and demonyms of the answer's Wikidata item, where `id_aliases.json` lies beside, are right as well."""

    answer_id: str | None = None

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        return self._question("2wikimultihopqa", (self.answer, *beside.aliases.get(self.answer_id or "", ())))


class _MusiqueParagraph(PublishedPart):
    title: str
    text: str = Field(validation_alias=AliasChoices("paragraph_text", "text"))
    is_supporting: bool = False

    @property
    def paragraph(self) -> Paragraph:
        return Paragraph.of(self.title, self.text)


class Musique(PublishedQuestion):
    """One that is not answerable from its paragraphs is a question without an answer."""

    id: str
    question: str
    answer: str
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True
    context: tuple[_MusiqueParagraph, ...] = Field(validation_alias="paragraphs")
    question_decomposition: tuple[dict[str, Any], ...] = ()

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        gold = [p.paragraph for p in self.context if p.is_supporting and self.answerable]
        return GoldQuestion(
            id=self.id,
            question=self.question.strip(),
            unanswerable=not self.answerable,
            answers=distinct(self.answer, *self.answer_aliases) if self.answerable else (),
            supporting=tuple(p.id for p in gold),
            titles=tuple(p.title for p in gold),
            hops=len(self.question_decomposition) or None,
            type=self.id.partition("__")[0] if "__" in self.id else "",
            dataset="musique",
        )

    def paragraphs(self) -> Iterable[Paragraph]:
        return [p.paragraph for p in self.context]


class MoreHop(RowWithParagraphs):
    """The gold is what its decomposition names; the last hop is reasoning and needs no paragraph."""

    id: str = Field(validation_alias=_ID)
    question: str
    answer: str
    previous_question: str
    no_of_hops: int
    reasoning_type: str = ""
    question_decomposition: tuple[dict[str, Any], ...] = ()

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        named = [str(step.get("paragraph_support_title") or "") for step in self.question_decomposition]
        supporting, titles = gold_in(filter(None, named), self.paragraphs())
        return GoldQuestion(
            id=self.id,
            question=self.question.strip(),
            answers=distinct(self.answer),
            supporting=supporting,
            titles=titles,
            hops=self.no_of_hops,
            type=self.reasoning_type,
            dataset="morehopqa",
        )
