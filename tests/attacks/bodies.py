"""Random hostile requests, the same ones for the same seed: every address, bodies up to 8 MB, odd JSON and odd HTTP."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.attacks.hostile_replies import VALUES, WORDS, odd

LONGEST: Final = 8 * 1024 * 1024
JSON: Final = {"content-type": "application/json"}
_QUESTION: Final = "What is Aurora Falls?"
_CALL: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
_BUDGETS: Final = {"seconds": 5}


@dataclass(frozen=True)
class Hostile:
    """One request; `chunk` sends its body in chunks of this number of bytes."""

    kind: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunk: int = 0


def bodies(seed: int) -> Iterator[Hostile]:
    """Requests without end."""
    chance = random.Random(seed)
    while True:
        name, make = chance.choice(list(_KINDS.items()))
        path, valid = chance.choice(list(_VALID.items()))
        headers = JSON | ({"accept": "application/json, text/event-stream"} if path == "/mcp" else {})
        yield make(random.Random(chance.random()), name, path, valid, headers)


_VALID: Final[dict[str, dict[str, Any]]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": _QUESTION}],
        "budgets": _BUDGETS,
        "stream": False,
    },
    "/v1/responses": {"input": _QUESTION, "budgets": _BUDGETS, "metadata": {"a": "b"}, "stream": True},
    "/v1/evidence": {"question": _QUESTION, "max_chars": 2000, "sources": ["corpus"], "stream": False},
    "/api/runs": {"messages": [{"role": "user", "content": _QUESTION}], "budgets": _BUDGETS, "conversation": "c"},
    "/retrieve": {"queries": [_QUESTION, "falls"], "topk": 3, "return_scores": True},
    "/mcp": _CALL | {"params": {"name": "search_evidence", "arguments": {"question": _QUESTION}}},
}


def _question(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    return Hostile(kind, "POST", path, json.dumps(valid).encode(), headers)


def _odd(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """A member that does not belong there."""
    made: Any = valid
    for _ in range(chance.randrange(1, 4)):
        made = odd(chance, made)
    return Hostile(kind, "POST", path, json.dumps(made).encode(), headers)


def _words(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """A text of tags, marks and blanks in the place of every text, up to 8 MB."""
    text = "".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 60)))
    text = chance.choice((text, "<" + " " * 1000, "<think>", "[1], ", "\\", '"', "\n", "é", "\u2028- [1]: <a>"))
    text *= chance.randrange(1, max(2, LONGEST // (8 * len(text))))
    return Hostile(kind, "POST", path, json.dumps(_with(valid, text)).encode(), headers)


def _with(value: Any, text: str) -> Any:
    match value:
        case str():
            return text if len(value) > 6 and value not in ("tools/call", "search_evidence") else value
        case dict():
            return {name: _with(part, text) for name, part in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_with(part, text) for part in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def _many(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """One member of megabytes: numbers, texts, members, or lists in lists."""
    size = chance.randrange(LONGEST // 64, LONGEST)
    name = chance.choice([*valid, "x"])
    many = chance.choice(
        (
            lambda: b"[" + b"1," * (size // 2) + b"1]",
            lambda: b"[" + b'"",' * (size // 3) + b'""]',
            lambda: b"{" + b'"a":1,' * (size // 6) + b'"b":2}',
            lambda: b"{" + b",".join(b'"%d":1' % number for number in range(size // 24)) + b"}",
            lambda: b"[" * (size // 2) + b"]" * (size // 2),
            lambda: b'[{"role":"user","content":[{"type":"text"}]}' + b',{"role":"x"}' * (size // 13) + b"]",
            lambda: b"1" * size,
            lambda: b'"' + b"\\u0041" * (size // 6) + b'"',
            lambda: b'"' + b"\\\\" * (size // 2) + b'"',
            lambda: b"[" + b"{}," * 15_000 + b"{}]",
        )
    )()
    rest = {key: value for key, value in valid.items() if key != name}
    body = json.dumps(rest).encode()[:-1] + (b"," if rest else b"") + b'"' + name.encode() + b'":' + many + b"}"
    return Hostile(kind, "POST", path, body, headers)


def _bytes(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """No JSON, other encodings of it, and other types of content."""
    whole = json.dumps(valid)
    body = chance.choice(
        (
            lambda: b"",
            lambda: b"null",
            lambda: chance.randbytes(chance.randrange(LONGEST)),
            lambda: whole.encode("utf-16"),
            lambda: whole.encode("utf-32-be"),
            lambda: b"\xef\xbb\xbf" + whole.encode(),
            lambda: whole[: chance.randrange(len(whole))].encode(),
            lambda: b"\x00" * chance.randrange(LONGEST),
            lambda: b" " * (LONGEST // 4) + whole.encode(),
        )
    )()
    types = ("application/json", "application/json; charset=utf-16", "text/plain", "multipart/form-data", "x", "")
    return Hostile(kind, "POST", path, body, headers | {"content-type": chance.choice(types)})


def _chunked(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """A body in many tiny chunks."""
    body = json.dumps(valid | {"x": "y" * chance.randrange(100_000)}).encode()
    return Hostile(kind, "POST", path, body, headers, chunk=chance.choice((1, 7, 1000)))


def _elsewhere(chance: random.Random, kind: str, path: str, valid: dict[str, Any], headers: dict[str, str]) -> Hostile:
    """Other methods and addresses, with odd parts in them."""
    said = str(chance.choice(VALUES)).encode("utf-8", "replace").hex() or "0"
    place = chance.choice(
        (
            f"/api/runs/{said}", f"/api/runs/{said}/events", f"/api/runs/{said}/export?format={said}", "/api/runs?limit=1e9",
            f"/api/runs?search={'%22*' * 80}", f"/v1/responses/resp_{said}", f"/v1/models/{said * 50}", "/v1/tools",
            f"/api/runs?before={said}_{said}", "/readyz", "/metrics", "/openapi.json", "/" + "a" * 15_000, "/api/runs",
        )
    )  # fmt: skip
    method = chance.choice(("GET", "GET", "GET", "DELETE", "PUT", "POST", "PATCH", "OPTIONS"))
    return Hostile(kind, method, place, b"" if method == "GET" else b"{}", JSON)


Make = Callable[[random.Random, str, str, dict[str, Any], dict[str, str]], Hostile]
_KINDS: Final[dict[str, Make]] = {
    "a question": _question,
    "odd members": _odd,
    "odd texts": _words,
    "megabytes of members": _many,
    "other bytes": _bytes,
    "tiny chunks": _chunked,
    "other addresses": _elsewhere,
}
