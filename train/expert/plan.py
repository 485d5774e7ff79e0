"""What the expert has to find for a question, in which order, and what it then answers."""

from dataclasses import dataclass
from typing import Protocol

from agent.evidence import Frozen


class Gold(Frozen):
    """A passage that a question needs."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class QuotedFact:
    """What one passage says towards the answer."""

    passage: str
    """Its id."""
    quote: str
    """The sentence that says it, exactly as the passage has it."""
    about: str = ""
    """What to search for where the question itself did not find the passage: a name that is known by then."""
    keywords: str = ""
    """Words of what is wanted about it."""
    query: str = ""
    """A whole query for it, where there is one."""
    title: str = ""
    """What the passage is about."""
    relation: str = ""
    """In which relation the value stands to that, where it is known."""
    value: str = ""
    """What the quote says that counts; empty: all of it."""

    @property
    def summary(self) -> str:
        """The fact in short: "The Straw Hat, composer: Isaac Schwartz"."""
        wanted = self.relation or (self.keywords if self.value else "")
        about = ", ".join(part for part in (self.title, wanted) if part)
        said = self.value or self.quote
        return f"{about}: {said}" if about else said


@dataclass(frozen=True)
class SolutionPlan:
    """The facts, stage by stage: those of a stage can be searched for at the same time."""

    stages: tuple[tuple[QuotedFact, ...], ...]
    answer: str
    because: str = ""
    """What follows from the facts together, where the answer is no part of one of them."""

    @property
    def facts(self) -> list[QuotedFact]:
        return [fact for stage in self.stages for fact in stage]


class NoPlan(LookupError):
    """Nothing can be made of a question; the message is the reason that the report counts."""


class GoldPassages(Protocol):
    """Gives the passage of an id."""

    def __call__(self, passage: str) -> Gold | None: ...


@dataclass(frozen=True)
class PlannedQuestion:
    """A question, what was said before it, and its plan."""

    id: str
    question: str
    kind: str
    plan: SolutionPlan
    history: tuple[tuple[str, str], ...] = ()
    restated: str = ""
    """The question without what leans on earlier turns."""
    queries: tuple[str, ...] = ()
    """The first queries, where they are others than the question."""
    passages: int = 0
    """That each query shows, where it is another number than the protocol's."""

    @property
    def whole(self) -> str:
        return self.restated or self.question
