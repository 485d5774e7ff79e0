"""How many jobs are begun at the same time, in which order their results come, and what ends them all."""

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PolicyError, SetupError
from train.data.model import each


class Jobs:
    """Jobs that end when the test lets them; each gives its own number."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open: dict[int, asyncio.Future[None]] = {}
        self.most = 0
        """That were open at the same time."""
        self.shown: list[int] = []

    async def do(self, number: int) -> int:
        self.begun.append(number)
        self.open[number] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.open))
        try:
            await self.open[number]
        finally:
            del self.open[number]
        return number

    def start(self, count: int, *, concurrency: int) -> asyncio.Task[list[int | PolicyError]]:
        return asyncio.create_task(
            each(
                range(count),
                self.do,
                concurrency=concurrency,
                leave_failed=False,
                show=lambda done, total: self.shown.append(done),
            )
        )


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to that")


@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 9))
def test_at_most_so_many_are_begun_and_results_are_in_the_order_of_the_jobs(count: int, concurrency: int, seed: int):
    async def main() -> None:
        jobs, ends = Jobs(), random.Random(seed)
        every = jobs.start(count, concurrency=concurrency)
        for done in range(count):
            there = min(count, done + concurrency)
            await until(lambda there=there: len(jobs.begun) == there)
            jobs.open[ends.choice(sorted(jobs.open))].set_result(None)
            await until(lambda done=done: len(jobs.shown) == done + 1)
        assert await every == list(range(count))
        assert jobs.begun == list(range(count))
        assert jobs.most == min(count, concurrency)
        assert jobs.shown == list(range(1, count + 1))

    asyncio.run(main())


def test_a_request_that_fails_is_a_result_and_the_next_one_is_begun():
    async def main() -> None:
        jobs = Jobs()
        every = jobs.start(3, concurrency=1)
        for number in range(3):
            await until(lambda number=number: number in jobs.open)
            if number == 1:
                jobs.open[number].set_exception(PolicyError("no reply could be used", kind="malformed"))
            else:
                jobs.open[number].set_result(None)
        first, failed, last = await every
        assert (first, last) == (0, 2)
        assert isinstance(failed, PolicyError)

    asyncio.run(main())


def test_an_endpoint_that_is_gone_ends_what_is_on_its_way_and_begins_nothing_more():
    async def main() -> None:
        jobs = Jobs()
        every = jobs.start(9, concurrency=3)
        await until(lambda: len(jobs.open) == 3)
        jobs.open[1].set_exception(SetupError("it is gone"))
        with pytest.raises(SetupError, match="it is gone"):
            await every
        assert jobs.begun == [0, 1, 2]
        assert not jobs.open

    asyncio.run(main())
