"""Sources from other packages: whatever is installed under the entry-point group `cairn.sources`, loaded by its name.

A plug-in is a callable that takes the options of `[plugins.NAME]` in cairn.toml as keyword arguments and gives a
`Source`. Whatever is wrong with one is a `SetupError` that names its package and the fix. No built-in source is here.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from agent.errors import SetupError
from agent.sources.base import SearchRequest, Source

GROUP: Final = "cairn.sources"
BUILT_IN: Final = frozenset("web news arxiv wiki corpus kg world all openalex pubmed semanticscholar github".split())
"""Names that no plug-in can have."""
_NAME: Final = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
"""What a plan can name."""


def installed() -> dict[str, EntryPoint]:
    """Every plug-in by its name; nothing is loaded.

    Raises:
        SetupError: two packages bring the same name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=_package):
        other = found.setdefault(entry.name, entry)
        if (other.value, _package(other)) != (entry.value, _package(entry)):
            raise SetupError(
                f"the packages {_package(other)} and {_package(entry)} both bring a source {entry.name!r}; "
                "uninstall one of them"
            )
    return found


def load_plugin(name: str, options: Mapping[str, Any]) -> Source:
    """Load a plug-in and let it make its source.

    Args:
        name: of the entry point; it is the source's name in plans.
        options: keyword arguments for the plug-in, from `[plugins.NAME]`.

    Raises:
        SetupError: there is none of this name, or it cannot be loaded, or what it makes is no source.
    """
    plugins = installed()
    if name not in plugins:
        there = f"installed are: {', '.join(plugins)}" if plugins else "none is installed"
        raise SetupError(f"there is no plug-in {name!r}; {there}. Install the package that has it with pip")
    entry = plugins[name]
    of = f"the plug-in {name!r} of {_package(entry)}"
    _refuse_name(entry)
    factory = _loaded(entry, of)
    _refuse_options(factory, options, name=name, of=of)
    try:
        made = factory(**options)
    except SetupError as error:
        raise SetupError(f"{of}: {error}") from error
    except Exception as error:  # other people's code raises anything
        why = f"{type(error).__name__}: {error}"
        raise SetupError(f"{of} cannot make its source ({why}); check [plugins.{name}] in cairn.toml") from error
    if (why := _no_source(made)) is not None:
        raise SetupError(
            f"{of} made a {type(made).__name__}, which is not a source: {why}; ask its author, or remove it"
        )
    return cast(Source, made)


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _refuse_name(entry: EntryPoint) -> None:
    refuse_name(entry.name, _package(entry), fix="; uninstall it, or have its author give the entry point another name")


def refuse_name(name: str, by: str, *, fix: str = "; choose another name") -> None:
    """See whether a source can have this name.

    Args:
        name: of the source.
        by: who brings it.
        fix: what to do.

    Raises:
        SetupError: it is one of Cairn's own, or no plan can name it.
    """
    if name in BUILT_IN:
        raise SetupError(f"{by} brings a source {name!r}, a name that Cairn itself uses{fix}")
    if not _NAME.fullmatch(name):
        raise SetupError(
            f"{by} brings a source {name!r}, which no plan can name; "
            "choose one of letters, digits, '-' and '_', a letter first"
        )


def _loaded(entry: EntryPoint, of: str) -> Callable[..., object]:
    try:
        factory: object = entry.load()
    except Exception as error:  # whatever its modules do when they are imported
        why = f"{type(error).__name__}: {error}"
        raise SetupError(f"{of} cannot be imported ({why}); install it again, with what it needs") from error
    if not callable(factory):
        raise SetupError(f"{of} is a {type(factory).__name__}, not something to call; ask its author, or remove it")
    return factory


def _refuse_options(factory: Callable[..., object], options: Mapping[str, Any], *, name: str, of: str) -> None:
    """See whether the options fit before the plug-in runs: then its own TypeErrors are not taken for the user's."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return  # a callable made in C says nothing of what it takes
    try:
        signature.bind(**options)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise SetupError(
            f"{of} cannot take these options: {error}; it takes: {takes}. Correct [plugins.{name}] in cairn.toml"
        ) from error


def _no_source(made: object) -> str | None:
    """Why something cannot be searched, or None."""
    search = getattr(made, "search", None)
    if not callable(search):
        return "it has no 'search'"
    if not inspect.iscoroutinefunction(inspect.unwrap(search)):
        return "its 'search' is not 'async def'"
    try:
        inspect.signature(search).bind(SearchRequest("a query", limit=1))
    except TypeError as error:
        return f"its 'search' cannot be called as search(request), with a SearchRequest: {error}"
    return None
