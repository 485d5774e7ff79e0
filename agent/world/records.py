"""What a world's files hold, the same for every generator: documents and what they state, questions and their plans.

A field that a later generator brought is left out of the file where it says nothing, so that old files stay as they
were, byte for byte.
"""

from collections.abc import Callable
from operator import not_
from typing import Literal, TypeVar

from pydantic import Field

from agent.evidence import Frozen
from agent.world.relations import LISTINGS, RELATIONS, noun_of, sources_of

_T = TypeVar("_T")

QuestionType = Literal[
    "chain1",
    "chain2",
    "chain3",
    "chain4",
    "comparison",
    "intersection",
    "choice",
    "count",
    "time",
    "followup",
    "known",
    "unanswerable",
]


def _later(default: _T) -> _T:
    """A field of a later generator: it is written only where it says something."""
    says_nothing: Callable[[object], bool] = not_
    return Field(default=default, exclude_if=says_nothing)


class Stated(Frozen):
    """One fact that a document states: labels, so that it can be read without the universe."""

    subject: str
    relation: str
    values: tuple[str, ...]
    outdated: bool = False
    since: str = _later("")
    """Year from which it holds; "" where the document does not say."""
    until: str = _later("")
    """Year in which it ended."""
    follows: str = _later("")
    """What held before, where the document says so."""
    doubtful: bool = _later(default=False)
    """Said by a place that is less reliable than the rest, and wrong."""


class Document(Frozen):
    """One document, and what it states (nothing but checks and baselines may look at `states`)."""

    id: str
    source: str
    title: str
    text: str
    url: str
    date: str = ""
    states: tuple[Stated, ...] = ()


class Lookup(Frozen):
    """One thing to find out: what has `relation` to `subject`. Labels only, so that it can be read alone."""

    subject: str
    relation: str
    """Name of a relation or of a listing."""
    values: tuple[str, ...]
    gold: str
    """Id of the document that states the current values; "" where none does."""
    also: tuple[str, ...] = _later(())
    """Ids of further documents, where the values of a listing are one by one in several."""
    when: Literal["", "in", "before", "since"] = _later("")
    """For what changes: who or what it was in a year, before a person, or since when it is so."""
    what: str = _later("")
    """The year or the name that `when` speaks of."""

    @property
    def noun(self) -> str:
        """For example "birth year", or "people born in"."""
        return noun_of(self.relation)

    @property
    def is_list(self) -> bool:
        return self.relation in LISTINGS

    @property
    def query(self) -> str:
        link = "" if self.is_list else " of"
        when = {"": "", "in": f" in {self.what}", "before": f" before {self.what}", "since": f" {self.what} since"}
        return f"{self.noun}{link} {self.subject}{when[self.when]}"

    @property
    def rephrased(self) -> str:
        """The same thing in other words; for what changes, in the words of a report."""
        return self.queries[1]

    @property
    def queries(self) -> tuple[str, ...]:
        """The standard query and every other wording: what one misses, another may find."""
        known = RELATIONS.get(self.relation)
        others = known.rephrased if known else (LISTINGS[self.relation].rephrased,)
        return (self.query, *(text.format(s=self.subject) for text in others))

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it can be, the most current source last."""
        return sources_of(self.relation)


class Question(Frozen):
    """One question of the little world."""

    id: str
    type: QuestionType
    question: str
    answers: tuple[str, ...]
    """Empty exactly where `unanswerable`."""
    supporting: tuple[str, ...]
    hops: int
    plan: tuple[tuple[Lookup, ...], ...]
    """The gold plan: the look-ups of each round; those of one round can run at the same time."""
    asks: Literal["", "earlier", "later"] = ""
    """Which end of a comparison is wanted."""
    candidates: tuple[str, ...] = ()
    """Names that a comparison decides between, in the order of the last round's look-ups; or a choice's options."""
    reveals: bool = False
    """Whether it needs a name that only a search reveals."""
    trap: bool = False
    """Whether a namesake, an outdated or a contradicting page is among what the gold plan finds."""
    web_only: bool = True
    """Whether web pages alone would do."""
    history: tuple[tuple[str, str], ...] = _later(())
    """Earlier questions of the conversation with their answers, oldest first; the question may lean on them."""
    unanswerable: bool = _later(default=False)
    """Whether nothing in the world answers it: to say so is right, and any answer is wrong."""
    well_known: bool = _later(default=False)
    """Whether it is of the closed set that is the same in every world, so that it can be known by heart."""
    shard: int = _later(0)
    """The part of a large world in which it was drawn; its names are in no other part."""
