"""A value that is kept elsewhere: how often it is read, and how long a reader waits for it."""

import asyncio

from server.auth.ttl import TtlValue


class Elsewhere:
    """Gives how often it was read, after a while."""

    def __init__(self, takes_seconds: float = 0.0) -> None:
        self.takes_seconds = takes_seconds
        self.reads = 0

    async def read(self) -> int:
        self.reads += 1
        await asyncio.sleep(self.takes_seconds)
        return self.reads


def test_a_store_that_never_answers_is_waited_for_once_by_all_and_not_for_long() -> None:
    async def test() -> None:
        kept = Elsewhere(takes_seconds=1e6)
        cached = TtlValue(kept.read, what="a number", seconds=60, patience_seconds=0.05)
        assert await asyncio.gather(*(cached.refresh() for _ in range(50))) == [False] * 50
        assert kept.reads == 1

    asyncio.run(test())


def test_the_first_value_is_waited_for_longer_than_the_next_one() -> None:
    async def test() -> None:
        kept = Elsewhere(takes_seconds=1.0)
        cached = TtlValue(kept.read, what="a number", seconds=0, patience_seconds=0.5)
        assert await cached.refresh()
        assert cached.value == 1
        assert await cached.refresh()
        assert (kept.reads, cached.value) == (2, 1)

    asyncio.run(test())


def test_all_who_ask_at_the_same_time_read_once() -> None:
    async def test() -> None:
        kept = Elsewhere()
        cached = TtlValue(kept.read, what="a number", seconds=60)
        assert await asyncio.gather(*(cached.refresh() for _ in range(50))) == [True] * 50
        assert kept.reads == 1

    asyncio.run(test())


def test_what_changed_while_it_was_read_is_read_again() -> None:
    async def test() -> None:
        kept = Elsewhere()

        async def read() -> int:
            number = await kept.read()
            if number == 1:
                cached.change(5)
            return number

        cached = TtlValue(read, what="a number", seconds=60)
        assert await cached.refresh()
        assert await cached.refresh()
        assert cached.value == 2

    asyncio.run(test())
