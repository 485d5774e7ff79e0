"""A request on its way: how often its reader is woken, and that nothing waits when it is over."""

import asyncio

import pytest

from agent.errors import PolicyError
from agent.policies.base import Sampling
from agent.policies.requests import Request, sample_through
from agent.policies.token_context import Sampled

END = 2


class Reader:
    """Reads one request; `request` is there once it was submitted."""

    def __init__(self, *, every: int, max_tokens: int = 50) -> None:
        self.batches: list[list[Sampled]] = []
        self._submitted = asyncio.Event()
        self._sampled = sample_through(
            self._submit, [1], Sampling(), ends=frozenset({END}), max_tokens=max_tokens, every=every
        )

    def _submit(self, request: Request) -> None:
        self.request = request
        self._submitted.set()

    async def read(self) -> None:
        async for batch in self._sampled:
            self.batches.append(batch)

    async def put(self, *tokens: int) -> list[int]:
        """What has come, by batch, once these were sampled."""
        await self._submitted.wait()
        for token in tokens:
            self.request.put(token, -1.0)
        for _ in range(5):
            await asyncio.sleep(0)
        return [len(batch) for batch in self.batches]


@pytest.mark.parametrize(("every", "sizes"), [(1, [1, 2, 1, 1]), (4, [4, 1]), (16, [5])])
def test_a_reader_is_woken_every_so_many_tokens_and_at_the_end(every: int, sizes: list[int]):
    async def scene() -> Reader:
        reader = Reader(every=every)
        reading = asyncio.create_task(reader.read())
        await reader.put(7)
        await reader.put(8, 9)
        assert await reader.put(10) == sizes[:-1]
        await reader.put(END)
        await asyncio.wait_for(reading, 5)
        return reader

    reader = asyncio.run(scene())
    assert [token for batch in reader.batches for token, _ in batch] == [7, 8, 9, 10, END]
    assert [len(batch) for batch in reader.batches] == sizes


def test_the_last_token_that_is_allowed_comes_at_once():
    async def scene() -> list[int]:
        reader = Reader(every=16, max_tokens=3)
        reading = asyncio.create_task(reader.read())
        come = await reader.put(7, 8, 9)
        await asyncio.wait_for(reading, 5)
        return come

    assert asyncio.run(scene()) == [3]


def test_an_engine_that_fails_says_so_behind_what_it_had_sampled():
    async def scene() -> list[int]:
        reader = Reader(every=16)
        reading = asyncio.create_task(reader.read())
        assert await reader.put(7, 8) == []
        reader.request.finish("the engine is gone")
        with pytest.raises(PolicyError, match="the engine is gone"):
            await asyncio.wait_for(reading, 5)
        return [len(batch) for batch in reader.batches]

    assert asyncio.run(scene()) == [2]
