"""Two replicas behind a real balancer, with PostgreSQL and Redis: one is killed, the other one has everything."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.balanced.parts import HOLD, Replica, SearchEngine, balancer, redis, search_engine, started
from tests.server.conftest import emptied, postgres
from tests.server.runs.replicas import Seen, all_events, events

RUNS = 50
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Shared:
    """What replicas have in common."""

    store: str
    cache: str


@pytest.fixture(scope="module")
def shared() -> Generator[Shared]:
    with postgres() as store, redis() as cache:
        yield Shared(store, cache)


@dataclass(frozen=True)
class Pair:
    replicas: list[Replica]
    clients: list[httpx2.AsyncClient]
    """Of each replica itself."""
    balanced: httpx2.AsyncClient
    engine: SearchEngine


@asynccontextmanager
async def pair(shared: Shared, folder: Path) -> AsyncGenerator[Pair]:
    """Two replicas with an empty store, the balancer, and clients of all three."""
    await emptied(shared.store)
    async with search_engine() as engine:
        config = folder / "cairn.toml"
        config.write_text(
            f'port = 0\nlease_seconds = 3\ncache = "{shared.cache}"\nlog_level = "error"\n'
            f'searxng_url = "{engine.address}"\nsources = "web"\nweb = "searxng"\nmax_runs = {2 * RUNS}\n'
            f"[limits.searxng]\nconcurrency = {2 * RUNS}\nrequests = 10000\nper_seconds = 1.0\ntimeout_seconds = 500\n"
            "[budgets]\nseconds = 900\nsearch_seconds = 500\n",
            encoding="utf-8",
        )
        with ExitStack() as stack:
            module = "tests.server.balanced.serve"
            replicas = [stack.enter_context(started(module, str(config), shared.store)) for _ in range(2)]
            address = stack.enter_context(balancer("agent", [replica.address for replica in replicas]))
            limits = httpx2.Limits(max_connections=4 * RUNS)

            def client(of: str) -> httpx2.AsyncClient:
                return httpx2.AsyncClient(base_url=of, timeout=120, trust_env=False, limits=limits)

            async with client(replicas[0].address) as one, client(replicas[1].address) as two, client(address) as all:
                yield Pair(replicas, [one, two], all, engine)


async def start(client: httpx2.AsyncClient, question: str) -> str:
    said = await client.post("/api/runs", json={"messages": [{"role": "user", "content": question}]})
    assert said.status_code == 201, said.text
    return said.json()["id"]


@dataclass
class Follower:
    """A client that comes back, with the last id that it saw, until it has seen the end."""

    run: str
    steps: list[Any] = field(default_factory=list[Any])
    planned: asyncio.Event = field(default_factory=asyncio.Event)
    state: str = ""
    cuts: int = 0
    _last: str = ""

    async def follow(self, client: httpx2.AsyncClient) -> None:
        while not self.state:
            try:
                async for seen in events(client, self.run, after=self._last):
                    self._take(seen)
            except (httpx2.TransportError, AssertionError):  # it was cut, or the balancer has no server at this moment
                self.cuts += 1
                await asyncio.sleep(0.2)  # as a browser waits before it comes back

    def _take(self, seen: Seen) -> None:
        self._last = seen.id or self._last
        if seen.event == "end":
            self.state = seen.data["state"]
        if seen.event == "step":
            self.steps.append(seen.data)
            if seen.data["kind"] == "planned":
                self.planned.set()


def test_a_replica_that_is_killed_in_the_middle_of_fifty_runs_loses_none(shared: Shared, tmp_path: Path):
    async def main() -> None:
        async with pair(shared, tmp_path) as there:
            runs = [Follower(await start(there.balanced, f"{HOLD} {n}: where from?")) for n in range(RUNS)]
            following = asyncio.gather(*(run.follow(there.balanced) for run in runs))
            await asyncio.gather(*(run.planned.wait() for run in runs))
            there.replicas[0].process.send_signal(signal.SIGKILL)
            there.engine.go.set()
            await following
            states = Counter(run.state for run in runs)
            assert set(states) == {"interrupted", "answered"}
            assert states["interrupted"] >= RUNS // 4, "the balancer gave the killed one its share"
            for run in runs:
                seen_again = await all_events(there.clients[1], run.run)
                assert [seen.data for seen in seen_again if seen.event == "step"] == run.steps
                kept = (await there.balanced.get(f"/api/runs/{run.run}")).json()
                assert kept["state"] == run.state
                assert {"thought", "planned", "stopped"} <= {step["kind"] for step in kept["trace"]["steps"]}
            assert await start(there.balanced, "what now?")

    asyncio.run(main())


def test_a_cancel_that_comes_to_the_other_replica_ends_the_run(shared: Shared, tmp_path: Path):
    async def main() -> None:
        async with pair(shared, tmp_path) as there:
            run = Follower(await start(there.clients[0], f"{HOLD} this"))
            following = asyncio.create_task(run.follow(there.balanced))
            await run.planned.wait()
            assert (await there.clients[1].post(f"/api/runs/{run.run}/cancel")).status_code == 202
            await following
            assert run.state == "cancelled"
            answered = await start(there.clients[0], "where does she come from?")
            await all_events(there.clients[0], answered)
            again = await start(there.clients[1], "where does she come from?")
            steps = [seen.data for seen in await all_events(there.clients[1], again) if seen.event == "step"]
            (searched,) = (step for step in steps if step["kind"] == "searched")
            assert searched["cached"] == "fresh", "what one replica searched for, the other one finds in Redis"
            assert there.engine.queries.count("where does she come from?") == 1

    asyncio.run(main())


def test_of_a_server_of_documents_that_is_killed_only_answers_that_had_begun_are_cut(tmp_path: Path):
    lines = (json.dumps({"id": f"d{n}", "text": f"Document {n} is about falcons and {n} owls."}) for n in range(30))
    (tmp_path / "documents.jsonl").write_text("\n".join(lines), encoding="utf-8")
    command = ["agent.cli", "serve", "--retrieval-only", "--corpus", str(tmp_path / "documents.jsonl"), "--port", "0"]

    async def main(address: str, victim: Replica) -> Counter[str]:
        async with httpx2.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:

            async def ask(number: int) -> str:
                if number == 80:
                    victim.process.send_signal(signal.SIGKILL)
                body = {"queries": [f"{number % 30} owls"], "topk": 3}
                try:
                    said = await client.post("/retrieve", json=body)
                except httpx2.RemoteProtocolError:  # its head was here already, and the balancer can take nothing back
                    return "cut"
                assert len(said.json()["result"][0]) == 3
                return str(said.status_code)

            numbers = iter(range(240))

            async def worker() -> list[str]:
                return [await ask(number) for number in numbers]

            return Counter(word for words in await asyncio.gather(*(worker() for _ in range(8))) for word in words)

    with (
        started(*command) as one,
        started(*command) as two,
        balancer("documents", [one.address, two.address]) as address,
    ):
        found = asyncio.run(main(address, one))
        assert found.total() == 240
        assert set(found) <= {"200", "cut"}
        assert found["cut"] <= 8, "no more than were on their way"
