"""From settings to sources by the names that plans use. Each kind is imported where it is built."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.errors import SetupError, nearest
from agent.plan import DOCUMENTS, UNNAMED
from agent.settings import CairnSettings
from agent.settings.live import NEWS_BACKENDS, WEB_BACKENDS, needed
from agent.sources.fuse import fused
from agent.sources.select import distinct

if TYPE_CHECKING:
    from agent.sources.base import Source

SOURCE_NAMES: Final = ("web", "news", "arxiv", "wiki", "corpus", "kg")
"""The names that a plan may use besides `all`."""
NEWEST_WORLD: Final = "test-v2"
_BACKENDS: Final = {"web": WEB_BACKENDS, "news": NEWS_BACKENDS}


def _lacks(source: str) -> str:
    """What a source without a backend needs; nothing is said of others."""
    if source not in _BACKENDS:
        return ""
    *settings, last = [needed(name) for name in _BACKENDS[source] if name != "ddgs"]
    return f"it needs {', '.join(settings)} or {last}, or the extra ddgs"


def has_sources(settings: CairnSettings) -> bool:
    """Whether anything of the user's is configured, or the live web: it comes before any little world."""
    return bool(settings.is_live or settings.corpus or settings.kg or settings.mcp or _plugins(settings))


def uses_world(settings: CairnSettings) -> bool:
    """Whether a little world is searched: one is named, and nothing else is configured."""
    return bool(settings.world) and not has_sources(settings)


def uses_manual(settings: CairnSettings) -> bool:
    """Whether Cairn's own manual is searched: nothing at all is configured."""
    return not settings.world and not has_sources(settings)


def with_world(settings: CairnSettings) -> CairnSettings:
    """The settings with the newest little world, where they name none: for what needs one, as benchmarks do."""
    return settings if settings.world else settings.model_copy(update={"world": NEWEST_WORLD})


def build_sources(settings: CairnSettings) -> "dict[str, Source]":
    """The sources by the names that a plan uses; `all` searches each of them and fuses what they find.

    Without live sources, a corpus answers under each name that has no source of its own.

    Raises:
        SetupError: a name that no source has, a source without a backend, something that cannot be read.
    """
    if settings.watch and settings.corpus is None:
        raise SetupError("there is nothing to watch; name the folder of your documents with --corpus DIR")
    if uses_world(settings):
        from agent.world import load_world

        return chosen(settings, load_world(settings.world).sources())
    there = _own_sources(settings)
    if settings.is_live:
        from agent.build.backends import live_sources

        there |= live_sources(settings, besides=there)
    elif "corpus" in there:
        there |= {name: there["corpus"] for name in SOURCE_NAMES if name not in there}
    return chosen(settings, there)


def chosen(settings: CairnSettings, there: "Mapping[str, Source]") -> "dict[str, Source]":
    """Only the sources that the settings name, and `all`, which then searches only these.

    Beside a graph there is `documents`, too, which searches all others; no plan names it.
    """
    named = tuple(name for name in there if name not in UNNAMED)
    names = settings.sources or named
    if unknown := [name for name in names if name not in named]:
        lacks = _lacks(unknown[0]) if settings.is_live else ""
        near = "" if lacks else nearest(unknown[0], named)
        raise SetupError(f"there is no source {unknown[0]!r}{near}; {lacks or 'choose from: ' + ', '.join(named)}")
    if strange := [name for name in settings.filtered if name not in (*names, "all")]:
        raise SetupError(
            f"'filtered' names {strange[0]!r}, which is not a source here; choose from: {', '.join(names)}"
        )
    picked = _filtered(settings, {name: there[name] for name in names})
    if "all" not in picked:
        picked |= _filtered(settings, {"all": fused(picked, distinct(picked))})
    others = [name for name in distinct(picked) if name != "kg"]
    if "kg" in distinct(picked) and others:
        whole = DOCUMENTS in there and set(named) == {*names, "all"}
        picked[DOCUMENTS] = there[DOCUMENTS] if whole else fused(picked, others)
    return picked


def _filtered(settings: CairnSettings, sources: "dict[str, Source]") -> "dict[str, Source]":
    """Let a model look through what those sources find that the settings name."""
    wanted = [name for name in sources if name in settings.filtered]
    if not wanted:
        return sources
    url, model = settings.filter_url or settings.base_url, settings.filter_model or settings.model
    if not url or not model:
        raise SetupError(
            "'filtered' needs a model to filter passages: set filter_url and filter_model, "
            "or connect one as the policy with --base-url URL --model NAME"
        )
    from agent.outbound.address import OptionNames
    from agent.outbound.llm import LlmClient
    from agent.outbound.retries import Retries
    from agent.sources.base import OwningSource
    from agent.sources.kg.filter import SECONDS, FilteredSource, ask_with

    key = settings.filter_key if settings.filter_url else settings.api_key
    client = LlmClient(
        base_url=url,
        model=model,
        api_key=key.get_secret_value(),
        seconds=SECONDS,
        retries=Retries(0),
        options=OptionNames("filter_url", "CAIRN_FILTER_KEY", "filter_model") if settings.filter_url else None,
    )
    ask = ask_with(client)
    return sources | {name: OwningSource(FilteredSource(sources[name], ask), client) for name in wanted}


def _plugins(settings: CairnSettings) -> list[str]:
    """Names of the plug-ins that the settings mean: those with options, and those that `sources` names."""
    named = [name for name in settings.sources if name not in (*SOURCE_NAMES, "all", *settings.mcp)]
    if not settings.plugins and not named:
        return []
    from agent.sources.plugins import installed

    return list(dict.fromkeys([*settings.plugins, *(name for name in named if name in installed())]))


def _own_sources(settings: CairnSettings) -> "dict[str, Source]":
    """What the user brought: documents, a graph, plug-ins, MCP servers."""
    own: dict[str, Source] = {}
    if uses_manual(settings):
        from agent.build.manual import open_manual

        own["corpus"] = open_manual()
    if settings.corpus is not None:
        own["corpus"] = _corpus(settings, settings.corpus)
    if settings.kg is not None:
        from agent.sources.kg.source import KgSource

        own["kg"] = KgSource.open(settings.kg, packed="kg" not in settings.filtered)
    for name in _plugins(settings):
        from agent.build.backends import plugin_source

        own[name] = plugin_source(settings, name)
    for name in settings.mcp:
        from agent.build.backends import mcp_source

        own[name] = mcp_source(settings, name)
    return own


def _corpus(settings: CairnSettings, path: Path) -> "Source":
    """The user's documents, watched where the settings say so."""
    from agent.sources.corpus.hybrid import open_corpus

    opened = partial(open_corpus, mode=settings.retrieval, rerank=settings.rerank or None)
    if not settings.watch:
        return opened(path)
    from agent.build.watched import WatchedSource

    return WatchedSource(path, opened)
