import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from agent.trace import Trace
from server.runs.following import in_order
from tests.server.runs.replicas import all_events, client_of, events, keeping_service, start

RUNS = 50
LIMITS = httpx2.Limits(max_connections=2 * RUNS)
STEPS = 4 * RUNS


@contextmanager
def slow_server(store: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", "tests.server.runs.serve_slowly", store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


class Watched:
    """Runs of one server, and what their clients saw of them."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}
        self.enough = asyncio.Event()

    async def follow(self, client: httpx2.AsyncClient, id: str) -> None:
        """Keep every step, until the server is killed."""
        try:
            async for one in events(client, id):
                if one.event == "step":
                    self.seen[id].append(one.data)
                if sum(map(len, self.seen.values())) > STEPS and all(self.seen.values()):
                    self.enough.set()
        except httpx2.TransportError:
            assert self.enough.is_set()

    async def check(self, client: httpx2.AsyncClient, id: str) -> str:
        """The run has ended, with every step that was seen, in its order, in its events and in its trace; gives how."""
        received = await all_events(client, id)
        steps = [one.data for one in received if one.event == "step"]
        assert steps[: len(self.seen[id])] == self.seen[id]
        run = (await client.get(f"/api/runs/{id}")).json()
        trace = Trace.model_validate(run["trace"])
        whole = [within(step, len(trace.segments)) for step in sorted(steps, key=lambda step: step["seconds"])]
        assert [json.loads(step) for step in in_order(trace)] == whole
        assert trace.stopped is not None
        return run["state"]


def within(step: dict[str, Any], segments: int) -> dict[str, Any]:
    """The step as a trace with `segments` segments has it.

    A turn's segments come with the step that ends it. A kill between a thought and that step leaves the thought, which
    was sent with its place, without what it points at.
    """
    return step | {"segments": [place for place in step["segments"] if place < segments]}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_after_a_kill_every_run_is_there_with_all_steps_that_its_client_had(location: str):
    if location == "memory":
        pytest.skip("it ends with the process")
    runs = Watched()

    async def main() -> list[str]:
        with slow_server(location) as (process, address):
            async with httpx2.AsyncClient(base_url=address, timeout=60, trust_env=False, limits=LIMITS) as client:
                for _ in range(RUNS):
                    runs.seen[await start(client)] = []
                await asyncio.gather(kill(process), *(runs.follow(client, id) for id in runs.seen))
        async with client_of(keeping_service(location, lease_seconds=1.0)) as client:
            return await asyncio.gather(*(runs.check(client, id) for id in runs.seen))

    async def kill(process: subprocess.Popen[str]) -> None:
        await runs.enough.wait()
        process.kill()

    assert asyncio.run(main()) == ["interrupted"] * RUNS
