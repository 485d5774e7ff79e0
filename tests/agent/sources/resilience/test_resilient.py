import asyncio
import contextlib
import random
from dataclasses import replace

import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest, ask, credits_of
from agent.sources.limits import Limits
from agent.sources.resilience.limiter import RateLimiters
from agent.sources.resilience.resilient import resilient
from agent.sources.resilience.store import open_store
from tests.agent.sources.resilience.backends import HANG, Scripted, error, most_in_window, passage
from tests.virtual_clock import now, run

POLITE = Limits(requests=1, per_seconds=3, concurrency=1)


def test_a_backend_that_two_sources_share_gets_no_more_requests():
    async def main() -> None:
        web, news = Scripted(name="serper", limits=POLITE), Scripted(name="serper", limits=POLITE)
        limiters = RateLimiters()
        sources = [resilient(name, [b], store=None, limiters=limiters) for name, b in (("web", web), ("news", news))]
        async with asyncio.TaskGroup() as group:
            for n in range(10):
                group.create_task(ask(sources[n % 2], SearchRequest(f"x{n}", limit=3), seconds=100))
        assert most_in_window([at for at, _ in (*web.requests, *news.requests)], 3) == 1

    run(main())


def test_other_limits_than_a_backends_own_can_be_set():
    async def main() -> None:
        backend = Scripted(HANG, limits=Limits(tries=3))
        source = resilient("web", [backend], store=None, limits={"tavily": Limits(tries=1, timeout_seconds=2)})
        with pytest.raises(SourceError, match="no answer in 2 s"):
            await ask(source, SearchRequest("x", limit=3), seconds=100)
        assert len(backend.requests) == 1
        assert now() == 2

    run(main())


def test_answers_are_kept_for_the_shortest_time_that_a_backend_says():
    async def main() -> None:
        day = 1_700_000_000.0
        a = Scripted(name="a", limits=Limits(keep_seconds=1000))
        b = Scripted(name="b", limits=Limits(keep_seconds=10))
        source = resilient("web", [a, b], store=open_store("memory:"), now=lambda: day)
        await ask(source, SearchRequest("x", limit=3), seconds=10)
        day += 9
        assert (await ask(source, SearchRequest("x", limit=3), seconds=10)).cached == "fresh"
        day += 2
        assert (await ask(source, SearchRequest("x", limit=3), seconds=10)).cached == ""

    run(main())


def test_with_other_backends_more_of_them_or_something_around_them_it_searches_again():
    async def main() -> None:
        store = open_store("memory:")
        tavily, brave = Scripted(name="tavily"), Scripted(name="brave")
        for source, cached in (
            (resilient("web", [tavily], store=store), ""),
            (resilient("web", [tavily], store=store), "fresh"),
            (resilient("web", [tavily, brave], store=store), ""),
            (resilient("web", [tavily], store=store, around=lambda inner: inner), ""),
            (resilient("web", [tavily], store=store, enough=2), ""),
            (resilient("web", [tavily], store=store, enough=2, variant="elsewhere"), ""),
            (resilient("web", [tavily], store=store, enough=2, variant="elsewhere"), "fresh"),
        ):
            assert (await ask(source, SearchRequest("x", limit=3), seconds=10)).cached == cached

    run(main())


def test_it_states_the_most_that_a_search_may_cost():
    backends = [Scripted(name="a", credits=1), Scripted(name="b", credits=2)]
    assert credits_of(resilient("web", backends, store=None)) == 3


def test_closing_closes_backends_once_and_the_store():
    async def main() -> None:
        backend, store = Scripted(), open_store("memory:")
        source = resilient("web", [backend], store=store)
        await store.put("x", b"y", seconds=10)
        await source.aclose()
        await source.aclose()
        assert backend.closed == 1
        assert await store.get("x") is None

    run(main())


def test_an_old_answer_names_what_failed_in_the_new_request():
    async def main() -> None:
        day = 1_700_000_000.0
        backend = Scripted([passage("a")], error("quota", "no credits left"), limits=replace(POLITE, keep_seconds=10))
        source = resilient("web", [backend], store=open_store("memory:"), now=lambda: day)
        await ask(source, SearchRequest("x", limit=3), seconds=10)
        day += 11
        hits = await ask(source, SearchRequest("x", limit=3), seconds=10)
        assert hits.cached == "stale"
        assert [(f.backend, f.kind, f.why) for f in hits.failures] == [("tavily", "quota", "no credits left")]

    run(main())


def test_callers_who_leave_at_any_moment_leave_nothing_behind():
    async def main() -> None:
        chance = random.Random(0)
        limits = Limits(requests=4, per_seconds=1, concurrency=2, timeout_seconds=4)
        backends = [Scripted(name=name, limits=limits, seconds=1.0) for name in ("a", "b")]
        backends[0].acts = [error("upstream")]
        source = resilient("web", backends, store=open_store("memory:"))

        async def search(query: str) -> None:
            with contextlib.suppress(SourceError):
                await ask(source, SearchRequest(query, limit=3), seconds=20)

        tasks = [asyncio.create_task(search(f"x{chance.randrange(60)}")) for _ in range(200)]
        for task in chance.sample(tasks, 150):
            await asyncio.sleep(chance.expovariate(20))
            task.cancel()
        await asyncio.wait(tasks)
        assert [b.running for b in backends] == [0, 0]
        assert all(b.most_running <= 2 for b in backends)
        await asyncio.sleep(60)
        backends[0].acts = []
        async with asyncio.timeout(10):
            await asyncio.gather(*(ask(source, SearchRequest(f"y{n}", limit=3), seconds=10) for n in range(6)))

    run(main())  # it sees that no task is left
