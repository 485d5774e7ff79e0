"""A request carries its deadline, and `ask` fills in what a source leaves out of its result."""

import asyncio
import math

import pytest

from agent.evidence import Passage
from agent.sources.base import SPARE_SECONDS, OwningSource, SearchRequest, SearchResult, ask
from tests.virtual_clock import run


class Watching:
    """Remembers how much time it had."""

    def __init__(self, *, credits: float | None = None) -> None:
        self.left: list[float] = []
        self.closed = 0
        self.credits_per_search = 3.0
        self._credits = credits

    async def search(self, request: SearchRequest) -> SearchResult:
        self.left.append(request.seconds_left)
        passages = [Passage(id=str(n), source="web", title="", text="x") for n in range(4)]
        return SearchResult(tuple(passages), credits=self._credits)

    async def aclose(self) -> None:
        self.closed += 1


def test_a_request_without_a_deadline_has_all_the_time():
    assert SearchRequest("x", limit=1).seconds_left == math.inf


def test_a_deadline_only_comes_nearer_and_leaves_time_to_report_what_failed():
    async def main() -> None:
        wide = SearchRequest("x", limit=1).within(10)
        assert wide.seconds_left == pytest.approx(10 - SPARE_SECONDS)
        assert wide.within(20).seconds_left == pytest.approx(10 - 2 * SPARE_SECONDS)
        assert wide.within(0.1).seconds_left == pytest.approx(0.1 - 0.1 / 20)
        assert SearchRequest("x", limit=1).within(math.inf).seconds_left == math.inf
        await asyncio.sleep(11)
        assert wide.seconds_left == 0

    run(main())


def test_ask_gives_the_source_its_deadline_and_cuts_the_result_to_the_limit():
    async def main() -> None:
        source = Watching()
        result = await ask(source, SearchRequest("x", limit=2), seconds=4)
        assert [passage.id for passage in result.passages] == ["0", "1"]
        assert source.left == [pytest.approx(4 - SPARE_SECONDS)]

    run(main())


def test_a_result_that_says_nothing_of_its_credits_costs_what_a_search_costs_by_default():
    request = SearchRequest("x", limit=1)
    assert asyncio.run(ask(Watching(), request, seconds=4)).credits == 3.0
    assert asyncio.run(ask(Watching(credits=0.0), request, seconds=4)).credits == 0.0


def test_an_owning_source_closes_its_source_and_what_was_opened_for_it():
    source, client = Watching(), Watching()
    asyncio.run(OwningSource(source, client).aclose())
    assert (source.closed, client.closed) == (1, 1)
