"""A Wikibase over HTTP: items by name, their statements, and the names of ids. At most three requests at once."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

import httpx2

from agent.errors import SourceError, first_of
from agent.evidence import Passage
from agent.sources.http import Api, ApiAnswer
from agent.sources.live.action_api import read_object
from agent.sources.live.wikibase import ItemStatement, entity_id, one_line, read_claims, read_statements

BASE: Final = "https://query.wikidata.org"
"""Scholarly articles are at https://query-scholarly.wikidata.org only."""
DEADLINE_SECONDS: Final = 60.0
"""The service's own."""
MAX_EDGES: Final = 200

_MALFORMED: Final = re.compile(r"MalformedQueryException:\s*([^\n]+)")
_TIMED_OUT: Final = re.compile(r"TimeoutException|QueryTimeout|upstream request timeout", re.IGNORECASE)
_QUERY: Final = re.compile(r"(?is)\s*(?:(?:#[^\n]*\n|prefix\s+[\w-]*:\s*<[^>]*>)\s*)*(?:select|ask)\b.*\{.*\}")

AT_ONCE: Final = 3
BATCH: Final = 50
"""Ids in one request, for clients that are not logged in."""
REMEMBERED: Final = 20_000
_REST: Final = "/w/rest.php/wikibase/v1/entities/items"
_T = TypeVar("_T")


@dataclass(frozen=True)
class FoundItem:
    """One item that a look-up by name gave."""

    id: str
    label: str
    description: str
    matched: str
    """The label or alias that fits the name."""


@dataclass(frozen=True)
class Names:
    """What an id is called."""

    label: str
    aliases: tuple[str, ...] = ()


class WikibaseApi:
    """Wikidata or a Wikibase of one's own."""

    def __init__(self, client: httpx2.AsyncClient, *, base: str, name: str, remembered: int = REMEMBERED) -> None:
        """Ask the Wikibase under `base`; the names of the `remembered` ids that were used last are kept."""
        self._api = Api(client, name=name, base=base)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._remembered = remembered
        self._known: OrderedDict[tuple[str, str], Names] = OrderedDict()

    @property
    def base(self) -> str:
        return self._api.base

    async def find(self, name: str, *, lang: str, limit: int = 5) -> list[FoundItem]:
        """Items whose label or alias begins with `name`, the best known first."""
        data = await self._action(
            action="wbsearchentities", search=name, language=lang, uselang=lang, type="item", limit=limit
        )
        try:
            return [found for raw in data["search"] if (found := _found(raw)).id]
        except (AttributeError, KeyError, TypeError) as error:
            raise self._unknown(error) from error

    async def statements(self, item: str) -> list[ItemStatement]:
        """What REST says of an item; an item that was merged is followed once."""
        answer = await self._send(f"{_REST}/{item}/statements")
        if answer.status == 308 and (target := _redirected(answer)):
            answer = await self._send(f"{_REST}/{target}/statements")
        data = self._api.parse(self._api.checked(answer))
        try:
            return read_statements(data)
        except (KeyError, TypeError, ValueError) as error:
            raise self._unknown(error) from error

    async def claims(self, items: Sequence[str]) -> dict[str, list[ItemStatement]]:
        """The same by the action API: one request for up to 50 items; one that is not there has no statements."""
        data = await self._action(action="wbgetentities", ids="|".join(items[:BATCH]), props="claims")
        try:
            entities: dict[str, Any] = data["entities"]
            return {item: read_claims(entities.get(item, {})) for item in items}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unknown(error) from error

    async def names(self, ids: Iterable[str], *, lang: str, aliases: bool = False) -> dict[str, Names]:
        """The names of ids, in the language or its fallback; requested once, then remembered.

        An id that has no name is left out.
        """
        wanted = list(dict.fromkeys(ids))
        missing = [name for name in wanted if (lang, name) not in self._known]
        batches = [missing[at : at + BATCH] for at in range(0, len(missing), BATCH)]
        for found in await together(self._fetch_names(batch, lang=lang, aliases=aliases) for batch in batches):
            self._known.update(found)
        known = {name: self._known[lang, name] for name in wanted if (lang, name) in self._known}
        for name in known:
            self._known.move_to_end((lang, name))
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return {name: names for name, names in known.items() if names.label}

    async def _fetch_names(self, ids: Sequence[str], *, lang: str, aliases: bool) -> dict[tuple[str, str], Names]:
        props = "labels|aliases" if aliases else "labels"
        data = await self._action(
            action="wbgetentities", ids="|".join(ids), props=props, languages=lang, languagefallback=1
        )
        try:
            entities: dict[str, Any] = data["entities"]
            return {(lang, name): _names(entities.get(name, {}), lang=lang) for name in ids}
        except (AttributeError, KeyError, TypeError) as error:
            raise self._unknown(error) from error

    async def _action(self, **params: object) -> dict[str, Any]:
        return read_object(self._api, await self._send("/w/api.php", format="json", **params))

    async def _send(self, path: str, **params: object) -> ApiAnswer:
        async with self._slots:
            return await self._api.send("GET", path, params=params)

    def _unknown(self, error: Exception) -> SourceError:
        return SourceError(
            f"{self._api.name} sent an unexpected answer ({type(error).__name__}: {error})", kind="parse"
        )


async def together(calls: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Wait for all; where some fail, the others end too and the first failure is raised, alone."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failed:
        raise first_of(failed, SourceError) from None
    return [task.result() for task in tasks]


def _found(raw: Mapping[str, Any]) -> FoundItem:
    match: Mapping[str, Any] = raw.get("match") or {}
    name = entity_id(raw["id"])
    label = one_line(raw.get("label")) or name
    return FoundItem(name, label, one_line(raw.get("description")), one_line(match.get("text")) or label)


def _names(raw: Mapping[str, Any], *, lang: str) -> Names:
    labels = _by_language(raw.get("labels"))
    label: Any = labels.get(lang) or next(iter(labels.values()), None)
    aliases: Any = _by_language(raw.get("aliases")).get(lang)
    return Names(one_line(label["value"]) if label else "", tuple(one_line(alias["value"]) for alias in aliases or ()))


def _by_language(raw: object) -> dict[str, Any]:
    return cast(dict[str, Any], raw) if isinstance(raw, dict) else {}  # PHP writes an empty object as an empty list


def _redirected(answer: ApiAnswer) -> str:
    place = answer.headers.get("location", "").partition("/statements")[0]
    return entity_id(place)


@dataclass(frozen=True)
class Term:
    """The value of a variable in one row."""

    kind: Literal["uri", "literal", "bnode"]
    value: str
    lang: str = ""


Row = Mapping[str, Term]


def is_sparql(text: str) -> bool:
    """Whether a query is written in SPARQL."""
    return _QUERY.match(text) is not None


class QueryService:
    """A SPARQL endpoint with Wikidata's rules: 429 with a Retry-After that must be obeyed, and a deadline of 60 s."""

    def __init__(self, client: httpx2.AsyncClient, *, base: str = BASE, name: str = "wikidata") -> None:
        self._api = Api(
            client, name=name, base=base, headers={"accept": "application/sparql-results+json"}, kinds={403: "quota"}
        )

    async def select(self, query: str, *, seconds: float = DEADLINE_SECONDS) -> list[Row]:
        """Give the rows of a SELECT; an ASK has one row, with `answer`.

        Raises:
            SourceError: bad_query for a query that cannot be read, timeout, rate, quota (shut out), upstream, parse.
        """
        try:
            async with asyncio.timeout(seconds):
                answer = await self._api.send("POST", "/sparql", form={"query": query})
        except TimeoutError as error:
            raise SourceError(f"{self._api.name} did not answer SPARQL in {seconds:g} s", kind="timeout") from error
        self._check(answer)
        try:
            return read_rows(self._api.parse(answer))
        except (AttributeError, KeyError, TypeError) as error:
            raise SourceError(f"{self._api.name} sent no SPARQL results: {answer.text[:80]!r}", kind="parse") from error

    def _check(self, answer: ApiAnswer) -> None:
        """Read the sentence out of what is a Java stack trace."""
        if answer.status in (400, 500):
            if malformed := _MALFORMED.search(answer.text):
                raise SourceError(f"{self._api.name} cannot read the SPARQL: {malformed[1][:160]}", kind="bad_query")
            if _TIMED_OUT.search(answer.text):
                raise SourceError(f"{self._api.name} gave the SPARQL query up after its deadline", kind="timeout")
        self._api.checked(answer)


def read_rows(data: Any) -> list[Row]:
    """The rows of a result in SPARQL's JSON format; a variable that is not bound is missing."""
    if "boolean" in data:
        return [{"answer": Term("literal", str(bool(data["boolean"])).lower())}]
    bindings = cast(list[dict[str, dict[str, str]]], data["results"]["bindings"])
    return [{name: _term(term) for name, term in binding.items()} for binding in bindings]


def _term(term: Mapping[str, str]) -> Term:
    kind = term["type"]
    known: Literal["uri", "literal", "bnode"] = kind if kind in ("uri", "bnode") else "literal"
    return Term(known, one_line(term["value"]), term.get("xml:lang", ""))


def row_passages(rows: Sequence[Row], *, limit: int) -> list[Passage]:
    """A passage for each row: its variables with their values, items by their labels where the row has them."""
    passages: list[Passage] = []
    for rank, row in enumerate(rows[:limit], start=1):
        visible = {name: term for name, term in row.items() if not (name.endswith("Label") and name[:-5] in row)}
        first = next((term.value for term in visible.values() if term.kind == "uri" and entity_id(term.value)), "")
        labels = [(name, row.get(f"{name}Label", term)) for name, term in visible.items()]
        text = " | ".join(f"{name}: {_shown(term)}" for name, term in labels)
        passages.append(
            Passage(
                id=f"kg:sparql:{rank}:{entity_id(first)}", source="kg", title="", text=text, url=_page(first),
                rank=rank, score=1 / rank,
            )
        )  # fmt: skip
    return passages


def _shown(term: Term) -> str:
    if term.kind == "bnode":
        return "unknown value"
    if term.kind == "uri":
        return entity_id(term.value) or term.value
    return term.value.removesuffix("T00:00:00Z")  # a day is given as its midnight


def _page(uri: str) -> str:
    return f"https://www.wikidata.org/wiki/{entity_id(uri)}" if uri else ""


def incoming_query(item: str, *, words: Iterable[str], lang: str) -> str:
    """SPARQL for the statements whose value is `item`, by properties of which a name begins a word with one of `words`.

    The properties come first: there are some thousands, while a country has millions of edges that lead to it. Without
    words any property will do. Gives ?s ?sLabel ?p ?pLabel.
    """
    beginnings = sorted({word for word in words if word.isalnum()})
    named = ""
    if beginnings:
        fits = f'LANG(?name) = "{lang}" && REGEX(LCASE(STR(?name)), "(^|[^a-z])({"|".join(beginnings)})")'
        named = f"?p rdfs:label|skos:altLabel ?name. FILTER({fits})"
    return f"""SELECT ?s ?sLabel ?p ?pLabel WHERE {{
  hint:Query hint:optimizer "None".
  {{ SELECT DISTINCT ?p ?direct WHERE {{
    ?p wikibase:propertyType wikibase:WikibaseItem; wikibase:directClaim ?direct. {named}
  }} }}
  ?s ?direct wd:{item}.
  SERVICE wikibase:label {{ bd:serviceParam wikibase:language "{lang},mul,en". }}
}} LIMIT {MAX_EDGES}"""
