"""The oracle's plans: which queries go to which sources in a round, spelled as a protocol spells them."""

import json
from collections.abc import Sequence
from itertools import pairwise

from agent.protocols import TextProtocol
from agent.world.records import Lookup
from train.sft.oracle.queries import filled, first_query, other_queries, three_queries

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TITLES = {"web": "Web", "news": "News", "arxiv": "arXiv", "kg": "KG"}
"""How the plans of `dag` call the sources."""


class Plans:
    """Writes one plan after the other and remembers what it searched for."""

    def __init__(self, protocol: TextProtocol) -> None:
        self._protocol = protocol
        self._searched: dict[Lookup, tuple[str, ...]] = {}
        self._tries: dict[Lookup, int] = {}
        self.lines: list[Lookup] = []
        """The look-up behind each query of the last plan."""

    @property
    def parallel(self) -> bool:
        """Whether one round can look for several things."""
        return self._protocol.plan in ("lines", "queries")

    def tries(self, lookup: Lookup) -> int:
        """Rounds that looked for it."""
        return self._tries.get(lookup, 0)

    def forget(self, lookup: Lookup) -> None:
        """Forget a search for it: its query was never finished."""
        self._searched.pop(lookup, None)
        self._tries.pop(lookup, None)

    def write(self, lookups: Sequence[Lookup], *, chain: bool = False) -> str:
        """The text of a plan for these; as a `chain`, each searches for what the one before it finds."""
        searches = [(lookup, query, source) for lookup in lookups for query, source in self._queries(lookup, lookups)]
        self.lines = [lookup for lookup, _, _ in searches]
        for lookup in lookups:
            queries = tuple(query for one, query, _ in searches if one == lookup)
            self._searched[lookup] = (*self._searched.get(lookup, ()), *queries)
            self._tries[lookup] = self.tries(lookup) + 1
        if self._protocol.plan == "graph":
            (lookup, query, _), *_ = searches
            fields = {"query": query, "entity": [lookup.subject], "relation": [lookup.noun]}
            return json.dumps(fields, ensure_ascii=False)
        if self._protocol.plan != "lines":
            return f"{self._protocol.separator} ".join(query for _, query, _ in searches)
        queries = [_referred(searches, place) if chain else query for place, (_, query, _) in enumerate(searches)]
        return self._lines([(query, source) for query, (_, _, source) in zip(queries, searches, strict=True)])

    def _lines(self, searches: Sequence[tuple[str, str]]) -> str:
        if self._protocol.name == "dag":
            lines = [f"{_LETTERS[n]}: {query} ({_TITLES[source]})" for n, (query, source) in enumerate(searches)]
            return "\n" + "\n".join(["Nodes:", *lines, "Edges:", "none"]) + "\n"
        lines = [f"{_LETTERS[n]}: {query} ({source})" for n, (query, source) in enumerate(searches)]
        return "\n" + "\n".join(lines) + "\n"

    def _queries(self, lookup: Lookup, beside: Sequence[Lookup]) -> list[tuple[str, str]]:
        """Query and source of every search for one look-up in this round."""
        before = self._searched.get(lookup, ())
        if self._protocol.plan == "lines":
            if self._protocol.plans == 1:
                return self._at_once(lookup)
            if not before:
                return [(first_query(lookup), source) for source in lookup.sources]
            others = other_queries(lookup, tried=before)[:2]
            return [(query, source) for query in others for source in lookup.sources]
        if self._protocol.plan == "queries":
            several = 3 if len(beside) == 1 else 1
            if not before:
                queries = three_queries(lookup)[:several]
            else:
                queries = other_queries(lookup, tried=before)[: min(several, 2)]
            return [(query, "all") for query in queries]
        return [(other_queries(lookup, tried=before)[0] if before else first_query(lookup), "all")]

    @staticmethod
    def _at_once(lookup: Lookup) -> list[tuple[str, str]]:
        """Where there is one plan: the best query of every source, and another one of the most current."""
        searches = [(first_query(lookup), source) for source in lookup.sources]
        other = next(iter(other_queries(lookup, tried=(first_query(lookup),))), None)
        return [*searches, (other, lookup.sources[-1])] if other else searches


def _referred(searches: Sequence[tuple[Lookup, str, str]], place: int) -> str:
    """The query at a place of a chain, with a reference to the line that finds its subject."""
    lookup, query, _ = searches[place]
    parent = next((n for n, (one, _, _) in enumerate(searches[:place]) if one.values == (lookup.subject,)), None)
    return query if parent is None else filled(lookup, f"#{_LETTERS[parent]}")


def can_fill(plan: Sequence[Sequence[Lookup]], protocol: TextProtocol) -> bool:
    """Whether one round can follow a chain: every step but the last has one source, and there is nothing else."""
    steps = [stage[0] for stage in plan if len(stage) == 1]
    if "fill" not in protocol.tags or len(steps) < len(plan) or len(steps) < 2:
        return False
    linked = all(parent.values == (child.subject,) for parent, child in pairwise(steps))
    subjects = {step.subject for step in steps}
    return linked and len(subjects) == len(steps) and all(len(step.sources) == 1 for step in steps[:-1])
