"""Attacks on the server's doors, one for each promise of docs/security.md that is kept by HTTP alone."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from server.auth.admission import Admission, AdmissionBounds
from server.auth.middleware import GUARDED, HEADER_BYTES, SECURITY_HEADERS, Rules
from server.http.stream import EventStream, Runs
from tests.server.live import QUESTION, in_memory, make_service, serving

CHAT = "/v1/chat/completions"
KEY = "planted-s3cret-key"
KEYED = Rules(key=SecretStr(KEY))
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def send(method: str, path: str, *, rules: Rules | None = None, **request: Any) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with asyncio.timeout(20), in_memory(make_service(), rules) as client:
            return await client.request(method, path, **request)

    return asyncio.run(run())


def raw(talk: Talk, rules: Rules | None = None) -> Any:
    """Speak to a real server without a client library between."""

    async def run() -> Any:
        async with serving(make_service(), rules) as address:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rsplit(":", 1)[1]))
            try:
                return await talk(reader, writer)
            finally:
                writer.close()

    return asyncio.run(run())


def saying(*pieces: bytes) -> Talk:
    """Say this, and hear everything until the server closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        return await reader.read()

    return talk


def head(*lines: str, method: str = "POST", path: str = CHAT) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *lines, "", ""]).encode()


# Slow clients


@pytest.mark.parametrize("said", [b"", b"POST /v1/chat", head()[:-2], head("content-length: 50")[:-2]])
def test_a_head_that_does_not_come_in_time_ends_the_connection(said: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(said)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""

    assert raw(talk, Rules(body_seconds=0.2)) == b""


def test_a_second_head_on_the_same_connection_has_no_more_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(head(method="GET", path="/healthz"))
        first = await reader.readuntil(b'{"status":"ok"}')
        writer.write(b"GET /healthz HT")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        return first

    assert raw(talk, Rules(body_seconds=0.2)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", [CHAT, "/retrieve"])
@pytest.mark.parametrize("how", ["content-length: 500", "transfer-encoding: chunked"])
def test_a_body_that_does_not_come_in_time_is_refused(path: str, how: str) -> None:
    start = b"1\r\n{\r\n" if "chunked" in how else b"{"
    answer = raw(saying(head("content-type: application/json", how, path=path), start), Rules(body_seconds=0.2))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer
    assert b"content-security-policy" in answer


def test_a_body_byte_by_byte_has_no_more_time_than_one_that_waits() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(head("content-type: application/json", "content-length: 100000"))
        hearing = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))  # what is sent after that may reset the connection
        while not hearing.done():
            writer.write(b" ")
            await asyncio.wait({hearing}, timeout=0.02)
        return hearing.result()

    assert raw(talk, Rules(body_seconds=0.3)).startswith(b"HTTP/1.1 408")


def test_a_client_that_never_reads_loses_its_run() -> None:
    async def run() -> None:
        never = asyncio.Event()

        async def stuck(message: Any) -> None:
            if message["type"] == "http.response.body":
                await never.wait()

        async def produce(put: Callable[[bytes], None]) -> None:
            put(b"data: 1\n\n")
            await never.wait()

        async def receive() -> Any:
            await never.wait()

        runs = Runs()
        stream = EventStream(produce, runs=runs, last_words=b"", heartbeat_seconds=10)
        stream.stalled_seconds = 0.05
        async with asyncio.timeout(10):
            await stream({"type": "http"}, receive, stuck)
            await runs.idle()

    asyncio.run(run())


# Sizes


def test_a_chunked_body_without_a_length_is_cut_where_it_is_too_large() -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(head("content-type: application/json", "transfer-encoding: chunked"))
        for _ in range(64):
            writer.write(chunk)
        writer.write(b"0\r\n\r\n")
        return await reader.readuntil(b"}}")

    answer = raw(talk, Rules(body_bytes=100_000))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer


def test_a_length_that_is_a_lie_gets_no_more_than_it_sends() -> None:
    answer = raw(
        saying(head("content-type: application/json", "content-length: 99999999999"), b"{}"), Rules(body_seconds=0.2)
    )
    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/healthz", {"x-large": "x" * HEADER_BYTES}, 431),
        ("/healthz", {f"x-{n}": "y" * 100 for n in range(HEADER_BYTES // 100)}, 431),
        (f"/healthz?q={'x' * HEADER_BYTES}", {}, 414),
    ],
)
def test_heads_that_are_too_large_are_refused(path: str, headers: dict[str, str], code: int) -> None:
    response = send("GET", path, headers=headers)
    assert response.status_code == code
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_an_endless_head_is_cut_by_the_connection_itself() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        try:
            for n in range(2000):
                writer.write(f"x-{n}: {'y' * 100}\r\n".encode())
                await writer.drain()
            return await reader.read()
        except ConnectionError:
            return b"HTTP/1.1 400"

    assert raw(talk).startswith(b"HTTP/1.1 4")


def test_json_that_is_nested_or_long_costs_little() -> None:
    headers = {"content-type": "application/json"}
    for body in (b"[" * 200_000, b'{"messages":' * 50_000, b'{"messages":[' + b"0," * 500_000 + b"0]}"):
        assert send("POST", CHAT, content=body, headers=headers).status_code == 400


# Who may ask


@pytest.mark.parametrize("prefix", GUARDED)
@pytest.mark.parametrize("more", ["", "/", "/x", "//x"])
def test_every_guarded_address_and_all_below_it_ask_for_the_key(prefix: str, more: str) -> None:
    for method in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert send(method, f"{prefix}{more}", rules=KEYED).status_code == 401


@pytest.mark.parametrize(
    "path",
    ["//v1/models", "/V1/models", "/%76%31/models", "/v1%2Fmodels", "/./v1/models", "/x/../v1/models", "/v1;x/models"],
)
def test_no_spelling_of_an_address_gets_round_the_key(path: str) -> None:
    said = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode()
    answer = raw(saying(said), KEYED)
    assert re.match(rb"HTTP/1.1 40[14]", answer)
    assert b'"object"' not in answer


@pytest.mark.parametrize(
    "request_",
    [
        {"params": {"key": KEY}},
        {"params": {"api_key": KEY}},
        {"headers": {"x-api-key": KEY}},
        {"headers": {"cookie": f"key={KEY}"}},
        {"headers": {"authorization": f"Basic {KEY}"}},
        {"headers": {"authorization": KEY}},
        {"headers": {"authorization": f"Bearer {KEY} {KEY}"}},
        {"headers": {"authorization": f"Bearer {KEY[:-1]}"}},
        {"headers": {"authorization": f"Bearer {KEY.upper()}"}},
    ],
)
def test_a_key_counts_only_as_a_bearer_token(request_: dict[str, Any]) -> None:
    response = send("GET", "/v1/models", rules=KEYED, **request_)
    assert response.status_code == 401
    assert KEY not in response.text


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1:9999",
        "http://evil.example#127.0.0.1",
        "http://127.0.0.1@evil.example",
        "http://[",
        "",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_no_other_origin_may_ask_and_none_is_granted_access(origin: str, method: str) -> None:
    headers = {"origin": origin, "access-control-request-method": "POST"}
    response = send(method, CHAT, headers=headers, json={"messages": QUESTION})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "origin_not_allowed")
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_of_two_hosts_neither_is_believed() -> None:
    async def run() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        headers = [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]
        await asgi({"headers": headers}, sent)
        return sent

    assert asyncio.run(run())[0]["status"] == 403


async def asgi(scope: Mapping[str, Any], sent: list[dict[str, Any]]) -> None:
    """Ask the app itself, as a server would that checks less than uvicorn."""
    from server.app import create_app

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def hear(message: Any) -> None:
        sent.append(message)

    usual: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }
    await create_app(make_service())({**usual, **scope}, receive, hear)


def test_a_websocket_is_closed_unopened() -> None:
    sent: list[dict[str, Any]] = []
    asyncio.run(asgi({"type": "websocket", "path": "/v1/realtime"}, sent))
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/"]
)
def test_nothing_beside_the_page_can_be_fetched(path: str) -> None:
    said = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode()
    assert re.match(rb"HTTP/1.1 40[345]", raw(saying(said)))


# What every answer carries


def answers_of_every_kind() -> dict[str, httpx2.Response]:
    async def run() -> dict[str, httpx2.Response]:
        async with asyncio.timeout(60):
            found: dict[str, httpx2.Response] = {}
            async with in_memory(make_service(), Rules(key=SecretStr(KEY), body_bytes=1000)) as client:
                own = {"authorization": f"Bearer {KEY}"}
                found["200"] = await client.get("/")
                found["401"] = await client.get("/v1/models")
                found["403"] = await client.get("/", headers={"host": "evil.example"})
                found["404"] = await client.get("/nothing")
                found["405"] = await client.post("/healthz")
                found["413"] = await client.post(CHAT, content=b" " * 2000, headers=own)
                found["400"] = await client.post(CHAT, content=b"{", headers=own)
                found["431"] = await client.get("/", headers={"x": "y" * HEADER_BYTES})
            async with in_memory(make_service((ZeroDivisionError("a bug"),))) as client:
                found["500"] = await client.post(CHAT, json={"messages": QUESTION})
            service = make_service(admission=Admission(AdmissionBounds(runs=0, queue=0)))
            async with in_memory(service) as client:
                found["429"] = await client.post(CHAT, json={"messages": QUESTION})
                service.admission.close()
                found["503"] = await client.post(CHAT, json={"messages": QUESTION})
            return found

    return asyncio.run(run())


def test_every_kind_of_answer_has_the_security_headers_and_errors_are_openai_objects() -> None:
    for code, answer in answers_of_every_kind().items():
        assert str(answer.status_code) == code
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers.get_list(name) == [value], (code, name)
        assert "server" not in answer.headers
        if code != "200":
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
            assert "Traceback" not in answer.text
            assert "ZeroDivision" not in answer.text


def test_the_policy_of_content_lets_nothing_in_from_elsewhere() -> None:
    policy = SECURITY_HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert not re.search(r"unsafe|https?:|\*|data:|blob:", policy)
