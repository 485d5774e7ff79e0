"""Requests that wait together are one call; what goes wrong for one of them is its own affair."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from agent.errors import SourceError
from agent.sources.microbatch import MicroBatcher


@dataclass
class Work:
    """Doubles numbers. The first call waits until it is let go, so that others gather behind it."""

    held: bool = True
    batches: list[list[int]] = field(default_factory=list[list[int]])
    started: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        self.started.set()
        if self.held and not self.go.wait(10):
            raise AssertionError("no one let it go")
        if 17 in numbers:
            raise StopIteration
        if 13 in numbers:
            raise ValueError("13 is a bad number")
        return [2 * number for number in numbers]


async def started(work: Work) -> None:
    assert await asyncio.to_thread(work.started.wait, 10)


def waits(batcher: MicroBatcher[int, int], *numbers: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(batcher.ask(number)) for number in numbers]


async def until_waiting(batcher: MicroBatcher[int, int], count: int) -> None:
    await asyncio.sleep(0)  # each task runs until it waits for its answer
    assert batcher.waiting == count


def test_requests_that_wait_while_a_call_runs_are_the_next_call_together():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="work")
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1, 2, 3, 4)
            await until_waiting(batcher, 4)
            work.go.set()
            assert await asyncio.gather(*tasks) == [0, 2, 4, 6, 8]
            assert work.batches == [[0], [1, 2, 3, 4]]
            assert batcher.calls == 2
            await batcher.aclose()

    asyncio.run(run())


def test_no_call_is_larger_than_its_bound():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="work", together=2)
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1, 2, 3)
            await until_waiting(batcher, 3)
            work.go.set()
            assert await asyncio.gather(*tasks) == [0, 2, 4, 6]
            assert work.batches == [[0], [1, 2], [3]]
            await batcher.aclose()

    asyncio.run(run())


def test_a_bad_request_fails_alone():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="work")
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1, 13, 17, 3)
            await until_waiting(batcher, 4)
            work.go.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [r for r in results if isinstance(r, int)] == [0, 2, 6]
            assert isinstance(results[2], ValueError)
            assert isinstance(results[3], RuntimeError), "no future can hold a StopIteration"
            assert await batcher.ask(5) == 10, "the thread lives on"
            await batcher.aclose()

    asyncio.run(run())


def test_who_is_cancelled_takes_its_request_away_and_leaves_its_neighbours():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="work")
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1, 2, 3)
            await until_waiting(batcher, 3)
            tasks[0].cancel()
            tasks[2].cancel()
            await asyncio.wait({tasks[0], tasks[2]})
            work.go.set()
            assert await tasks[1] == 2
            assert await tasks[3] == 6
            assert work.batches == [[0], [1, 3]], "no work is done for who has left"
            await batcher.aclose()

    asyncio.run(run())


def test_who_comes_when_too_many_wait_is_turned_away_at_once():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="the dense index", waiting=2)
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1, 2)
            await until_waiting(batcher, 2)
            with pytest.raises(SourceError, match="the dense index is busy: 2 queries are waiting") as caught:
                await batcher.ask(3)
            assert caught.value.kind == "rate"
            assert caught.value.retry_after == 1.0
            work.go.set()
            assert await asyncio.gather(*tasks) == [0, 2, 4]
            assert await batcher.ask(3) == 6
            await batcher.aclose()

    asyncio.run(run())


def test_closing_turns_away_who_waits_and_ends_the_thread():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Work()
            batcher = MicroBatcher(work, name="work")
            tasks = waits(batcher, 0)
            await started(work)
            tasks += waits(batcher, 1)
            await until_waiting(batcher, 1)
            closing = asyncio.create_task(batcher.aclose())
            with pytest.raises(SourceError, match="closed"):
                await tasks[1]
            work.go.set()
            await closing
            assert await tasks[0] == 0, "what had begun is finished"
            assert not any(thread.name.startswith("cairn-work") for thread in threading.enumerate())
            with pytest.raises(SourceError, match="closed"):
                await batcher.ask(2)

    asyncio.run(run())


def test_one_batcher_serves_event_loops_one_after_the_other():
    work = Work(held=False)
    batcher = MicroBatcher(work, name="work")

    async def ask(number: int) -> int:
        async with asyncio.timeout(10):
            return await batcher.ask(number)

    assert [asyncio.run(ask(1)), asyncio.run(ask(2))] == [2, 4]
    asyncio.run(batcher.aclose())


def test_several_workers_do_calls_at_the_same_time():
    async def run() -> None:
        async with asyncio.timeout(10):
            work = Meeting(parties=2)
            batcher = MicroBatcher(work, name="work", together=1, workers=2)
            assert await asyncio.gather(batcher.ask(1), batcher.ask(2)) == [2, 4]
            await batcher.aclose()

    asyncio.run(run())


class Meeting:
    """Doubles numbers, once as many calls run at the same time as were announced."""

    def __init__(self, parties: int) -> None:
        self._all = threading.Barrier(parties)

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self._all.wait(5)
        return [2 * number for number in numbers]
