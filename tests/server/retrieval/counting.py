"""What the tests of `/retrieve` share: a source that counts, and a client of a real server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from agent.errors import SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult, Source
from server.auth.middleware import Rules
from server.chat.service import Service
from server.retrieval.service import RetrievalBounds, Retriever
from tests.server.live import FakeSource, serving

T = TypeVar("T")


@dataclass
class CountingSource:
    """Answers each query with as many passages as may be; counts the queries, and how many run at once."""

    queries: list[str] = field(default_factory=list[str])
    now: int = 0
    most: int = 0
    wait: asyncio.Event | None = None
    fails: Mapping[str, SourceErrorKind] = field(default_factory=dict[str, SourceErrorKind])
    closed: bool = False
    _waiting: dict[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])

    async def until(self, count: int) -> None:
        """Wait until `count` searches run."""
        if self.now < count:
            await self._waiting.setdefault(count, asyncio.Event()).wait()

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        self.queries.append(query)
        self.now += 1
        self.most = max(self.most, self.now)
        if event := self._waiting.get(self.now):
            event.set()
        try:
            if self.wait is not None:
                await self.wait.wait()
            if kind := self.fails.get(query):
                raise SourceError("it broke", kind=kind, retry_after=1.5 if kind == "rate" else None)
        finally:
            self.now -= 1
        return SearchResult(
            tuple(
                Passage(
                    id=f"{query}-{n}", source="corpus", title=f"T{n}\nof {query}", text=f"line\nof {n}", score=1 / n
                )
                for n in range(1, request.limit + 1)
            )
        )

    async def aclose(self) -> None:
        self.closed = True


def retriever(source: Source | None = None, **bounds: Any) -> Retriever:
    return Retriever({"corpus": source or CountingSource(), "web": FakeSource("web")}, bounds=RetrievalBounds(**bounds))


def ask(
    use: Callable[[httpx2.AsyncClient], Awaitable[T]],
    served: Retriever | Service | None = None,
    rules: Rules | None = None,
) -> T:
    async def run() -> T:
        async with (
            asyncio.timeout(20),
            serving(served or retriever(), rules) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=None) as client,
        ):
            return await use(client)

    return asyncio.run(run())


def post(
    served: Retriever | Service | None = None,
    *,
    rules: Rules | None = None,
    headers: Mapping[str, str] | None = None,
    **body: Any,
) -> httpx2.Response:
    return ask(lambda client: client.post("/retrieve", json=body, headers=headers), served, rules)


def error(response: httpx2.Response) -> dict[str, Any]:
    assert set(response.json()) == {"error"}
    return response.json()["error"]
