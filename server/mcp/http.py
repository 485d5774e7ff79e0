"""`/mcp`: MCP over streamable HTTP, stateless, in its new and older versions, behind the server's access middleware.

The SDK is loaded by the first client: it costs a second, which no other client should wait for.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.auth.keys import caller
from server.chat.service import Service
from server.evidence.service import EvidenceService
from server.http.bodies import again, read_whole
from server.http.errors import ApiError
from server.http.stream import ClientGone
from server.mcp.jobs import Jobs
from server.runs.manager import RunManager

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


SESSION: Final = "mcp-session-id"
Call = tuple[str, str, str]
"""Key, session and id of a request."""

PATH: Final = "/mcp"


class McpApp:
    """Answers `/mcp`. It must be closed in the event loop in which it answers."""

    def __init__(self, evidence: EvidenceService, run_manager: RunManager) -> None:
        self._evidence = evidence
        self._jobs = Jobs(run_manager)
        self._cancelling = Cancelling()
        self._loading: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            ApiError: it is no POST. There are no sessions: nothing can be listened to or ended.
        """
        if scope["method"] != "POST":
            raise ApiError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{scope['method']} {PATH} is not allowed; MCP clients send POST here, and there are no sessions.",
                code="method_not_allowed",
                headers={"allow": "POST"},
            )
        manager = await self._manager()
        with suppress(ClientGone):
            await self._cancelling(manager.handle_request, scope, receive, send)

    async def aclose(self) -> None:
        """End the SDK's own tasks. Started searches are the run manager's."""
        self._stop.set()
        if self._holding is not None:
            await asyncio.gather(self._holding, return_exceptions=True)

    async def _manager(self) -> "StreamableHTTPSessionManager":
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_future()
            self._holding = asyncio.create_task(self._hold(self._loading), context=Context())
        return await asyncio.shield(self._loading)

    async def _hold(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        """Hold the SDK's manager open, from beginning to end in one task, as it wants it."""
        try:
            manager = await asyncio.to_thread(self._load)
            async with manager.run():
                ready.set_result(manager)
                await self._stop.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    def _load(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from server.mcp.calls import Calls

        return StreamableHTTPSessionManager(
            Calls(self._evidence, self._jobs, self._evidence.service.runs).server(),
            stateless=True,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=False
            ),  # the access middleware does it
        )


def add_mcp(app: FastAPI, service: Service, run_manager: RunManager) -> McpApp:
    """Add `/mcp`; the caller closes what it gives.

    The access middleware cannot see which requests search: each search takes a slot by itself.

    Args:
        app: of the server.
        service: what answers.
        run_manager: of searches that outlive their call.
    """
    mcp = McpApp(EvidenceService.of(service, enter=service.enter), run_manager)
    app.router.routes.append(Route(PATH, endpoint=mcp, include_in_schema=False))
    return mcp


class Cancelling:
    """Stands before the SDK's handler, and ends a call as if its client had left where it gets a cancel message.

    For the protocol versions that cancel by a message of its own: a client gets a session id that is not kept; it only
    says whose call a later "cancelled" means. Where another replica gets that message, the call goes on as it did. From
    2026 on, a client cancels by closing its request.
    """

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
