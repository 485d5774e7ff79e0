"""Measures every request, also refused ones, and writes one line about each: pure ASGI, around AccessMiddleware."""

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.telemetry.meters import CONTENT_TYPE, Meters

logger = logging.getLogger("server.requests")

GONE: Final = 499
"""The client left before there was an answer."""
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Probed all the time by machines: no line about them where they are answered well."""


def add_metrics(app: FastAPI, meters: Meters) -> None:
    """Answer `GET /metrics`. It needs no key, as the health addresses: it holds numbers and names of sources only."""

    @app.get("/metrics", response_class=Response, include_in_schema=False)
    async def metrics() -> Response:
        return Response(meters.exposition(), headers={"content-type": CONTENT_TYPE})


class MetricsMiddleware:
    """Lets `app` answer, and reports it."""

    def __init__(self, app: ASGIApp, meters: Meters, *, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._meters = meters
        self._known = frozenset(path for route in routes if "{" not in (path := str(getattr(route, "path", ""))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        code = GONE

        async def send_seen(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_seen)
        finally:
            seconds = perf_counter() - began
            route = self._route(scope)
            self._meters.answered(route=route, code=code, seconds=seconds)
            self._report(scope, route=route, code=code, seconds=seconds)

    def _route(self, scope: Scope) -> str:
        """The address as it is declared: what a stranger wrote into a path never becomes a label."""
        declared = str(getattr(scope.get("route"), "path", ""))
        if declared:
            return declared
        path: str = scope["path"]
        if path in self._known:
            return path
        return "/static" if path.startswith("/static/") else "other"

    def _report(self, scope: Scope, *, route: str, code: int, seconds: float) -> None:
        level = logging.WARNING if code >= 500 else logging.DEBUG if route in QUIET and code < 400 else logging.INFO
        if not logger.isEnabledFor(level):
            return
        state = scope.get("state", {})
        more = {"route": route, "method": scope["method"], "code": code, "seconds": round(seconds, 4)}
        ids = {"request_id": state.get("request_id", ""), "key": state.get("key", "")}
        logger.log(level, "%s %s %d", scope["method"], route, code, extra=more | ids)
