"""A server behind a URL: the official SDK's over streamable HTTP, and one that answers as none should."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from agent.errors import SourceError
from tests.agent.sources.live.apiserver import ApiServer, Reply, gzip_bomb, json_reply, run, text_reply
from tests.agent.sources.mcp.servers import KEY, find, found, http_server, over_http, said, use

SSE = "text/event-stream"
TOOL: Final = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}
FOUND: Final = {"result": {"content": [{"type": "text", "text": "found"}]}}
REFUSED: Final = {"error": {"code": -32602, "message": "no such place"}}


def test_a_server_is_searched_with_the_key_that_it_wants_and_many_at_once():
    with http_server(KEY) as url:
        source = over_http(url, key=KEY, tool="search")

        async def work() -> list[int]:
            return [len(passages) for passages in await asyncio.gather(*(find(source) for _ in range(5)))]

        assert use(source, work) == [3] * 5
        with pytest.raises(SourceError, match="papers cannot be opened: it answered 401") as caught:
            found(over_http(url, key="sesame-wrong", tool="search"))
        assert caught.value.kind == "auth"
        assert "sesame" not in str(caught.value)


def test_a_call_that_hangs_and_one_that_answers_too_much_are_typed_and_the_next_search_is_answered():
    with http_server() as url:
        with pytest.raises(SourceError, match=r"did not answer in 0\.5 s") as caught:
            found(over_http(url, tool="hang", seconds=0.5))
        assert caught.value.kind == "timeout"
        with pytest.raises(SourceError, match="papers broke off: it sent more than 8 MB") as caught:
            found(over_http(url, tool="large"))
        assert caught.value.kind == "upstream"
        assert said(found(over_http(url, tool="blocks")))[1] == ("blocks", "second", "", "")


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        (Reply(b"who are you", 401), "auth", "it answered 401"),
        (Reply(b"", 402), "quota", "it answered 402"),
        (Reply(b"slow down", 429), "rate", "it answered 429"),
        (Reply(b"oops", 500), "upstream", "it answered 500"),
        (Reply(b"not here", 404), "upstream", "it answered 404"),
        (text_reply("<html>Welcome</html>"), "upstream", "Unexpected content type: text/html"),
        (json_reply([1, 2]), "upstream", "Failed to parse JSON response"),
        (gzip_bomb(), "upstream", "it sent a packed answer, which was not requested"),
        (Reply(b'"' + b"x" * 9_000_000, headers={"content-type": "application/json"}), "upstream", "more than 8 MB"),
        (text_reply("event: message\ndata: {}\n\n" * 5, content_type=SSE), "upstream", "Failed to parse SSE message"),
        (text_reply("data: " + "x" * 2_000_000, content_type=SSE), "upstream", "exceeded the 1048576 byte limit"),
        (Reply(b"", 302, {"location": "http://127.0.0.1:1/"}), "upstream", "not followed"),
    ],
)
def test_what_is_no_mcp_server_is_a_failure_of_its_kind(reply: Reply, kind: str, why: str):
    async def test(server: ApiServer) -> SourceError:
        server.routes["*"] = reply
        source = over_http(f"{server.base}/mcp", key=KEY)
        try:
            with pytest.raises(SourceError, match="papers cannot be opened: ") as caught:
                await find(source)
        finally:
            await source.aclose()
        assert len(server.requests) <= 3
        return caught.value

    error = run(test)
    assert error.kind == kind
    assert why in str(error)


def test_a_server_that_says_nothing_is_a_timeout_and_one_that_no_one_serves_is_upstream():
    async def test(server: ApiServer) -> str:
        server.routes["*"] = Reply(how="hang")
        source = over_http(f"{server.base}/mcp", seconds=0.2)
        try:
            with pytest.raises(SourceError, match="it did not answer in time") as caught:
                await find(source)
        finally:
            await source.aclose()
        return caught.value.kind

    assert run(test) == "timeout"
    with pytest.raises(SourceError, match="it cannot be reached") as caught:
        found(over_http("http://127.0.0.1:1/mcp"))
    assert caught.value.kind == "upstream"


@dataclass
class TwoCalls:
    """A server that answers the query `second` while the body of its answer to `first` is on its way."""

    first: tuple[int, dict[str, Any]]
    second: tuple[int, dict[str, Any]]
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0] or "0")
        request: dict[str, Any] = json.loads(await reader.readexactly(length) or b"{}")
        query = request.get("params", {}).get("arguments", {}).get("query", "")
        if query == "second":
            await self.begun.wait()
        status, answer = self.reply(request, query)
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **answer}).encode() if answer else b""
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
        writer.write(f"HTTP/1.1 {status} Status\r\n{kind}\r\n\r\n".encode())
        await writer.drain()
        if query == "first":
            self.begun.set()
            await self.over.wait()
        writer.write(body)
        await writer.drain()
        writer.close()

    def reply(self, request: dict[str, Any], query: str) -> tuple[int, dict[str, Any]]:
        match request.get("method"):
            case "initialize":
                version: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                return 200, {"result": {**version, "serverInfo": {"name": "two", "version": "1"}}}
            case "tools/list":
                return 200, {"result": {"tools": [TOOL]}}
            case "tools/call":
                return self.first if query == "first" else self.second
            case "notifications/initialized":
                return 202, {}
            case _:
                return 200, {"error": {"code": -32601, "message": "no such method"}}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((429, REFUSED), (200, FOUND), ("rate: papers broke off: it answered 429", "found")),
        ((200, REFUSED), (500, REFUSED), ("bad_query: papers refused the call: no such place", "upstream: papers broke off: it answered 500")),
        ((200, FOUND), (401, REFUSED), ("found", "auth: papers broke off: it answered 401")),
    ],
)  # fmt: skip
def test_what_one_call_fails_with_is_not_what_another_one_at_the_same_time_does(
    first: tuple[int, dict[str, Any]], second: tuple[int, dict[str, Any]], said: tuple[str, str]
):
    server = TwoCalls(first, second)

    async def scene() -> tuple[str, str]:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        source = over_http(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp")

        async def say(query: str) -> str:
            try:
                return (await find(source, query))[0].text
            except SourceError as error:
                return f"{error.kind}: {error}"

        async with asyncio.timeout(30), listener:
            call = asyncio.create_task(say("first"))
            other = await say("second")
            server.over.set()
            try:
                return await call, other
            finally:
                await source.aclose()

    assert asyncio.run(scene()) == said
