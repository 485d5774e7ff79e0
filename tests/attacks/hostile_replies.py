"""Random replies of a hostile endpoint, the same ones for the same seed: bodies up to 8 MB, odd JSON, odd HTTP.

It needs the standard library alone. Each reply writes one whole response to a `BaseHTTPRequestHandler`, so an endless
stream of them answers every request of a client, whatever it asks for:

    answers = replies(seed=1)
    with hostile_server(lambda handler: next(answers)(handler)):
        ...

`next` on one generator from two threads at once is an error: hold a lock where requests come at the same time.
"""

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator
from copy import copy
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, cast

Reply = Callable[[BaseHTTPRequestHandler], None]
LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a body as they are sent; a compressed one is up to a hundred times as long when it is read."""

NUMBERS: Final[tuple[Any, ...]] = tuple(
    json.loads(number)
    for number in (
        *("0", "1", "-1", "1.5", "1e30", "-1e9", "1e309", "NaN", "Infinity", "-Infinity", f"1{'0' * 30}"),
        *('"7"', '"1e400"', "true", "false", "null", "[]", "[1]", "{}", '{"value": 3}'),
    )
)
"""What a server may send where a number belongs."""
_ERRORS: Final[tuple[Any, ...]] = (*("no", "\x1b[2J", None, 7), {"message": ["no"]}, {"message": {"a": {}}})
_FINISHES: Final[tuple[Any, ...]] = (None, None, None, "stop", "length", "content_filter", "tool_calls", 7, {})
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, "", "stop", "\ud800", "\x00\x1b[2J"),
    *([], [None], [[["a"]]], {}, {"text": 1}),
)
"""What it may send anywhere else."""
WORDS: Final = (
    *("<search>", "</search>", "<answer>", "</answer>", "<think>", "</think>", "Lurnia", "[1]", " ", "\n", "\u2028"),
    *("A: who wrote it (web)", "é", "\x1b[31m", "\ud800", "<", ">", "{", "}", "&lt;", "<|im_end|>", "A" * 900),
)


def replies(seed: int) -> Iterator[Reply]:
    """Replies without end; the same ones for the same seed."""
    chance = random.Random(seed)
    while True:
        yield chance.choice(_KINDS)(random.Random(chance.random()))


def chat_events(chance: random.Random) -> Iterator[Any]:
    """Events of a chat completion's stream, most of them with something odd in them."""
    for _ in range(chance.randrange(1, 30)):
        yield odd(chance, _chunk(chance))
    usage = {name: chance.choice(NUMBERS) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    yield odd(chance, {"choices": [], "usage": usage})


def odd(chance: random.Random, value: Any) -> Any:
    """The value, often with one of its members replaced by something that does not belong there."""
    keys = _keys(value)
    if chance.random() < 0.3 or not keys:
        return chance.choice(VALUES) if chance.random() < 0.2 else value
    key, changed = chance.choice(keys), copy(value)
    changed[key] = odd(chance, changed[key])
    return changed


def _keys(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value))
    return list(range(len(cast(list[Any], value)))) if isinstance(value, list) else []


def _chunk(chance: random.Random) -> dict[str, Any]:
    said: Any = "".join(chance.choice(WORDS) for _ in range(chance.randrange(20)))
    if chance.random() < 0.2:
        said = [{"type": "text", "text": said}]
    delta = {"role": "assistant", chance.choice(("content", "content", "reasoning", "reasoning_content")): said}
    finish = chance.choice(_FINISHES)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def _send(
    handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, kind: str = "application/json", **headers: str
) -> None:
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def _body(body: bytes, *, status: int = 200, kind: str = "application/json", **headers: str) -> Reply:
    return lambda handler: _send(handler, body, status=status, kind=kind, **headers)


def _stream(chance: random.Random) -> Reply:
    """Odd events, with odd ends of lines, comments and cuts."""
    end = chance.choice((b"\n\n", b"\r\n\r\n", b"\n", b"\r\r"))
    lines = [b"data: " + _dump(event) for event in chat_events(chance)]
    lines.insert(
        chance.randrange(len(lines)), chance.choice((b": still here", b"event: x\nid: 9", b"\xef\xbb\xbf", b""))
    )
    if chance.random() < 0.7:
        lines.append(b"data: [DONE]")
    body = end.join(lines) + end
    if chance.random() < 0.2:
        body = body[: chance.randrange(len(body))]
    return _body(body, kind="text/event-stream")


def _whole(chance: random.Random) -> Reply:
    """A completion that does not come as a stream."""
    message = {"role": "assistant", "content": "".join(chance.choice(WORDS) for _ in range(30))}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {name: chance.choice(NUMBERS) for name in ("prompt_tokens", "completion_tokens")}
    return _body(_dump(odd(chance, {"choices": [choice], "usage": usage})))


def _models(chance: random.Random) -> Reply:
    """A list of models, often a very long one."""
    row = {"id": "small", "owned_by": "vllm", "max_model_len": chance.choice(NUMBERS), "root": "/etc"}
    many = chance.choice((1, 1, 3, 50_000))
    return _body(_dump(odd(chance, {"object": "list", "data": [row] * many})))


def _long(chance: random.Random) -> Reply:
    """Megabytes in one line, in one string, or in one number."""
    size = chance.randrange(LONGEST // 8, LONGEST - 200)
    body = chance.choice(
        (
            lambda: b"x" * size,
            lambda: b"data: " + b"x" * size,
            lambda: b'data: {"choices": [{"delta": {"content": "' + b"x" * size + b'"}}]}\n\n',
            lambda: b"1" * size,
            lambda: b"data: " + b"[" * size + b"\n\n",
            lambda: b'{"data": [' + b'{"id":"a"},' * (size // 11) + b'{"id":"b"}]}',
            lambda: b"\n" * size,
            lambda: b'data: {"choices":[{"delta":{"content":"<"}}]}\n\n' * (size // 48),
        )
    )()
    return _body(body, kind=chance.choice(("application/json", "text/event-stream", "text/html")))


def _compressed(chance: random.Random) -> Reply:
    """Something small that is very long when it is read, or that cannot be."""
    size = chance.randrange(1, 64) * 1024 * 1024
    plain = chance.choice((b"\x00", b" ", b"data: x\n\n", b"["))
    packed = gzip.compress(plain * (size // len(plain)), compresslevel=1, mtime=0)[:LONGEST]
    encoding = chance.choice(("gzip", "gzip", "deflate", "br", "zstd", "gzip, gzip", "x-odd"))
    if encoding == "deflate":
        packed = zlib.compress(plain * (size // len(plain)), level=1)
    return _body(packed, kind=chance.choice(("application/json", "text/event-stream")), content_encoding=encoding)


def _error(chance: random.Random) -> Reply:
    """A status with odd headers and a body that may be long."""
    status = chance.choice((300, 304, 400, 401, 403, 404, 418, 422, 429, 429, 500, 502, 503, 599))
    wait = chance.choice(
        ("nan", "inf", "-5", "1e9", "9" * 400, "0", "soon", "Wed, 21 Oct 2099 07:28:00 GMT", "0x10", "")
    )
    said = chance.choice(_ERRORS)
    more = "x" * chance.choice((0, 0, 5_000_000))
    return _body(_dump({"error": said, "more": more}), status=status, retry_after=wait)


def _redirect(chance: random.Random) -> Reply:
    """To somewhere else."""
    place = chance.choice(
        ("http://127.0.0.1:9/v1", "//127.0.0.1:9", "/", "file:///etc/passwd", "http://user:word@[::1]:9/", "\\\\x", "")
    )
    return _body(b"", status=chance.choice((301, 302, 303, 307, 308)), location=place)


def _bytes(chance: random.Random) -> Reply:
    """No JSON at all."""
    body = chance.choice((b"", b"\xef\xbb\xbf{}", b"{", b"null", b"[]", b"<html>hello</html>", chance.randbytes(5000)))
    return _body(body, kind=chance.choice(("application/json", "text/event-stream", "text/html", "x/y; charset=hex")))


def _short(chance: random.Random) -> Reply:
    """Fewer bytes than were promised, and then nothing: the connection closes."""
    body = b'data: {"choices": [{"delta": {"content": "' + b"x" * chance.randrange(100)

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("content-length", str(len(body) + 100))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return write


_KINDS: Final = (*(_stream, _stream, _stream, _whole, _models, _long, _compressed, _error, _redirect, _bytes, _short),)
