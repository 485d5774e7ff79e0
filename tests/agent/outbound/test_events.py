"""Server-sent events of an endpoint: other work goes on while thousands of them come at once."""

import asyncio

import httpx2
import pytest

from agent.outbound.client import event_data

pytestmark = pytest.mark.anyio
EVENTS = 5_000


async def test_other_work_has_its_turns_while_thousands_of_events_come_in_one_piece() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    response = httpx2.Response(200, content=b'data: {"n": 1}\n\n' * EVENTS)
    other = asyncio.create_task(count_turns())
    data = [one async for one in event_data(response, most_line=1_000, most_bytes=1_000_000)]
    other.cancel()
    assert len(data) == EVENTS
    assert turns >= EVENTS // 100
