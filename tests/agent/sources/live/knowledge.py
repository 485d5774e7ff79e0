"""arXiv, Wikipedia and Wikidata as the tests know them: the backends at a server of ours, with their fixtures."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import httpx2

from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source, ask
from agent.sources.http import make_client
from agent.sources.live.arxiv import ArxivSource
from agent.sources.live.mediawiki import MediaWikiSource
from agent.sources.live.polite_queue import PoliteQueue
from agent.sources.live.wikidata import WikidataSource
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, Route, json_reply, run

FIXTURES: Final = Path(__file__).parents[3] / "fixtures" / "api"
TODAY: Final = date(2026, 11, 21)
Make = Callable[[httpx2.AsyncClient, str], Source]


def arxiv(client: httpx2.AsyncClient, base: str, **more: Any) -> ArxivSource:
    queue: PoliteQueue = more.pop("queue", None) or PoliteQueue(0.001)
    return ArxivSource(client, base=base, today=lambda: TODAY, queue=queue, **more)


def mediawiki(client: httpx2.AsyncClient, base: str, **more: Any) -> MediaWikiSource:
    return MediaWikiSource(client, base=base + "/{lang}", **more)


def wikidata(client: httpx2.AsyncClient, base: str, **more: Any) -> WikidataSource:
    return WikidataSource(client, base=base, sparql_base=base, **more)


MAKERS: Final[Mapping[str, Make]] = {"arxiv": arxiv, "mediawiki": mediawiki, "wikidata": wikidata}


def filters(**conditions: str) -> list[Filter]:
    return [Filter(name=name.rstrip("_"), value=value) for name, value in conditions.items()]


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def recorded(name: str) -> Any:
    return json.loads(fixture(name))


def feed(*entries: str, total: int | None = None, start: int = 0) -> Reply:
    """An Atom page of arXiv."""
    head = (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">'
        f"<opensearch:totalResults>{len(entries) if total is None else total}</opensearch:totalResults>"
        f"<opensearch:startIndex>{start}</opensearch:startIndex>"
    )
    return Reply((head + "".join(entries) + "</feed>\n").encode(), headers={"content-type": "application/atom+xml"})


def entry(name: str = "2401.00001v2", title: str = "A title", **more: str) -> str:
    fields = {"published": "2024-01-02T03:04:05Z", "updated": "2024-02-03T04:05:06Z", "summary": "An abstract."} | more
    inner = "".join(f"<{tag}>{text}</{tag}>" for tag, text in fields.items())
    return f"<entry><id>http://arxiv.org/abs/{name}</id><title>{title}</title>{inner}</entry>"


def rest_value(prop: str, content: object, data_type: str = "wikibase-item", kind: str = "value") -> dict[str, Any]:
    value = {"type": kind, "content": content} if kind == "value" else {"type": kind}
    return {"property": {"id": prop, "data_type": data_type}, "value": value}


def statement(
    prop: str,
    content: object,
    data_type: str = "wikibase-item",
    *,
    kind: str = "value",
    rank: str = "normal",
    qualifiers: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """A statement as REST gives it."""
    value = rest_value(prop, content, data_type, kind)
    return {"id": f"Q${prop}-{content}", "rank": rank, **value, "qualifiers": list(qualifiers), "references": []}


def day(time: str, precision: int = 11) -> dict[str, Any]:
    return {"time": time, "precision": precision, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}


def hit(item: str, label: str, description: str = "", matched: str = "") -> dict[str, Any]:
    return {
        "id": item,
        "label": label,
        "description": description,
        "match": {"type": "label", "text": matched or label},
    }


def binding(**terms: str) -> dict[str, Any]:
    """A row of SPARQL results; what begins with Q or P is an entity."""
    root = "http://www.wikidata.org/entity/"
    is_id = {name: text[:1] in "QP" and text[1:].isdigit() for name, text in terms.items()}
    return {
        name: {"type": "uri", "value": root + text} if is_id[name] else {"type": "literal", "value": text}
        for name, text in terms.items()
    }


def rows(*bindings: dict[str, Any]) -> Reply:
    return json_reply({"head": {"vars": []}, "results": {"bindings": list(bindings)}})


@dataclass
class FakeWikidata:
    """A little Wikidata. Each part may be replaced by a reply, for example a failure."""

    search: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """What a look-up by name finds; names in lower case."""
    statements: dict[str, Any] = field(default_factory=dict[str, Any])
    """REST: statements of an item by property, or a reply."""
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    """The action API's entities."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    aliases: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    sparql: Route | None = None

    def __call__(self, request: ApiRequest) -> Reply:
        if request.path == "/sparql":
            return self.sparql(request) if callable(self.sparql) else self.sparql or Reply(b"", 500)
        if request.path.startswith("/w/rest.php"):
            item = request.path.split("/items/")[1].split("/")[0]
            found = self.statements.get(item, Reply(b'{"code":"resource-not-found"}', 404))
            return found if isinstance(found, Reply) else json_reply(found)
        if request.params["action"] == "wbsearchentities":
            return json_reply({"search": self.search.get(request.params["search"].lower(), []), "success": 1})
        ids = request.params["ids"].split("|")
        if request.params["props"] == "claims":
            return json_reply({"entities": {name: self.claims.get(name, {"id": name, "missing": ""}) for name in ids}})
        return json_reply({"entities": {name: self._named(name, request.params["languages"]) for name in ids}})

    def _named(self, name: str, lang: str) -> dict[str, Any]:
        label = self.names.get(f"{name}@{lang}") or self.names.get(name)
        aliases = [{"language": lang, "value": alias} for alias in self.aliases.get(name, ())]
        return {
            "id": name,
            "labels": {lang: {"language": lang, "value": label}} if label else [],
            "aliases": {lang: aliases} if aliases else [],
        }


def lina() -> FakeWikidata:
    """A film director whom no one knows, with her film."""
    return FakeWikidata(
        search={
            "lina orr": [
                hit("Q90", "Lina Orr (disambiguation)", "Wikimedia disambiguation page", "Lina Orr"),
                hit("Q1001", "Lina Orr", "film director"),
            ],
            "aurora falls": [
                hit("Q2002", "Aurora Falls", "waterfall in Norway"),
                hit("Q2001", "Aurora Falls", "2025 film by Lina Orr"),
            ],
        },
        statements={
            "Q1001": {
                "P19": [statement("P19", "Q546")],
                "P569": [statement("P569", day("+1971-03-11T00:00:00Z"), "time")],
                "P26": [
                    statement("P26", "Q7", rank="deprecated"),
                    statement("P26", "Q8", qualifiers=[rest_value("P580", day("+1999-00-00T00:00:00Z", 9), "time")]),
                    statement("P26", "Q9", rank="preferred"),
                ],
                "P345": [statement("P345", "nm001", "external-id")],
                "P18": [statement("P18", "Lina.jpg", "commonsMedia")],
            },
            "Q2001": {"P57": [statement("P57", "Q1001")], "P2047": [
                statement("P2047", {"amount": "+94", "unit": "http://www.wikidata.org/entity/Q7727"}, "quantity")
            ]},
            "Q2002": {"P17": [statement("P17", "Q20")]},
        },
        names={
            "P19": "place of birth", "P569": "date of birth", "P26": "spouse", "P345": "IMDb ID", "P57": "director",
            "P580": "start time", "P17": "country", "P2047": "duration", "Q546": "Trieste", "Q546@de": "Triest",
            "P19@de": "Geburtsort", "Q7": "Nemo", "Q8": "Ada", "Q9": "Bo", "Q1001": "Lina Orr", "Q20": "Norway",
            "Q7727": "minute",
        },
        aliases={"P19": ["birthplace", "born in"], "P569": ["birth date", "born on"], "P26": ["wife", "husband"], "P57": ["directed by", "film director"]},
    )  # fmt: skip


async def search(
    server: ApiServer,
    make: Make,
    query: str = "lina orr",
    *,
    limit: int = 5,
    conditions: Sequence[Filter] = (),
    seconds: float = 5.0,
) -> SearchResult:
    """Ask a backend at the server once, in the way that the agent does."""
    async with make_client() as client:
        return await ask(
            make(client, server.base), SearchRequest(query, limit=limit, filters=tuple(conditions)), seconds=seconds
        )


def answered(
    make: Make, route: Route, query: str = "lina orr", *, limit: int = 5, **conditions: str
) -> tuple[SearchResult, list[ApiRequest]]:
    """What a backend finds, and all its requests."""

    async def test(server: ApiServer) -> tuple[SearchResult, list[ApiRequest]]:
        server.routes["*"] = route
        hits = await search(server, make, query, limit=limit, conditions=filters(**conditions))
        base = server.base
        passages = (p.model_copy(update={"url": p.url.replace(base, "http://api")}) for p in hits.passages)
        return replace(hits, passages=tuple(passages)), server.requests

    return run(test)


def with_client(make: Make, route: Route, use: Callable[[Any, ApiServer], Awaitable[None]]) -> None:
    """Use one backend for several searches."""

    async def test(server: ApiServer) -> None:
        server.routes["*"] = route
        async with make_client() as client:
            await use(make(client, server.base), server)

    run(test)
