"""Cancelling over stateless HTTP, for the protocol versions that cancel by a message of its own.

A client gets a session id that is not kept; it only says whose call a later "cancelled" means. Where another replica
gets that message, the call goes on as it did. From 2026 on, a client cancels by closing its request.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.auth.keys import caller
from server.http.bodies import again, read_whole

SESSION: Final = "mcp-session-id"
Call = tuple[str, str, str]
"""Key, session and id of a request."""


class Cancelling:
    """Stands before the SDK's handler, and ends a call as if its client had left where it gets a cancel message."""

    def __init__(self) -> None:
        self._calls: dict[Call, asyncio.Event] = {}

    async def __call__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let `app` answer one POST."""
        receive, message = await _read(receive)
        session = Headers(scope=scope).get(SESSION, "")
        method = message.get("method")
        if method == "initialize":
            await app(scope, receive, _with_session(send, uuid4().hex))
        elif method == "tools/call" and session:
            await self._call(app, scope, receive, send, call=_call(session, message.get("id")))
        else:
            if method == "notifications/cancelled" and session:
                self._cancel(_call(session, _object(message.get("params")).get("requestId")))
            await app(scope, receive, send)

    def _cancel(self, call: Call) -> None:
        if cancelled := self._calls.get(call):
            cancelled.set()

    async def _call(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, call: Call) -> None:
        cancelled = self._calls[call] = asyncio.Event()
        last: Message = {}

        async def send_seen(message: Message) -> None:
            nonlocal last
            last = message
            await send(message)

        try:
            await app(scope, _until(receive, cancelled), send_seen)
            if cancelled.is_set() and last and last.get("more_body", last["type"] == "http.response.start"):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if self._calls.get(call) is cancelled:
                del self._calls[call]


def _call(session: str, id: object) -> Call:
    return caller().key, session, json.dumps(id)


async def _read(receive: Receive) -> tuple[Receive, Mapping[str, Any]]:
    """The body as one message, to be received again, and what it says; nothing where it is no JSON object."""
    body = await read_whole(receive)
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    return again(body, receive), _object(said)


def _object(value: Any) -> Mapping[str, Any]:
    """A JSON object, or an empty one instead of anything else."""
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _until(receive: Receive, cancelled: asyncio.Event) -> Receive:
    """What comes, until it is cancelled: then the client has left."""

    async def receive_or_leave() -> Message:
        coming, cancelling = asyncio.ensure_future(receive()), asyncio.ensure_future(cancelled.wait())
        try:
            await asyncio.wait({coming, cancelling}, return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else {"type": "http.disconnect"}
        finally:
            coming.cancel()
            cancelling.cancel()

    return receive_or_leave


def _with_session(send: Send, session: str) -> Send:
    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)[SESSION] = session
        await send(message)

    return send_named
