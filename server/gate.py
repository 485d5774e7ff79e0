"""What every request passes, as pure ASGI: its id, security headers, Host, Origin, the key and the body's size."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import ApiError

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
GUARDED: Final = ("/v1", "/retrieve")
_REQUEST_ID: Final = re.compile(r"[\w.:-]{1,128}")
_DRAINED_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class Rules:
    """Who may ask, and how much."""

    key: SecretStr | None = None
    """What clients send as their bearer token; none, or an empty one: nothing."""
    hosts: frozenset[str] | None = LOOPBACK
    """Names that a Host header may hold, without port; None: any. A guard against DNS rebinding."""
    body_bytes: int = 4 * 1024 * 1024


class Gate:
    """Lets a request through to `app`, or answers it with an OpenAI error object."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        secret = rules.key.get_secret_value() if rules.key else ""
        self._key = _digest(secret) if secret else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer["x-request-id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    answer[name] = value
            await send(message)

        if refusal := self._refusal(headers, path=scope["path"]):
            await refusal.response()(scope, receive, send_marked)
            return
        await self._app(scope, capped(receive, most_bytes=self._rules.body_bytes), send_marked)

    def _refusal(self, headers: Headers, *, path: str) -> ApiError | None:
        host = headers.get("host", "")
        if self._rules.hosts is not None and host_name(host) not in self._rules.hosts:
            return ApiError(
                HTTPStatus.FORBIDDEN,
                f"The host {host!r} is not served here; use http://127.0.0.1 with the port of the server, "
                "or start it with --host for other names.",
                code="host_not_allowed",
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return ApiError(
                HTTPStatus.FORBIDDEN,
                "Pages of other origins may not ask this server; call it from a program or from its own page.",
                code="origin_not_allowed",
            )
        guarded = any(path == prefix or path.startswith(f"{prefix}/") for prefix in GUARDED)
        if guarded and self._key and not _bears(headers.get("authorization", ""), self._key):
            return ApiError(
                HTTPStatus.UNAUTHORIZED,
                "The key is missing or wrong; send the server's key as 'Authorization: Bearer KEY'.",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        return None


def capped(receive: Receive, *, most_bytes: int) -> Receive:
    """Reading a body that is larger raises `ApiError`; the rest of it is read and dropped, so that the client hears."""
    total = 0

    async def receive_capped() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total <= most_bytes:
            return message
        while message.get("more_body", False) and total <= most_bytes + _DRAINED_BYTES:
            message = await receive()
            total += len(message.get("body", b""))
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is larger than {most_bytes:,} bytes; send a shorter question, and long texts as an index.",
            code="body_too_large",
        )

    return receive_capped


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _bears(authorization: str, key: bytes) -> bool:
    """Whether the header holds the key of this digest; takes as long for a wrong one."""
    scheme, _, token = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(_digest(token.strip()), key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
