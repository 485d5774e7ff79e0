"""Requests to a Wikibase: few at once, names remembered within bounds, one failure for all that go together."""

import asyncio
import json

import httpx2
import pytest

from agent.errors import SourceError
from agent.sources.live.wikibase_api import AT_ONCE, WikibaseApi, together


class Counting(httpx2.AsyncBaseTransport):
    """Names every id by itself, and counts how many requests are under way."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.requests: list[list[str]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        ids = request.url.params["ids"].split("|")
        self.requests.append(ids)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        entities = {name: {"labels": {"en": {"value": f"name of {name}"}}} for name in ids}
        return httpx2.Response(200, content=json.dumps({"entities": entities}).encode())


async def named(transport: Counting, *questions: list[str], remembered: int = 1000) -> list[dict[str, str]]:
    async with asyncio.timeout(5), httpx2.AsyncClient(transport=transport) as client:
        api = WikibaseApi(client, base="http://api", name="wikidata", remembered=remembered)
        answers = [await api.names(ids, lang="en") for ids in questions]
    return [{name: names.label for name, names in answer.items()} for answer in answers]


def test_never_more_than_three_requests_are_under_way():
    transport = Counting()
    ids = [f"Q{n}" for n in range(1, 500)]
    (names,) = asyncio.run(named(transport, ids))
    assert names == {name: f"name of {name}" for name in ids}
    assert [len(batch) for batch in transport.requests] == [50] * 9 + [49]
    assert transport.most == AT_ONCE == 3


def test_the_names_that_were_used_last_are_remembered_and_no_more():
    transport = Counting()
    answers = asyncio.run(named(transport, ["Q1", "Q2", "Q3"], ["Q1"], ["Q4"], ["Q1", "Q3", "Q2"], remembered=3))
    assert transport.requests == [["Q1", "Q2", "Q3"], ["Q4"], ["Q2"]]
    assert set(answers[-1]) == {"Q1", "Q2", "Q3"}


def test_more_names_than_are_remembered_are_all_given():
    (names,) = asyncio.run(named(Counting(), [f"Q{n}" for n in range(1, 80)], remembered=3))
    assert len(names) == 79


def test_of_what_goes_together_the_first_failure_is_raised_alone_and_the_others_end():
    ended: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise SourceError("no", kind="rate")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def run() -> None:
        async with asyncio.timeout(5):
            with pytest.raises(SourceError, match=r"^no$"):
                await together([waits(), fails(), fails()])

    asyncio.run(run())
    assert ended == ["waits"]
