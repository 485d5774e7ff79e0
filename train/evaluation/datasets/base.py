"""What every published set comes down to: rows that are questions, some of them with the paragraphs to search in."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from agent.sources.questions import GoldQuestion

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A piece of text that comes with a question. Its id is made of what it says: the same text is one passage."""

    id: str
    title: str
    text: str

    @classmethod
    def of(cls, title: str, sentences: Sequence[str] | str) -> "Paragraph":
        pieces = [sentences] if isinstance(sentences, str) else sentences
        text = " ".join(piece.strip() for piece in pieces if piece.strip())
        return cls(passage_id(title, text), title, text)


def passage_id(title: str, text: str) -> str:
    return "p" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class AnswerAliases:
    """What a file's neighbours add: other names of an answer, by the id of the thing that it is."""

    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict[str, tuple[str, ...]]())


NOTHING_BESIDE: Final = AnswerAliases()


class PublishedPart(BaseModel):
    """A part of a published file. Other fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True, populate_by_name=True)


class PublishedQuestion(PublishedPart):
    """One row of a published file."""

    @abstractmethod
    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        """The question, in the project's form. `number` counts from 1, for files without ids."""

    def paragraphs(self) -> Iterable[Paragraph]:
        """What comes with it to search in."""
        return ()


def distinct(*answers: str | None) -> tuple[str, ...]:
    """Answers, each once, without those that say nothing."""
    stripped = (answer.strip() for answer in answers if answer)
    return tuple(dict.fromkeys(answer for answer in stripped if answer))


def gold_in(titles: Iterable[str], there: Iterable[Paragraph]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids and the titles of gold paragraphs that are named by title.

    Where one of them is not there, no ids are given: a part of the gold must not pass for all of it.
    """
    wanted = tuple(dict.fromkeys(titles))
    known = {paragraph.title: paragraph.id for paragraph in there}
    ids = tuple(known[title] for title in wanted if title in known)
    return (ids if len(ids) == len(wanted) else ()), wanted
