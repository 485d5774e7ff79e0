"""`/mcp`: MCP over streamable HTTP, stateless, in its new and older versions, behind the server's access middleware.

The SDK is loaded by the first client: it costs a second, which no other client should wait for.
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
from server.evidence.service import EvidenceService
from server.http.errors import ApiError
from server.http.stream import ClientGone
from server.mcp.cancelling import Cancelling
from server.mcp.jobs import Jobs
from server.runs.manager import RunManager

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

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
