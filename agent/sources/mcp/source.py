"""An MCP server as a source: one of its tools gets the query, and what it gives becomes passages."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from agent.errors import SourceError, SourceErrorKind, nearest
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, unhonoured
from agent.sources.http import SHORTEST_SECRET
from agent.sources.limits import Limits
from agent.sources.live.reading import member, passages, text_of
from agent.sources.mcp.connection import START_SECONDS, CallOutcome, Connection, OpenServer, Transport, failure
from agent.sources.mcp.results import rows_of_result

QUERY_NAMES: Final = ("query", "q", "question", "search", "search_query", "text", "input", "prompt", "pattern")
"""Arguments that get the query where several could, the first of them that there is."""
_SHOWN: Final = 12
"""Names in one sentence."""


@dataclass(frozen=True)
class QueryCall:
    """A call with room for a query."""

    tool: str
    query: str
    """The argument."""
    limit: str
    """The argument for the number of results; empty: none."""
    fixed: Mapping[str, Any]
    title: str
    """Of the tool, for people."""

    def arguments(self, query: str, limit: int) -> dict[str, Any]:
        return {**self.fixed, **({self.limit: limit} if self.limit else {}), self.query: query}


def chosen_call(
    tools: Sequence[Any], *, name: str, tool: str, query: str, limit: str, fixed: Mapping[str, Any]
) -> QueryCall:
    """The call that the settings describe.

    The settings say it, or the tool's schema where that leaves no choice.

    Args:
        tools: that the server offers, as the SDK gives them.
        name: of the source, for sentences.
        tool: the tool; empty: the only one, or the only one whose name says that it searches.
        query: the argument that gets the query; empty: found in the schema.
        limit: the argument that gets the number of results; empty: none.
        fixed: the other arguments.

    Raises:
        SourceError: there is no such tool or argument, or a choice that the settings must make.
    """
    found = _tool(tools, name=name, wanted=tool)
    schema = member({"schema": found.input_schema}, "schema")
    properties = member(schema, "properties")
    for argument in filter(None, (query, limit, *fixed)):
        if properties and argument not in properties and schema.get("additionalProperties", True) is False:
            raise _wrong(
                f"the tool {found.name!r} of {name} has no argument {argument!r}{nearest(argument, properties)}"
            )
    argument = query or _query(found.name, schema, properties, name=name, taken={limit, *fixed})
    return QueryCall(found.name, argument, limit, fixed, text_of(found.title) or found.name)


def _tool(tools: Sequence[Any], *, name: str, wanted: str) -> Any:
    there = [tool.name for tool in tools]
    if wanted:
        named = [tool for tool in tools if tool.name == wanted]
        if not named:
            raise _wrong(f"{name} has no tool {wanted!r}{nearest(wanted, there)}; it has: {_listed(there)}")
        return named[0]
    searching = [tool for tool in tools if "search" in tool.name.lower()]
    if len(tools) == 1 or len(searching) == 1:
        return tools[0] if len(tools) == 1 else searching[0]
    if not tools:
        raise _wrong(f"{name} has no tools")
    raise _wrong(f"{name} has several tools; name one with tool = … in [mcp.{name}]: {_listed(there)}")


def _query(tool: str, schema: Mapping[str, Any], properties: Mapping[str, Any], *, name: str, taken: set[str]) -> str:
    """The one argument that a query can be."""
    texts = [one for one, kind in properties.items() if one not in taken and _is_text(kind)]
    listed: Any = schema.get("required")
    required = [one for one in texts if isinstance(listed, list) and one in listed]
    for candidates in (required, texts):
        if len(candidates) == 1:
            return candidates[0]
        if usual := [one for one in QUERY_NAMES if one in candidates]:
            return usual[0]
    fix = f"name it with query = … in [mcp.{name}]"
    raise _wrong(f"no argument of the tool {tool!r} of {name} is surely the query; {fix}: {_listed(list(properties))}")


def _is_text(kind: Any) -> bool:
    """Whether a schema takes a text."""
    if not isinstance(kind, dict):
        return False
    schema = cast(dict[str, Any], kind)
    kinds: Any = schema.get("type")
    choices = cast(list[Any], schema.get("anyOf")) if isinstance(schema.get("anyOf"), list) else []
    named = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
    return "enum" not in schema and (named or any(map(_is_text, choices)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(name[:60] for name in names[:_SHOWN]) or "none") + more


def _wrong(why: str) -> SourceError:
    return SourceError(why, kind="bad_query")


def first_text(result: Any) -> str:
    """What a result says first, on one line."""
    texts = (text_of(block.text) for block in result.content if block.type == "text")
    return " ".join(next(filter(None, texts), "").split())


SPARE_SECONDS: Final = 2.0
"""That one try has beside the call, to say how it failed."""
PATIENCE: Final = 1.9
"""Times its own seconds in which calls waited and no answer came, after which a connection is taken for dead: two calls
that had all their time, less what a deadline comes early, or more that had less of it."""


class McpSource:
    """A tool of an MCP server."""

    def __init__(
        self,
        name: str,
        transport: Callable[[], Transport],
        *,
        tool: str = "",
        query: str = "",
        limit: str = "",
        arguments: Mapping[str, Any] | None = None,
        seconds: float = 20.0,
        start_seconds: float = START_SECONDS,
        most_chars: int = 50_000,
        secrets: Sequence[str] = (),
    ) -> None:
        """Start nothing yet; the first search does.

        Args:
            name: of the source.
            transport: the way to the server, made again for each connection.
            tool: its name; empty: the only one, or the only one that searches.
            query: the argument that gets the query; empty: found in the tool's schema.
            limit: the argument that gets the number of results; empty: none.
            arguments: all others, the same in each call.
            seconds: for one call.
            start_seconds: for the server to start, and to say what it offers.
            most_chars: of one answer.
            secrets: what the server knows and no sentence or passage may show.
        """
        self.name = name
        self.limits = Limits(
            concurrency=4, requests=20, timeout_seconds=seconds + SPARE_SECONDS, tries=2, keep_seconds=0.0
        )
        self._transport = transport
        self._wanted = (tool, query, limit, dict(arguments or {}))
        self._seconds = seconds
        self._start_seconds = start_seconds
        self._most_chars = most_chars
        self._secrets = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def search(self, request: SearchRequest) -> SearchResult:
        """Call the tool once.

        Raises:
            SourceError: with its kind.
        """
        notes = unhonoured(request.filters, honours=(), by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes)
        try:
            server, call = await self.opened()
            result = await self._called(server, call, request)
        except SourceError as error:
            raise SourceError(self.without_secrets(str(error)), kind=error.kind) from None
        rows = rows_of_result(result, title=call.title, query=request.query, most_chars=self._most_chars)
        found = passages(rows, by=self.name, topic=self.name, wanted=ReadFilters(), limit=request.limit)
        kept = (
            p.model_copy(update={f: self.without_secrets(getattr(p, f)) for f in ("id", "title", "text", "url")})
            for p in found
        )
        return SearchResult(tuple(kept), backend=self.name, notes=notes)

    async def opened(self) -> tuple[OpenServer, QueryCall]:
        """The server, with the call that a search makes.

        Raises:
            SourceError: it cannot be opened, or has no such tool.
        """
        loop = asyncio.get_running_loop()
        connection = self._connections.setdefault(
            loop, Connection(self.name, self._transport, start_seconds=self._start_seconds)
        )
        server = await connection.server()
        tool, query, limit, fixed = self._wanted
        return server, chosen_call(server.tools, name=self.name, tool=tool, query=query, limit=limit, fixed=fixed)

    async def aclose(self) -> None:
        """End the connection of this event loop, and the server's process with it."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.aclose()

    async def _called(self, server: OpenServer, call: QueryCall, request: SearchRequest) -> Any:
        from mcp.shared.exceptions import MCPError

        seconds, since = min(self._seconds, request.seconds_left), asyncio.get_running_loop().time()
        with server.call() as outcome:
            try:
                async with asyncio.timeout(seconds):
                    result = await server.client.call_tool(call.tool, call.arguments(request.query, request.limit))
            except TimeoutError as error:
                if server.silence.waited(since=since) >= PATIENCE * self._seconds:
                    self._drop(server)
                raise SourceError(f"{self.name} did not answer in {seconds:g} s", kind="timeout") from error
            except MCPError as error:
                raise self._refused(error, server, outcome) from error
            except Exception as error:  # the SDK raises anything, for example where an answer breaks its own schema
                raise self._broken(error, server, outcome, why="sent what cannot be read", kind="parse") from error
        server.silence.heard()
        if result.is_error:
            said = first_text(result) or "no reason given"
            raise SourceError(f"{self.name} answered with an error: {said[:300]}", kind="bad_query")
        return result

    def _refused(self, error: Any, server: OpenServer, outcome: CallOutcome) -> SourceError:
        """An answer of the protocol that is an error, or the end of the connection."""
        from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND

        if error.code == CONNECTION_CLOSED or outcome.broke:
            return self._broken(error, server, outcome, why="broke off")
        server.silence.heard()
        if error.code in {INVALID_PARAMS, METHOD_NOT_FOUND}:
            return SourceError(f"{self.name} refused the call: {str(error)[:300]}", kind="bad_query")
        return failure(self.name, error, outcome, why="failed")

    def _broken(
        self,
        error: Exception,
        server: OpenServer,
        outcome: CallOutcome,
        *,
        why: str,
        kind: SourceErrorKind = "upstream",
    ) -> SourceError:
        """The end of the connection; where it came by closing the source, that is why."""
        if not self._drop(server):
            return SourceError(f"{self.name} was closed")
        return failure(self.name, error, outcome, why=why, kind=kind)

    def _drop(self, server: OpenServer) -> bool:
        """Let go of a connection; whether the source is open."""
        connection = self._connections.get(asyncio.get_running_loop())
        if connection is not None:
            connection.drop(server)
        return connection is not None

    def without_secrets(self, text: str) -> str:
        """The text without the values that the server got for itself alone."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
