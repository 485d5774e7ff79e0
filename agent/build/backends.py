"""From settings to backends and plug-ins, and from these to sources with retries, a cache and limits."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, assert_never

from agent.errors import SetupError
from agent.settings import CairnSettings
from agent.settings.live import NewsBackend, WebBackend

if TYPE_CHECKING:
    import httpx2

    from agent.sources.base import Source
    from agent.sources.limits import Limits
    from agent.sources.mcp.source import McpSource
    from agent.sources.resilience.resilient import Backend
    from agent.sources.resilience.store import AnswerStore

PAGES: Final = Path("~/.cache/cairn/pages.sqlite")
"""Answers of pages, kept as long as they allow."""

Topic = Literal["web", "news"]

MOST_CAIRNS: Final = 2
"""That may start one another as MCP servers: one that reads its own table again would not end."""


def live_sources(settings: CairnSettings, *, besides: Collection[str] = ()) -> "dict[str, Source]":
    """Every live source that has a backend, by its name; those in `besides` are there already.

    Raises:
        SetupError: the cache is at no place that can be.
    """
    from agent.sources.base import OwningSource
    from agent.sources.http import make_client
    from agent.sources.resilience.limiter import RateLimiters
    from agent.sources.resilience.resilient import resilient

    _retry_in_silence()
    client, store, limiters = make_client(), _store(settings), RateLimiters()
    pages = _pages(settings)
    made: dict[str, Source] = {}
    for name, backends in backends_of(settings, client).items():
        if name not in besides:
            around = pages if name in ("web", "news") else None
            at = _addresses(settings, name, backends)
            source = resilient(
                name,
                backends,
                store=store,
                enough=settings.news_enough if name == "news" else 1,
                limits={backend.name: _limits(settings, backend.name, backend.limits) for backend in backends},
                limiters=limiters,
                around=around,
                variant=f"at {at} pages {settings.pages}" if around else f"at {at}",
            )
            made[name] = OwningSource(source, client)
    return made


def plugin_source(settings: CairnSettings, name: str) -> "Source":
    """A plug-in with the same resilience as a backend.

    Raises:
        SetupError: it cannot be loaded, or the cache is at no place that can be.
    """
    from agent.sources.plugins import load_plugin
    from agent.sources.resilience.resilient import limits_of, resilient_plugin

    _retry_in_silence()
    source = load_plugin(name, settings.plugins.get(name, {}))
    limits = _limits(settings, name, limits_of(source))
    store = _store(settings) if limits.keep_seconds else None
    variant = json.dumps(settings.plugins.get(name, {}), sort_keys=True, default=str)
    return resilient_plugin(name, source, limits=limits, store=store, variant=variant, whole=True)


def mcp_source(settings: CairnSettings, name: str) -> "Source":
    """A tool of an MCP server with the same resilience as a plug-in. Nothing is started before its first search.

    Raises:
        SetupError: a name that is another source's, a variable that is not set, a key that would be sent unencrypted.
    """
    from agent.sources.resilience.resilient import resilient_plugin

    _retry_in_silence()
    source = bare_mcp_source(settings, name)
    limits = _limits(settings, name, source.limits)
    store, variant = _store(settings) if limits.keep_seconds else None, settings.mcp[name].model_dump_json()
    return resilient_plugin(name, source, limits=limits, store=store, variant=variant, whole=False)


def bare_mcp_source(settings: CairnSettings, name: str) -> "McpSource":
    """The same without resilience.

    Raises:
        SetupError: as `mcp_source`.
    """
    from agent.settings import INSIDE, cairns_above, secret_named
    from agent.settings.local_file import refuse_plain_key
    from agent.sources.mcp.http import HttpTransport
    from agent.sources.mcp.source import McpSource
    from agent.sources.mcp.stdio import StdioTransport
    from agent.sources.plugins import refuse_name

    table = settings.mcp[name]
    refuse_name(name, f"[mcp.{name}]")
    if name in settings.plugins:
        raise SetupError(f"[mcp.{name}] and [plugins.{name}] name one source twice; rename one of them")
    key = secret_named(table.key_variable).get_secret_value() if table.key_variable else ""
    refuse_plain_key(table.url, key, allowed=settings.plain_http, what=f"the url of [mcp.{name}]")
    environment = {one: secret_named(one).get_secret_value() for one in table.environment}
    above = cairns_above()
    if table.command and above >= MOST_CAIRNS:
        raise SetupError(
            f"[mcp.{name}] would start a Cairn that starts a Cairn, and so on; give the inner one a settings file of "
            "its own: cairn mcp --config FILE"
        )

    def transport() -> HttpTransport | StdioTransport:
        if table.url:
            return HttpTransport(table.url, key=key, seconds=table.seconds)
        return StdioTransport(table.command, environment={**environment, INSIDE: str(above + 1)})

    return McpSource(
        name,
        transport,
        tool=table.tool,
        query=table.query,
        limit=table.limit,
        arguments=table.arguments,
        seconds=table.seconds,
        most_chars=table.most_chars,
        secrets=(key, *environment.values()),
    )


def backends_of(settings: CairnSettings, client: "httpx2.AsyncClient") -> "dict[str, list[Backend]]":
    """The backends of each live source, in the order in which they are queried; a source without any is left out."""
    usable = settings.usable
    found: dict[str, list[Backend]] = {
        "web": [_backend(settings, client, name, "web") for name in settings.web if name in usable],
        "news": [_backend(settings, client, name, "news") for name in settings.news if name in usable],
        **_open(settings, client),
        **{name: [_standalone(settings, client, name)] for name in settings.standalone},
    }
    return {name: backends for name, backends in found.items() if backends}


def _backend(
    settings: CairnSettings, client: "httpx2.AsyncClient", name: WebBackend | NewsBackend, topic: Topic
) -> "Backend":
    """One backend of web or news."""
    from agent.sources.live import brave, ddgs, exa, gnews, searxng, serper, tavily

    match name:
        case "tavily":
            price = settings.prices.get(name, tavily.USD_PER_CREDIT)
            key, base = settings.tavily_key.get_secret_value(), settings.tavily_url
            return tavily.TavilySource(client, key=key, base=base, topic=topic, usd_per_credit=price)
        case "serper":
            price = settings.prices.get(name, serper.USD_PER_CREDIT)
            key, base = settings.serper_key.get_secret_value(), settings.serper_url
            return serper.SerperSource(client, key=key, base=base, topic=topic, usd_per_credit=price)
        case "brave":
            price = settings.prices.get(name, brave.USD_PER_CREDIT)
            key, base = settings.brave_key.get_secret_value(), settings.brave_url
            return brave.BraveSource(client, key=key, base=base, topic=topic, usd_per_credit=price)
        case "exa":
            price = settings.prices.get(name, exa.USD_PER_CREDIT)
            key, base = settings.exa_key.get_secret_value(), settings.exa_url
            return exa.ExaSource(client, key=key, base=base, topic=topic, usd_per_credit=price)
        case "gnews":
            price = settings.prices.get(name, gnews.USD_PER_CREDIT)
            key, base = settings.gnews_key.get_secret_value(), settings.gnews_url
            return gnews.GNewsSource(client, key=key, base=base, usd_per_credit=price)
        case "searxng":
            return searxng.SearxngSource(client, base=settings.searxng_url, topic=topic)
        case "ddgs":
            return ddgs.DdgsSource(topic=topic)
        case _:
            assert_never(name)


def _open(settings: CairnSettings, client: "httpx2.AsyncClient") -> "dict[str, list[Backend]]":
    """The sources that need no key."""
    from agent.sources.live.arxiv import ArxivSource
    from agent.sources.live.mediawiki import MediaWikiSource
    from agent.sources.live.wikidata import WikidataSource

    arxiv = ArxivSource(client, base=settings.arxiv_url)
    wiki = MediaWikiSource(client, base=settings.wiki_url)
    wikidata = WikidataSource(client, base=settings.wikidata_url, sparql_base=settings.sparql_url)
    return {"arxiv": [arxiv], "wiki": [wiki], "kg": [wikidata]}


def _standalone(settings: CairnSettings, client: "httpx2.AsyncClient", name: str) -> "Backend":
    """A source of papers or code."""
    from agent.sources.live.github import GitHubSource
    from agent.sources.live.openalex import OpenAlexSource
    from agent.sources.live.pubmed import PubMedSource
    from agent.sources.live.semanticscholar import SemanticScholarSource

    kinds = (OpenAlexSource, PubMedSource, SemanticScholarSource, GitHubSource)
    kind = next(kind for kind in kinds if kind.name == name)
    key: str = getattr(settings, f"{name}_key").get_secret_value()
    return kind(client, base=getattr(settings, f"{name}_url"), key=key)


def _addresses(settings: CairnSettings, source: str, backends: "Sequence[Backend]") -> str:
    """Where the requests of a source go: what one server said is not another one's answer."""
    names = [source, *(backend.name for backend in backends), *(["sparql"] if source == "kg" else [])]
    return " ".join(str(getattr(settings, f"{name}_url", "")) for name in names).strip()


def _limits(settings: CairnSettings, name: str, own: "Limits") -> "Limits":
    """What a backend or plug-in says of itself, but for what the settings say."""
    given = settings.limits.get(name)
    return replace(own, **given.model_dump(exclude_none=True)) if given else own


def _retry_in_silence() -> None:
    """Each retry is on the trace; none belongs on standard output."""
    import stamina

    stamina.instrumentation.set_on_retry_hooks(())


def _store(settings: CairnSettings) -> "AnswerStore | None":
    if not settings.cache:
        return None
    from agent.sources.resilience.store import open_store

    try:
        return open_store(settings.cache)
    except ValueError as error:
        raise SetupError(f"the setting 'cache' cannot be used: {error}") from error


def _pages(settings: CairnSettings) -> "Callable[[Source], Source] | None":
    """What reads the pages of hits; one fetcher for all sources."""
    if not settings.pages:
        return None
    from agent.sources.pages.fetch import Fetcher
    from agent.sources.pages.source import WithPages

    fetcher = Fetcher(cache=PAGES.expanduser())
    return lambda source: WithPages(source, fetcher, pages=settings.pages)
