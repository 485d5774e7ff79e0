"""Wikidata's query service (SPARQL 1.1 over POST): rows of terms, and the edges that lead to an item."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import httpx2

from agent.errors import SourceError
from agent.evidence import Passage
from agent.sources.http import Api, ApiAnswer
from agent.sources.live.wikibase import entity_id, one_line

BASE: Final = "https://query.wikidata.org"
"""Scholarly articles are at https://query-scholarly.wikidata.org only."""
DEADLINE_SECONDS: Final = 60.0
"""The service's own."""
MAX_EDGES: Final = 200

_MALFORMED: Final = re.compile(r"MalformedQueryException:\s*([^\n]+)")
_TIMED_OUT: Final = re.compile(r"TimeoutException|QueryTimeout|upstream request timeout", re.IGNORECASE)
_QUERY: Final = re.compile(r"(?is)\s*(?:(?:#[^\n]*\n|prefix\s+[\w-]*:\s*<[^>]*>)\s*)*(?:select|ask)\b.*\{.*\}")


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
