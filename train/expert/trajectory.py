"""The expert at work: it searches with the question, then for what is missing by name, and writes what it found.

The loop's own code reads its plans, and writes its observations from what the real index gives, so a trained policy
meets the same; only where several questions come at once, each query shows fewer passages.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agent.errors import PlanError
from agent.evidence import Passage
from agent.loop.observation import show
from agent.plan import EVERY_SOURCE, parse_plan
from agent.protocols import TextProtocol
from agent.sources.corpus.split import BETWEEN_TITLES
from agent.trace.attempts import UNKNOWN
from train.expert.plan import NoPlan, PlannedQuestion, QuotedFact
from train.expert.text import holds, mentions, plain_title, query_of
from train.sft.episodes import EpisodePiece

Find = Callable[[str, int], list[Passage]]
"""A query and how many passages it may give → passages, best first."""
Phrasing = Literal["name", "words", "of"]
"""Of a query for something about a name: the name alone, with the words of what is wanted, "director of X"."""
_LETTERS = "ABCDEFGH"
_COMMA = re.compile("[,，]")
_MANY = 1_000_000
_MISSING = "Missing."
_SPARE = 12
"""Hits beyond the protocol's, in the place of those that are left out."""


def whole_id(passage: str) -> str:
    """The id of the document that a passage is a part of."""
    return passage.rpartition("#")[0] or passage


def says(passage: Passage, fact: QuotedFact) -> bool:
    """Whether a passage that was found is the one that a fact quotes."""
    return whole_id(passage.id) == fact.passage and fact.quote in passage.text


@dataclass
class _Known:
    """What the expert has seen and found so far."""

    observed: list[Passage] = field(default_factory=list[Passage])
    facts: dict[QuotedFact, int] = field(default_factory=dict[QuotedFact, int])
    """Fact → the number of its passage."""
    tried: set[tuple[QuotedFact, str]] = field(default_factory=set[tuple[QuotedFact, str]])
    """What a query of its own looked for, and that query."""


def trajectory(
    question: PlannedQuestion,
    protocol: TextProtocol,
    find: Find,
    *,
    phrasing: Phrasing = "words",
    without: frozenset[str] = frozenset(),
) -> list[EpisodePiece]:
    """The pieces of one trajectory.

    Args:
        question: with its plan.
        protocol: how things are spelled.
        find: the index.
        phrasing: of the queries after the first one.
        without: passages that no search finds: then the expert says that it does not know.

    Raises:
        NoPlan: the searches do not find what the plan needs, it does not fit the protocol's rounds, or the protocol
            reads other queries in what would be written.
    """
    return list(_Writer(question, protocol, find, phrasing, without).pieces())


def _phrased(fact: QuotedFact, phrasing: Phrasing) -> list[str]:
    """The parts of a query."""
    if fact.query:
        return [fact.query]
    if phrasing == "words" or not fact.about:
        return [fact.about, fact.keywords]
    if phrasing == "of" and fact.relation:
        return [f"{fact.relation} of", fact.about]
    return [fact.about]


class _Writer:
    def __init__(
        self, question: PlannedQuestion, protocol: TextProtocol, find: Find, phrasing: Phrasing, without: frozenset[str]
    ) -> None:
        self._question, self._protocol, self._find, self._without = question, protocol, find, without
        self._phrasings = list(dict.fromkeys((phrasing, "words")))
        self._known = _Known()
        self._lines = protocol.plan == "lines"
        self._quotes = protocol.plan == "queries" and protocol.separator == ","

    def pieces(self) -> Iterator[EpisodePiece]:
        protocol, planned = self._protocol, self._question
        yield EpisodePiece("prompt", protocol.prompt_text(planned.question, history=planned.history))
        before = self._restated()
        queries = (list(planned.queries) or [self._first_query()])[: protocol.max_queries]
        for _ in range(protocol.max_rounds):
            queries = [self._without_quotes(query) for query in queries]
            yield EpisodePiece("policy", self._written(before, self._block("search", self._plan(queries))))
            yield EpisodePiece("environment", self._search(queries))
            new = self._look()
            before = self._said(new)
            missing = self._missing()
            if missing and self._without and self._gives_away():
                raise NoPlan("another passage holds the answer that should be missing")
            if not missing:
                yield EpisodePiece("policy", self._answering(before, planned.plan.answer))
                return
            queries = self._next_queries(missing)
            if not queries:
                yield EpisodePiece("policy", self._answering(before, UNKNOWN))
                return
        raise NoPlan("its rounds do not suffice")

    # Searching

    def _first_query(self) -> str:
        question = " ".join(self._question.whole.split())
        return query_of([question]) if question.endswith(")") or "#" in question else question

    def _without_quotes(self, query: str) -> str:
        """The query without quotes of its own, where quotes keep the commas of a query from separating two."""
        return " ".join(query.replace('"', " ").split()) if self._quotes else query

    def _plan(self, queries: Sequence[str]) -> str:
        """The text of a plan.

        Raises:
            NoPlan: the loop would read other queries in it.
        """
        if self._lines:
            text = "\n" + "".join(f"{letter}: {query}\n" for letter, query in zip(_LETTERS, queries, strict=False))
        else:
            quoted = (f'"{query}"' if self._quotes and _COMMA.search(query) else query for query in queries)
            text = f"{self._protocol.separator} ".join(quoted)
        if self._read(text) != list(queries):
            raise NoPlan("the protocol reads other queries in what would be written")
        return text

    def _read(self, text: str) -> list[str]:
        try:
            return [node.query for node in parse_plan(text, protocol=self._protocol, sources=(EVERY_SOURCE,)).nodes]
        except PlanError:
            return []

    def _search(self, queries: Sequence[str]) -> str:
        limit = self._question.passages or self._protocol.passages
        found: dict[str, list[Passage]] = {}
        for letter, query in zip(_LETTERS, queries, strict=False):
            hits = [hit for hit in self._find(query, limit + _SPARE) if whole_id(hit.id) not in self._without]
            found[letter] = [hit.model_copy(update={"node": letter}) for hit in hits[:limit]]
        observation = show(
            found, [], protocol=self._protocol, seen=self._known.observed, limit=_MANY, fits=lambda _: True,
        )  # fmt: skip
        self._known.observed.extend(observation.passages)
        return observation.text

    def _look(self) -> list[QuotedFact]:
        """The facts that are found now and were not before: a later one only where the name it is about is known."""
        new: list[QuotedFact] = []
        for stage in self._question.plan.stages:
            for fact in stage:
                number = next((one.number for one in self._known.observed if says(one, fact)), 0)
                if number and fact not in self._known.facts:
                    self._known.facts[fact] = number
                    new.append(fact)
            if any(fact not in self._known.facts for fact in stage):
                break
        return new

    def _missing(self) -> list[QuotedFact]:
        """What the first stage that is not done lacks."""
        lacking = ([f for f in stage if f not in self._known.facts] for stage in self._question.plan.stages)
        return next((facts for facts in lacking if facts), [])

    def _next_queries(self, missing: Sequence[QuotedFact]) -> list[str]:
        """Queries for what is missing; none where there is nothing more to try, and that is as it should be.

        Raises:
            NoPlan: it should have been found.
        """
        missing = missing if self._lines else missing[:1]
        queries: list[str] = []
        for fact in missing:
            if fact.about and not self._is_named(fact.about):
                raise NoPlan("what has to be searched for is not named by what was found")
            phrased = (query_of(_phrased(fact, phrasing)) for phrasing in self._phrasings)
            query = next((query for query in phrased if query and (fact, query) not in self._known.tried), "")
            if not query and fact.passage not in self._without:
                raise NoPlan("the searches do not find a passage that it needs")
            if query:
                self._known.tried.add((fact, query))
                queries.append(query)
        return list(dict.fromkeys(queries))

    def _is_named(self, about: str) -> bool:
        known = [self._question.whole, *(fact.summary for fact in self._known.facts)]
        return any(mentions(text, about) for text in known)

    def _gives_away(self) -> bool:
        answer = self._question.plan.answer
        return any(holds(passage.text, answer) for passage in self._known.observed)

    # What is written

    def _block(self, role: str, text: str) -> str:
        return f"{self._protocol.opening(role)}{text}{self._protocol.closing(role)}"  # pyright: ignore[reportArgumentType]

    def _written(self, *parts: str) -> str:
        return "\n".join(part for part in parts if part)

    def _restated(self) -> str:
        restated = self._question.restated
        if restated and "restated" in self._protocol.tags:
            return self._block("restated", restated)
        return ""

    def _said(self, new: Sequence[QuotedFact]) -> str:
        """What a round gave: a merge where the protocol has one, plain text otherwise."""
        lines = [self._cited(fact) for fact in new]
        plan = self._question.plan
        done = not self._missing()
        if done and plan.because:
            lines.append(plan.because)
        if "merge" not in self._protocol.tags:
            return "\n".join(lines or [_MISSING])
        return self._block("merge", "\n" + "".join(f"{line}\n" for line in lines or [_MISSING]))

    def _cited(self, fact: QuotedFact) -> str:
        number = self._known.facts[fact]
        line = self._as_observed(fact, number).summary
        return f"- {line} [{number}]" if self._protocol.numbered else line

    def _as_observed(self, fact: QuotedFact, number: int) -> QuotedFact:
        """The fact under the title of the part of its document that was found, "Manual › Keys" for "Manual"."""
        title = next(passage.title for passage in self._known.observed if passage.number == number)
        return replace(fact, title=plain_title(title)) if title.startswith(f"{fact.title}{BETWEEN_TITLES}") else fact

    def _answering(self, before: str, answer: str) -> str:
        parts = [before]
        if "merge" not in self._protocol.tags and self._known.facts and answer != UNKNOWN:
            quotes = list(dict.fromkeys(fact.quote for fact in self._known.facts))
            parts.append(self._block("evidence", "\n" + "".join(f"{text}\n" for text in quotes)))
        return self._written(*parts, self._block("answer", answer))
