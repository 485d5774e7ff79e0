"""Prometheus metrics, in base units and without any text of a question: what requests and runs report as they end.

Names and labels are a contract with dashboards. Each app has a registry of its own.
"""

import logging
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import __version__
from agent.sources.pages.errors import PageErrorKind
from agent.trace import Searched, SearchFailed, Step
from server.telemetry.watch import Observer, WatchedRun

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BLOCKED: Final = frozenset({"refused", "robots", "type", "size"})
"""Why a page is left alone on purpose; the rest (slow, unreachable, …) is a page that could not be had."""
_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TOKEN_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SEARCH_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Meters(Observer):
    """All metrics of one app, and the observer of runs that fills them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        build = Gauge("cairn_build_info", "What runs here; always 1.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self._requests = Counter(
            "cairn_requests_total", "Requests that were answered.", ["route", "code"], registry=self.registry
        )
        self._request_seconds = Histogram(
            "cairn_request_duration_seconds",
            "From a request's head to the end of its answer.",
            ["route"],
            buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )
        self._first_token = Histogram(
            "cairn_time_to_first_token_seconds",
            "From a request to the first word of its run.",
            buckets=_TOKEN_SECONDS,
            registry=self.registry,
        )
        self._active = Gauge("cairn_runs_active", "Active runs.", registry=self.registry)
        self._waiting = Gauge("cairn_runs_waiting", "Requests that wait for a slot.", registry=self.registry)
        self._runs = Counter("cairn_runs_total", "Runs that ended.", ["reason"], registry=self.registry)
        self._cancelled = Counter(
            "cairn_runs_cancelled_total", "Runs that were ended before their answer.", ["cause"], registry=self.registry
        )
        self._searches = Counter(
            "cairn_search_requests_total", "Searches of a source.", ["source", "outcome"], registry=self.registry
        )
        self._search_seconds = Histogram(
            "cairn_search_duration_seconds",
            "One search of a source, with its tries and backends.",
            ["source"],
            buckets=_SEARCH_SECONDS,
            registry=self.registry,
        )
        self._tokens = Counter("cairn_tokens_total", "Tokens of runs.", ["kind"], registry=self.registry)
        self._credits = Counter("cairn_search_credits_total", "Credits that searches cost.", registry=self.registry)
        self._cache_hits = Counter("cairn_cache_hits_total", "Found before.", ["cache"], registry=self.registry)
        self._blocked = Counter(
            "cairn_fetch_blocked_total", "Pages that were not fetched.", ["reason"], registry=self.registry
        )

    def waiting(self, count: Callable[[], int]) -> None:
        """Ask this how many wait for a slot."""
        self._waiting.set_function(count)

    def answered(self, *, route: str, code: int, seconds: float) -> None:
        self._requests.labels(route, str(code)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def began(self, run: WatchedRun) -> None:
        self._active.inc()

    def spoke(self, run: WatchedRun) -> None:
        self._first_token.observe(run.first_token or 0.0)

    def saw(self, run: WatchedRun, step: Step) -> None:
        match step:
            case Searched():
                outcome = "empty" if not step.passages else "found"
                self._searches.labels(step.source, outcome).inc()
                self._search_seconds.labels(step.source).observe(step.took)
                self._credits.inc(step.credits)
                if step.cached:
                    self._cache_hits.labels(f"searches_{step.cached}").inc()
            case SearchFailed():
                self._searches.labels(step.source, step.error).inc()
                self._search_seconds.labels(step.source).observe(step.took)
                self._credits.inc(step.credits)
            case _:
                pass

    def blocked(self, run: WatchedRun, reason: PageErrorKind) -> None:
        if reason in BLOCKED:
            self._blocked.labels(reason).inc()

    def ended(self, run: WatchedRun) -> None:
        self._active.dec()
        used = run.trace.usage
        kinds = {
            "prompt": used.prompt_tokens,
            "environment": used.environment_tokens,
            "reasoning": max(0, used.policy_tokens - used.answer_tokens),
            "answer": used.answer_tokens,
        }
        for kind, tokens in kinds.items():
            self._tokens.labels(kind).inc(tokens)
        stopped = run.trace.stopped
        self._runs.labels("broken" if run.broke or stopped is None else stopped.reason).inc()
        if run.cancelled:
            self._cancelled.labels(run.cancelled).inc()


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
