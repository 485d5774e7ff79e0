"""`/healthz`: the process lives. `/readyz`: it answers, because its engine and at least one source do, and goes on.

Both need no key and show no secrets. Answers to probes hold for a moment: frequent probes cost nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from agent.errors import PolicyError, SourceError
from agent.policies.base import Policy, Probed
from agent.sources.base import problems_of
from server.http.schema import Alive, Ready
from server.retrieval.service import Retriever

PROBE_SECONDS: Final = 3.0
PROBE_TTL_SECONDS: Final = 2.0


@dataclass
class Readiness:
    """Whether requests should be sent here."""

    retriever: Retriever
    policy: Policy | None = None
    """None: nothing is written here, only searched."""
    probe_seconds: float = PROBE_SECONDS
    _engine: tuple[float, str] | None = field(default=None, init=False)
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while engine and sources are probed: requests that come meanwhile get the same answer."""

    async def look(self) -> dict[str, Any]:
        """What `/readyz` says; `status` is `ready` only where all is well."""
        said: dict[str, Any] = {"status": "ready", "source": self.retriever.default}
        if self.policy:
            said["engine"] = self.policy.name
        if self.retriever.runs.closing:
            return said | {"status": "stopping", "why": "the server is shutting down"}
        async with self._probing:
            try:
                await self.retriever.probe()
            except SourceError as error:
                return said | {"status": "not ready", "kind": error.kind, "why": str(error)}
            if why := await self._engine_failure():
                return said | {"status": "not ready", "kind": "engine", "why": why}
        problems = problems_of(self.retriever.sources.values())
        return said | ({"notices": problems} if problems else {})

    async def _engine_failure(self) -> str:
        """Why the engine does not answer; empty where it does, or cannot be probed."""
        if not isinstance(self.policy, Probed):
            return ""
        if self._engine is None or monotonic() - self._engine[0] > PROBE_TTL_SECONDS:
            failure = await _failure(self.policy.probe, seconds=self.probe_seconds)
            self._engine = monotonic(), failure
        return self._engine[1]


async def _failure(probe: Callable[[], Awaitable[None]], *, seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            await probe()
    except PolicyError as error:
        return str(error)
    except TimeoutError:
        return f"the engine sent nothing in {seconds:g} s"
    return ""


def add_health(app: FastAPI, readiness: Readiness) -> None:
    """Answer probes."""

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    async def healthz() -> Alive:
        """The process lives."""
        return Alive()

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", response_model=None, responses={200: {"model": Ready}, 503: {"model": Ready}})
    async def readyz() -> JSONResponse:
        """Whether questions are answered: the engine, and at least one source."""
        said = await readiness.look()
        return JSONResponse(said, status_code=HTTPStatus.OK if said["status"] == "ready" else _NOT_READY)


_NOT_READY: Final = HTTPStatus.SERVICE_UNAVAILABLE
