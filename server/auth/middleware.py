"""What every request passes, as pure ASGI: its id, security headers, Host, Origin, the key, the body and a slot.

It refuses before anything is done for a request; what happens behind it is the app's.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.auth.admission import Admission, Slot
from server.auth.keys import CALLER, Caller, Keys, KeyStore, caller
from server.http.bodies import again, capped, check_shape, read_whole
from server.http.errors import ApiError, internal_error
from server.http.stream import ClientGone, Runs

logger = logging.getLogger(__name__)

SECURITY_HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
GUARDED: Final = ("/v1", "/retrieve", "/mcp", "/api")
"""Addresses that ask for a key, each with all below it."""
COSTS: Final = re.compile(r"/v1/(chat/completions|responses|evidence)|/api/runs(/[^/]+/answer_with)?")
"""Addresses whose POST has a model write, and needs a slot for it. `/mcp` takes slots by itself, for each search."""
STREAMED: Final = re.compile(r"/v1/files/?")
"""Addresses whose body is a file: they read it piece by piece, with bounds of their own."""
BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods whose body is not read."""
HEADER_BYTES: Final = 16 * 1024
"""Of all headers, or of the address."""
PIECE_BYTES: Final = 256 * 1024
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(
    rf"(?:(?P<name>(?=.{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]{{2,45}})\])(?::(?P<port>\d{{1,5}}))?"
)
_REQUEST_ID: Final = re.compile(r"[\w.:-]{1,128}", re.ASCII)


@dataclass(frozen=True)
class Rules:
    """Who may ask, and how much."""

    key: SecretStr | None = None
    """The server's own key, without limits, that clients may send; none, or an empty one: there is none."""
    keys: KeyStore | None = None
    """Where the keys of clients stand. Once there was one, every client needs one."""
    hosts: frozenset[str] | None = LOOPBACK
    """Names that a Host header may hold, without port; None: any. A guard against DNS rebinding."""
    body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 20.0
    """A body that is not there by then is refused."""


class AccessMiddleware:
    """Lets a request through to `app`, or answers it with an OpenAI error object."""

    def __init__(
        self, app: ASGIApp, rules: Rules, *, keys: Keys | None = None, admission: Admission | None = None
    ) -> None:
        """Stand before an app.

        Args:
            app: what answers.
            rules: who may ask, and how much.
            keys: of clients; by default the one of the rules, if there is one.
            admission: gives slots to runs; without it there is no bound.
        """
        self._app = app
        self._rules = rules
        self._keys = keys or Keys(server_key=rules.key)
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, send)
            case "websocket":  # there are none here, and none that could pass unchecked
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request under its id."""
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        started = False

        async def send_marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                answer = MutableHeaders(scope=message)
                answer["x-request-id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    answer[name] = value
            for piece in pieces(message):
                await send(piece)

        token = CALLER.set(Caller(request_id=request_id, parent=headers.get("traceparent", "")))
        try:
            await self._pass(scope, receive, send_marked, headers)
        except ApiError as refusal:
            await refusal.response()(scope, receive, send_marked)
        except ClientGone:
            return
        except Exception:  # the boundary: whatever broke is logged under the request's id, and nothing of it is shown
            logger.exception("the request failed")
            if not started:
                await internal_error().response()(scope, receive, send_marked)
        finally:
            CALLER.reset(token)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Check the request and hand it on.

        Raises:
            ApiError: it is refused; nothing was sent.
            ClientGone: the client left before its run began.
        """
        path = scope["path"]
        self._check(scope, headers)
        if _below(path, GUARDED):
            key = await self._keys.admit(headers.get("authorization", ""))
            scope["state"]["key"] = key
            CALLER.set(replace(caller(), key=key))
        if scope["method"] in BODILESS:
            await self._app(scope, receive, send)
            return
        admission = self._admission if scope["method"] == "POST" and COSTS.fullmatch(path) else None
        if admission:
            admission.check(self._keys.limit)
        if STREAMED.fullmatch(path):
            await self._app(scope, receive, send)
            return
        receive = capped(receive, most_bytes=self._rules.body_bytes, seconds=self._rules.body_seconds)
        body = await read_whole(receive)
        await check_shape(body, path=path)
        receive_again = again(body, receive)
        del body
        if admission is None:
            await self._app(scope, receive_again, send)
            return
        slot = await self._enter(admission, receive)
        scope["state"]["slot"] = slot
        try:
            await self._app(scope, receive_again, send)
        finally:
            if not slot.handed_over:
                slot.leave()

    async def _enter(self, admission: Admission, receive: Receive) -> Slot:
        """Wait for a slot as long as the client does; its body has been read."""
        if admission.wait_seconds == 0:
            return await admission.enter(self._keys.limit)
        return await Runs().unless_gone(receive, admission.enter(self._keys.limit))

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse what no honest client sends.

        Raises:
            ApiError: with the reason.
        """
        if sum(len(name) + len(value) for name, value in headers.raw) > HEADER_BYTES:
            raise ApiError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The headers are larger than {HEADER_BYTES:,} bytes; send fewer or shorter ones.",
                code="headers_too_large",
            )
        if len(scope["path"]) + len(scope.get("query_string", b"")) > HEADER_BYTES:
            raise ApiError(HTTPStatus.REQUEST_URI_TOO_LONG, "The URL is too long; shorten it.", code="url_too_long")
        if not scope["path"].startswith("/"):
            raise ApiError(
                HTTPStatus.BAD_REQUEST, "Request a path, such as /healthz, not a full URL.", code="invalid_url"
            )
        named = headers.getlist("host")
        host = named[0] if len(named) == 1 else ""
        name, hosts = host_name(host), self._rules.hosts
        if (not name and named) or (hosts is not None and name not in hosts):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                f"The host {host!r} is not served here; use http://127.0.0.1 with the port of the server, "
                "or start it with --host for other names.",
                code="host_not_allowed",
            )
        if any(_authority(origin) != host for origin in headers.getlist("origin")):
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "Pages of other origins may not call this server; use a program, or the server's own page.",
                code="origin_not_allowed",
            )


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case. Empty where it is no name with a port."""
    found = _HOST.fullmatch(host)
    if found is None or int(found["port"] or 1) not in range(1, 65_536):
        return ""
    if found["name"]:
        return found["name"].lower()
    try:
        return str(IPv6Address(found["six"]))
    except ValueError:
        return ""


def pieces(message: Message, *, most_bytes: int = PIECE_BYTES) -> Iterator[Message]:
    """A long body in pieces: the next one leaves when the client has taken most of those before."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // most_bytes * most_bytes
    for start in range(0, last, most_bytes):
        yield {"type": message["type"], "body": body[start : start + most_bytes], "more_body": True}
    yield {**message, "body": body[last:]} if last else message


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _below(path: str, prefixes: tuple[str, ...]) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)
