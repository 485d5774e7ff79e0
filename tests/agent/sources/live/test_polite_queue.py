"""One request at a time and a pause between, in two event loops and in two processes."""

import asyncio
import logging
import os
import sys
import time
from asyncio.subprocess import PIPE
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.sources.base import SearchRequest
from agent.sources.http import make_client
from agent.sources.live.arxiv import ArxivSource
from agent.sources.live.polite_queue import PoliteQueue
from tests import virtual_clock
from tests.agent.sources.live.apiserver import ApiServer, Reply, run
from tests.agent.sources.live.knowledge import fixture

PAUSE = 0.25
EACH = 3
WHOLE = Reply(fixture("arxiv/q_testing.xml"))
PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.agent.sources.live.test_polite_queue import search
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(search(sys.argv[1], Path(sys.argv[2])))
"""


async def search(base: str, file: Path, queue: PoliteQueue | None = None) -> None:
    """As one process or loop does: several searches at once."""
    queue = queue or PoliteQueue(PAUSE, file=file)
    async with make_client() as client, asyncio.TaskGroup() as group:
        for _ in range(EACH):
            group.create_task(ArxivSource(client, base=base, queue=queue).search(SearchRequest("x", limit=1)))


def check_pace(server: ApiServer, seconds: float) -> None:
    """Without a common queue, both would have done in half the time."""
    assert len(server.requests) == 2 * EACH
    assert seconds >= (2 * EACH - 1) * PAUSE


@pytest.mark.parametrize("shared_file", [True, False])
def test_two_event_loops_of_a_process_share_one_pace(shared_file: bool, tmp_path: Path):
    file = tmp_path / "queue"

    async def test(server: ApiServer) -> None:
        server.routes["*"] = WHOLE
        queue = PoliteQueue(PAUSE, file=file if shared_file else None)
        began = time.time()
        with ThreadPoolExecutor(2) as pool:
            loops = [pool.submit(asyncio.run, search(server.base, file, queue)) for _ in range(2)]
            for loop in loops:
                await asyncio.wrap_future(loop)
        check_pace(server, time.time() - began)

    run(test, seconds=30)


def test_two_processes_share_one_pace(tmp_path: Path):
    file = tmp_path / "cache" / "queue"

    async def test(server: ApiServer) -> None:
        server.routes["*"] = WHOLE
        command = (sys.executable, "-c", PROGRAM, server.base, str(file))
        processes = [await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        began = time.time()
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        seconds = time.time() - began
        assert [process.returncode for process in processes] == [0, 0], answers
        check_pace(server, seconds)

    run(test, seconds=60)


def test_no_request_begins_before_the_one_of_another_loop_has_ended(tmp_path: Path):
    """Two queues on one file are as two processes."""
    under_way: list[int] = []
    most = 0

    async def use(queue: PoliteQueue) -> None:
        nonlocal most
        for _ in range(5):
            async with queue.turn():
                under_way.append(1)
                most = max(most, len(under_way))
                await asyncio.sleep(0.01)  # longer than the pause
                under_way.pop()

    async def main() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(use(PoliteQueue(0.002, file=tmp_path / "queue")))

    asyncio.run(main())
    assert most == 1


@pytest.mark.parametrize("stamp", [b"", b"nonsense", b"nan", b"1e400", b"\xff" * 100])
def test_what_another_version_wrote_delays_nothing(stamp: bytes, tmp_path: Path):
    (tmp_path / "queue").write_bytes(stamp)
    queue = PoliteQueue(3.0, file=tmp_path / "queue", clock=virtual_clock.now)
    assert virtual_clock.run(began(queue)) == [0.0, 3.0]


def test_a_clock_that_was_set_back_delays_nothing(tmp_path: Path):
    (tmp_path / "queue").write_bytes(b"5000.0")
    queue = PoliteQueue(3.0, file=tmp_path / "queue", clock=virtual_clock.now)
    assert virtual_clock.run(began(queue)) == [0.0, 3.0]


def test_without_a_usable_file_the_process_keeps_its_pace_and_the_log_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "elsewhere").write_bytes(b"")
    os.symlink(tmp_path / "elsewhere", tmp_path / "queue")
    queue = PoliteQueue(3.0, file=tmp_path / "queue", clock=virtual_clock.now)
    with caplog.at_level(logging.WARNING, logger="agent.sources.live.polite_queue"):
        assert virtual_clock.run(began(queue)) == [0.0, 3.0]
    assert [record.getMessage().count("cannot be used") for record in caplog.records] == [1]
    assert (tmp_path / "elsewhere").read_bytes() == b""


async def began(queue: PoliteQueue) -> list[float]:
    """When two turns begin, in virtual time."""
    times: list[float] = []
    for _ in range(2):
        async with queue.turn():
            times.append(virtual_clock.now())
    return [round(seconds, 3) for seconds in times]
