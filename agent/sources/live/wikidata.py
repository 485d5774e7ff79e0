"""The knowledge graph, live: Wikidata. The names in a question, the items that bear them, one hop of their statements.

How a question is answered; never are more than three requests under way:

1. Each name in it (`mentions`, at most three) is looked up; the best two items are taken. Q-ids mean themselves.
2. REST gives their statements; where it fails as a machine, the action API gives the same in one request for both.
3. The names of their properties (with aliases) and of values come in batches of 50, and are remembered.
4. SPARQL comes second, as it alone knows the edges that lead to an item ("films directed by X"): where the question has
   "by" before the item's name, where no property of the item has a word or a meaning of the question, or always, if the
   source is configured so. It gets 8 s; where it fails, what REST gave is used.
5. Triples are ranked by the words they share with the question: at most 100 triples and 1,024 tokens.

A query that is SPARQL itself is sent as it is.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final, Literal

import httpx2

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import read_filters, unhonoured
from agent.sources.kg.rank import rank_triples
from agent.sources.kg.triples import GraphTriple, to_passages
from agent.sources.kg.words import asks, fold, meanings, stems
from agent.sources.limits import Limits
from agent.sources.live.mentions import item_ids, mentions
from agent.sources.live.wikibase import ItemStatement, Value, entity_id, worth_showing
from agent.sources.live.wikibase_api import BASE as SPARQL_BASE
from agent.sources.live.wikibase_api import (
    DEADLINE_SECONDS,
    FoundItem,
    Names,
    QueryService,
    Row,
    WikibaseApi,
    incoming_query,
    is_sparql,
    row_passages,
    together,
)

BASE: Final = "https://www.wikidata.org"
LIMITS: Final = Limits(concurrency=2, requests=1.0, per_seconds=1.0, timeout_seconds=20.0)
"""Each search is several requests."""
HONOURS: Final = frozenset({"lang"})
INCOMING_SECONDS: Final = 8.0
_TO_RANK_SECONDS: Final = 1.0
"""What remains for the names of the values, where the caller's time is short."""

Incoming = Literal["auto", "always", "never"]

_ITEMS: Final = 2
_MAX_PROPERTIES: Final = 200
_MAX_VALUES: Final = 150
"""Properties and values whose names are requested, at most."""
_SHOWN_QUALIFIERS: Final = 3
_WHEN: Final = ("P580", "P582", "P585")
"""Start, end and point in time: of all qualifiers they are shown first."""
_IDENTIFIER_WORDS: Final = frozenset("id ids identifier identifiers isbn issn doi orcid imdb viaf url code".split())
_OTHER_WAY: Final = frozenset({"upstream", "parse", "bad_query"})
"""Kinds of failure of REST after which the action API is tried."""


@dataclass(frozen=True)
class _Item:
    id: str
    label: str
    description: str = ""
    weight: float = 1.0
    """How sure it is that it is meant, from 0 to 1."""


@dataclass
class _Facts:
    """What a search knows so far."""

    items: list[_Item]
    statements: dict[str, list[ItemStatement]] = field(default_factory=dict[str, list[ItemStatement]])
    properties: dict[str, Names] = field(default_factory=dict[str, Names])
    incoming: list[GraphTriple] = field(default_factory=list[GraphTriple])
    places: dict[str, str] = field(default_factory=dict[str, str])
    """Property ids by their shown names."""
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def aliases(self) -> dict[str, Sequence[str]]:
        return {names.label: names.aliases for names in self.properties.values()}


class WikidataSource:
    """Facts of Wikidata, as passages `item | property | values`."""

    name = "wikidata"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base: str = BASE,
        sparql_base: str = SPARQL_BASE,
        lang: str = "en",
        incoming: Incoming = "auto",
        limits: Limits = LIMITS,
    ) -> None:
        """Ask the Wikibase under `base`.

        Args:
            client: shared; who made it closes it.
            base: without /w/api.php and /w/rest.php.
            sparql_base: without /sparql.
            lang: of names, where no filter asks for another.
            incoming: whether edges that lead to an item are requested: where the question wants them, always, never.
            limits: for the guard around this source.
        """
        self._api = WikibaseApi(client, base=base, name=self.name)
        self._service = QueryService(client, base=sparql_base, name=self.name)
        self._lang = lang
        self._incoming: Incoming = incoming
        self.limits = limits

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages of facts that fit the query.

        Raises:
            SourceError: with its kind.
        """
        notes = unhonoured(request.filters, honours=HONOURS, by=self.name)
        lang = read_filters(request.filters).lang.lower() or self._lang
        if not (lang.isascii() and lang.isalpha()):
            notes += (f"{self.name} knows no language '{lang}' and searched in '{self._lang}'",)
            lang = self._lang
        if request.limit < 1:
            return SearchResult(backend=self.name, notes=notes)
        if is_sparql(request.query):
            passages = row_passages(await self.sparql(request.query), limit=request.limit)
            return SearchResult(tuple(passages), backend=self.name, notes=notes)
        facts = _Facts(await self._items(request.query, lang=lang))
        await self._ask_statements(facts)
        await self._ask_properties(request.query, facts, lang=lang)
        if facts.items and self._wants_incoming(request.query, facts):
            await self._ask_incoming(request, facts, lang=lang)
        passages = await self._passages(request.query, facts, limit=request.limit, lang=lang)
        return SearchResult(tuple(passages), backend=self.name, notes=notes, failures=tuple(facts.failures))

    async def sparql(self, query: str, *, seconds: float = DEADLINE_SECONDS) -> list[Row]:
        """Give the rows of a SPARQL query within `seconds`; the service itself gives up after 60.

        Raises:
            SourceError: with its kind.
        """
        return await self._service.select(query, seconds=seconds)

    async def _items(self, query: str, *, lang: str) -> list[_Item]:
        if ids := item_ids(query):
            names = await self._api.names(ids[:_ITEMS], lang=lang)
            return [_Item(name, names[name].label if name in names else name) for name in ids[:_ITEMS]]
        named = mentions(query)
        found = await together(self._api.find(name, lang=lang) for name in named)
        ranked = [_ranked(query, name, items) for name, items in zip(named, found, strict=True)]
        items: dict[str, _Item] = {}
        for item in chain(*zip_longest(*ranked)):
            if item is not None:
                items.setdefault(item.id, item)
        return list(items.values())[:_ITEMS]

    async def _ask_statements(self, facts: _Facts) -> None:
        answers = await together(self._rest(item.id) for item in facts.items)
        for item, answer in zip(facts.items, answers, strict=True):
            if isinstance(answer, Failure):
                facts.failures.append(answer)
            else:
                facts.statements[item.id] = answer
        if left := [item.id for item in facts.items if item.id not in facts.statements]:
            facts.statements |= await self._api.claims(left)

    async def _rest(self, item: str) -> list[ItemStatement] | Failure:
        started = asyncio.get_running_loop().time()
        try:
            return await self._api.statements(item)
        except SourceError as error:
            if error.kind not in _OTHER_WAY:
                raise
            return Failure("wikidata REST", error.kind, str(error), asyncio.get_running_loop().time() - started)

    async def _ask_properties(self, query: str, facts: _Facts, *, lang: str) -> None:
        identifiers = bool(_IDENTIFIER_WORDS & set(fold(query).split()))
        for item, statements in facts.statements.items():
            facts.statements[item] = [s for s in statements if worth_showing(s, identifiers=identifiers)]
        visible = [statement for statements in facts.statements.values() for statement in statements]
        ids = [s.property for s in visible] + [q for s in visible for q, _ in _qualifiers(s)]
        ids = list(dict.fromkeys(ids))[:_MAX_PROPERTIES]
        facts.properties = await self._api.names(ids, lang=lang, aliases=True)
        facts.places |= {names.label: name for name, names in facts.properties.items()}

    def _wants_incoming(self, query: str, facts: _Facts) -> bool:
        if self._incoming != "auto":
            return self._incoming == "always"
        first = re.escape(fold(facts.items[0].label))
        if re.search(rf"\bby (?:the )?{first}\b", fold(query)):
            return True
        wanted = _words_of(query, facts.items)
        own = [[names.label, *names.aliases] for names in facts.properties.values()]
        words = {word for names in own for name in names for word in stems(name)}
        return bool(wanted) and not (wanted & words or meanings(wanted) & meanings(words))

    async def _ask_incoming(self, request: SearchRequest, facts: _Facts, *, lang: str) -> None:
        item = facts.items[0]
        query = incoming_query(item.id, words=_words_of(request.query, facts.items), lang=lang)
        seconds = min(INCOMING_SECONDS, max(0.0, request.seconds_left - _TO_RANK_SECONDS))
        started = asyncio.get_running_loop().time()
        try:
            rows = await self.sparql(query, seconds=seconds)
        except SourceError as error:
            if not any(facts.statements.values()):
                raise
            took = asyncio.get_running_loop().time() - started
            facts.failures.append(Failure("wikidata SPARQL", error.kind, str(error), took))
            return
        for row in rows:
            if {"s", "p"} <= row.keys() and entity_id(row["s"].value):
                relation = row["pLabel"].value if "pLabel" in row else entity_id(row["p"].value)
                facts.places.setdefault(relation, entity_id(row["p"].value))
                subject = entity_id(row["s"].value)
                label = row["sLabel"].value if "sLabel" in row else subject
                facts.incoming.append(GraphTriple(label, relation, item.label, subject, item.id, "tail", item.weight))

    async def _passages(self, query: str, facts: _Facts, *, limit: int, lang: str) -> list[Passage]:
        """Rank twice: names are requested only for the values of what fits, and names count in the ranking."""
        pairs = {
            GraphTriple(
                item.label, _label(facts.properties, s.property), str(at), item.id, str(at), "head", item.weight
            ): s
            for item in facts.items
            for at, s in enumerate(facts.statements.get(item.id, ()))
        }
        aliases = facts.aliases
        fitting = rank_triples(query, pairs, limit=_MAX_VALUES, tokens=1 << 30, aliases=aliases)
        values = [value for triple in fitting for value in _values(pairs[triple])]
        ids = list(dict.fromkeys(value.entity for value in values if value.entity))[:_MAX_VALUES]
        names = {name: known.label for name, known in (await self._api.names(ids, lang=lang)).items()}
        triples = [
            GraphTriple(t.head, t.relation, _tail(pairs[t], facts.properties, names), t.head_id, "", "head", t.weight)
            for t in fitting
        ]
        said = [
            GraphTriple(item.label, "description", item.description, item.id, "", "head", item.weight)
            for item in facts.items
            if item.description
        ]
        best = rank_triples(query, [*triples, *said, *facts.incoming], aliases=aliases)

        def url(triple: GraphTriple) -> str:
            place = facts.places.get(triple.relation, "")
            return f"{self._api.base}/wiki/{triple.head_id}{'#' if place else ''}{place}"

        return to_passages(best, limit=limit, url=url)


def _ranked(query: str, name: str, found: Sequence[FoundItem]) -> list[_Item]:
    """The items that one name may mean, the likeliest first: the question may hold words of a description."""
    wanted = set(stems(query)) - set(stems(name))
    real = [item for item in found if not item.description.startswith("Wikimedia")]
    ordered = sorted(real, key=lambda item: (_differs(item, name), -len(wanted & set(stems(item.description)))))
    return [
        _Item(item.id, item.label, item.description, (0.7 if _differs(item, name) else 1.0) * 0.8 ** (place > 0))
        for place, item in enumerate(ordered)
    ]


def _differs(item: FoundItem, name: str) -> bool:
    return fold(item.matched) != fold(name)


def _words_of(query: str, items: Iterable[_Item]) -> set[str]:
    """The stems of the question without those of the items' names."""
    named = {stem for item in items for stem in stems(item.label)}
    named |= {stem for name in mentions(query) for stem in stems(name)} if len(query.split()) > 1 else set()
    return set(asks(query)) - named


def _label(properties: Mapping[str, Names], name: str) -> str:
    return properties[name].label if name in properties else name


def _values(statement: ItemStatement) -> list[Value]:
    return [statement.value, *(value for _, value in _qualifiers(statement))]


def _qualifiers(statement: ItemStatement) -> list[tuple[str, Value]]:
    """Those that are shown."""
    return sorted(statement.qualifiers, key=lambda qualifier: qualifier[0] not in _WHEN)[:_SHOWN_QUALIFIERS]


def _tail(statement: ItemStatement, properties: Mapping[str, Names], names: Mapping[str, str]) -> str:
    """A value with its qualifiers: "Trieste (start time 1999, end time 2003)"."""
    stated = [f"{_label(properties, name)} {value.shown(names)}" for name, value in _qualifiers(statement)]
    said = ", ".join(stated)
    return f"{statement.value.shown(names)} ({said})" if said else statement.value.shown(names)
