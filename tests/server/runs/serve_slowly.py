"""A server of its own whose searches and store take their time: `python -m tests.server.runs.serve_slowly STORE`.

It prints its address when it answers. Tests kill it.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from agent.sources.base import SearchRequest, SearchResult
from server.auth.middleware import Rules
from server.launch import address_of, bind, make_server
from server.store.writing import Gained, RunWrites
from tests.server.live import ANSWER, SEARCH, FakeSource
from tests.server.runs.replicas import keeping_service

LAST = "Trieste"


@dataclass(frozen=True)
class Slow:
    """Each search takes longer than the one before it, so that runs are at different places; none gets to its end."""

    source: FakeSource
    queries: list[str]

    @property
    def name(self) -> str:
        return self.source.name

    async def search(self, request: SearchRequest) -> SearchResult:
        if request.query == LAST:
            await asyncio.Event().wait()
        self.queries.append(request.query)
        await asyncio.sleep(0.02 * len(self.queries))
        return await self.source.search(request)


def slow_to_store(writes: RunWrites) -> None:
    """Each write waits before it begins: a step that were sent before it is stored would be lost by the kill."""
    honest = writes.append

    async def append(gained: Mapping[str, Gained]) -> set[str]:
        await asyncio.sleep(0.2)
        return await honest(gained)

    writes.append = append


async def main(store: str) -> None:
    turns = (SEARCH, f"<think>More.</think>\n<search>\nA: {LAST} (web)\n</search>", ANSWER)
    service = keeping_service(store, turns=turns, source=Slow(FakeSource("web"), []), lease_seconds=1.0)
    assert service.run_manager is not None
    slow_to_store(service.run_manager.store.writes)
    listener = bind("127.0.0.1", 0)
    server = make_server(service, Rules())

    def greet() -> None:
        sys.stdout.write(f"{address_of(listener)}\n")
        sys.stdout.flush()

    server.greet = greet
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
