"""`/mcp`: MCP over streamable HTTP, stateless, in its new and its older protocol versions, behind the server's gate.

The SDK is loaded by the first client: it costs a second, which nobody else should wait for.
"""

import asyncio
from contextlib import suppress
from contextvars import Context
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from server.chat.service import Service
from server.evidence.service import Desk, desk_of
from server.http.errors import ApiError
from server.http.stream import ClientGone, Runs
from server.mcp.cancelling import Cancelling
from server.mcp.jobs import Jobs
from server.runs.manager import Keeper

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"


class McpApp:
    """Answers `/mcp`. It must be closed in the event loop in which it answers."""

    def __init__(self, desk: Desk, runs: Runs, keeper: Keeper) -> None:
        self._desk = desk
        self._runs = runs
        self._jobs = Jobs(keeper)
        self._cancelling = Cancelling()
        self._loading: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            ApiError: it is no POST. There are no sessions: nothing can be listened to or ended.
        """
        if scope["method"] != "POST":
            raise ApiError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{scope['method']} {PATH} is not possible; MCP clients send POST here, and there are no sessions.",
                code="method_not_allowed",
                headers={"allow": "POST"},
            )
        manager = await self._manager()
        with suppress(ClientGone):
            await self._cancelling(manager.handle_request, scope, receive, send)

    async def aclose(self) -> None:
        """End the SDK's own tasks. Started searches are the keeper's."""
        self._stop.set()
        if self._keeper is not None:
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _manager(self) -> "StreamableHTTPSessionManager":
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._loading), context=Context())
        return await asyncio.shield(self._loading)

    async def _keep(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
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
            Calls(self._desk, self._jobs, self._runs).server(),
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate does it
        )


def add_mcp(app: FastAPI, service: Service, searches: Keeper) -> McpApp:
    """Add `/mcp`; whoever calls this closes what it gives.

    The gate cannot see which requests search: each search takes a slot by itself.

    Args:
        app: of the server.
        service: what answers.
        searches: keeps searches that outlive their call.
    """
    mcp = McpApp(desk_of(service, slots=service.admission.slot), service.runs, searches)
    app.router.routes.append(Route(PATH, endpoint=mcp, include_in_schema=False))
    return mcp
