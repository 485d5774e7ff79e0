import asyncio

import pytest

from agent.errors import SourceError, SourceErrorKind
from agent.sources.base import SearchRequest, SearchResult, ask
from agent.sources.limits import Limits
from agent.sources.resilience.limiter import RateLimiter, bucket
from agent.sources.resilience.resilient import AUTH_SECONDS, QUOTA_SECONDS, Guarded
from tests.agent.sources.resilience.backends import HANG, Scripted, error, most_in_window, passage
from tests.virtual_clock import now, run

QUICK = Limits(requests=1000, concurrency=1000, wait_seconds=1)


def guarded(backend: Scripted, limits: Limits = QUICK, *, limiter: RateLimiter | None = None) -> Guarded:
    return Guarded(backend, name=backend.name, limits=limits, limiter=limiter)


async def outcome(source: Guarded, *, seconds: float = 100, query: str = "x") -> SearchResult | SourceError:
    try:
        return await ask(source, SearchRequest(query, limit=5), seconds=seconds)
    except SourceError as raised:
        return raised


async def failed(source: Guarded, *, seconds: float = 100) -> SourceError:
    result = await outcome(source, seconds=seconds)
    assert isinstance(result, SourceError)
    return result


@pytest.mark.parametrize("kind", ["rate", "upstream", "timeout"])
def test_it_tries_again_where_that_may_help_and_names_every_try(kind: SourceErrorKind):
    backend = Scripted(error(kind, "first"), error(kind, "second"), [passage("Dune")])
    hits = run(ask(guarded(backend), SearchRequest("x", limit=5), seconds=100))
    assert [p.id for p in hits.passages] == ["Dune"]
    assert [(f.backend, f.kind, f.why) for f in hits.failures] == [
        ("tavily", kind, "first"),
        ("tavily", kind, "second"),
    ]
    first, second, third = backend.times
    assert 1 <= second - first <= 2, "one second, and up to one more of jitter"
    assert 2 <= third - second <= 3


@pytest.mark.parametrize("kind", ["auth", "quota", "bad_query", "parse"])
def test_it_does_not_try_again_where_that_cannot_help(kind: SourceErrorKind):
    backend = Scripted(error(kind), [passage("Dune")])
    raised = run(failed(guarded(backend)))
    assert raised.kind == kind
    assert len(raised.failures) == len(backend.requests) == 1


def test_tries_are_bounded_and_the_last_error_names_all_of_them():
    backend = Scripted(error("upstream", "1"), error("upstream", "2"), error("rate", "3"), error("upstream", "4"))
    raised = run(failed(guarded(backend)))
    assert (str(raised), raised.kind) == ("3", "rate")
    assert [f.why for f in raised.failures] == ["1", "2", "3"]


def test_one_error_object_that_is_raised_again_and_again_is_not_reported_twice():
    raised = run(failed(guarded(Scripted(error("upstream")))))
    assert len(raised.failures) == 3


def test_a_retry_after_is_waited_out():
    backend = Scripted(error("rate", retry_after=7), [passage("Dune")])
    run(ask(guarded(backend), SearchRequest("x", limit=5), seconds=100))
    assert backend.times == [0, 7]


def test_a_retry_after_is_waited_out_by_all():
    async def main() -> list[float]:
        backend = Scripted(error("rate", retry_after=7), [passage("Dune")])
        source = guarded(backend)
        async with asyncio.TaskGroup() as group:
            group.create_task(outcome(source))
            await asyncio.sleep(1)
            group.create_task(outcome(source, query="y"))
        return backend.times

    assert run(main()) == [0, 7, 7]


@pytest.mark.parametrize(("retry_after", "seconds"), [(31, 100), (20, 10)])
def test_a_retry_after_longer_than_the_patience_or_the_time_ends_the_tries(retry_after: float, seconds: float):
    async def main() -> None:
        backend = Scripted(error("rate", retry_after=retry_after))
        source = guarded(backend)
        raised = await failed(source, seconds=seconds)
        assert raised.retry_after == retry_after
        assert now() == 0
        refused = await failed(source, seconds=seconds)
        assert f"tried again in {retry_after} s" in str(refused)
        assert len(backend.requests) == 1, "it was tried again before its time"

    run(main())


def test_a_hang_is_cut_and_tried_again():
    backend = Scripted(HANG, [passage("Dune")])
    hits = run(ask(guarded(backend, Limits(timeout_seconds=4)), SearchRequest("x", limit=5), seconds=100))
    assert [(f.kind, f.why, round(f.took, 3)) for f in hits.failures] == [("timeout", "no answer in 4 s", 4)]


def test_the_callers_time_ends_a_hang_in_time_to_report_it():
    async def main() -> None:
        raised = await failed(guarded(Scripted(error("upstream", "boom"), HANG)), seconds=3)
        assert [f.kind for f in raised.failures] == ["upstream", "timeout"]
        assert raised.failures[0].why == "boom"
        assert now() < 3

    run(main())


@pytest.mark.parametrize(
    "limits",
    [
        Limits(requests=1, per_seconds=3, concurrency=9),
        Limits(requests=5, per_seconds=1, concurrency=9),
        Limits(requests=0.5, per_seconds=1, concurrency=9),
        Limits(requests=10, per_seconds=60, concurrency=2),
    ],
    ids=lambda limits: f"{limits.requests:g} in {limits.per_seconds:g} s",
)
def test_no_window_holds_more_requests_than_the_limit(limits: Limits):
    async def main() -> Scripted:
        backend = Scripted(seconds=0.3)
        source = guarded(backend, limits)
        async with asyncio.TaskGroup() as group:
            for n in range(30):
                group.create_task(outcome(source, seconds=1000))
                await asyncio.sleep(0.1 * (n % 3))
        return backend

    backend = run(main())
    assert len(backend.requests) == 30
    longest = max(limits.per_seconds, limits.per_seconds / limits.requests)
    assert most_in_window((at for at, _ in backend.requests), longest) <= max(1, limits.requests)
    assert backend.most_running <= limits.concurrency


def test_the_rate_is_used_not_only_kept():
    size, rate = bucket(Limits(requests=5, per_seconds=1))
    assert (size, rate) == (2, 4)


def test_who_waits_too_long_for_a_turn_leaves_in_time_and_asks_nothing():
    async def main() -> None:
        backend = Scripted(HANG)
        source = guarded(backend, Limits(concurrency=1, timeout_seconds=60, tries=1))
        async with asyncio.TaskGroup() as group:
            group.create_task(outcome(source, seconds=20))
            await asyncio.sleep(1)
            raised = await failed(source, seconds=5)
            assert "was not tried" in str(raised)
            assert raised.failures
            assert now() < 6
        assert len(backend.requests) == 1

    run(main())


def test_who_could_not_get_a_turn_in_time_is_refused_at_once():
    async def main() -> None:
        source = guarded(Scripted(), Limits(concurrency=1, requests=1, per_seconds=3))
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(outcome(source, seconds=100))
            await asyncio.sleep(0)
            began = now()
            raised = await failed(source, seconds=5)
            assert raised.kind == "rate"
            assert now() == began

    run(main())


def test_callers_who_leave_give_their_places_back():
    async def main() -> None:
        backend = Scripted(HANG)
        source = guarded(backend, Limits(concurrency=2, timeout_seconds=1000))
        tasks = [asyncio.create_task(outcome(source, seconds=1000)) for _ in range(6)]
        await asyncio.sleep(1)
        assert backend.running == 2
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert backend.running == 0
        backend.acts = [[passage("Dune")]]
        async with asyncio.timeout(10):
            await asyncio.gather(*(source.search(SearchRequest("x", limit=5)) for _ in range(4)))

    run(main())


@pytest.mark.parametrize("leave", ["cancelled", "out of time"])
def test_callers_who_leave_while_they_wait_for_the_rate_give_their_places_back(leave: str):
    async def main() -> None:
        backend = Scripted()
        source = guarded(backend, Limits(concurrency=2, requests=1, per_seconds=10))
        await outcome(source)
        seconds = 1000 if leave == "cancelled" else 9
        waiting = [asyncio.create_task(outcome(source, seconds=seconds)) for _ in range(2)]
        await asyncio.sleep(1)
        for task in waiting:
            if leave == "cancelled":
                task.cancel()
        await asyncio.wait(waiting)
        assert len(backend.requests) == 1
        assert isinstance(await outcome(source), SearchResult)

    run(main())


def test_a_backend_that_fails_in_a_row_is_left_alone_and_tried_when_its_time_is_over():
    async def main() -> None:
        backend = Scripted(error("upstream", "boom"))
        source = guarded(backend, Limits(tries=1, breaker_failures=3, breaker_seconds=30, requests=1000))
        for _ in range(3):
            await failed(source)
        refused = await failed(source)
        assert str(refused) == "tavily is paused, it will be tried again in 30 s; its last error: boom"
        assert round(refused.retry_after or 0) == 30
        assert refused.failures
        assert len(backend.requests) == 3
        await asyncio.sleep(31)
        backend.acts = [[passage("Dune")]]
        assert isinstance(await outcome(source), SearchResult)
        assert isinstance(await outcome(source), SearchResult)

    run(main())


def test_only_one_asks_when_the_time_of_an_open_breaker_is_over():
    async def main() -> None:
        backend = Scripted(error("upstream"))
        source = guarded(backend, Limits(tries=1, breaker_failures=1, breaker_seconds=30))
        await failed(source)
        await asyncio.sleep(30)
        backend.acts = [5.0]
        first = asyncio.create_task(outcome(source))
        await asyncio.sleep(1)
        assert "just trying it" in str(await failed(source))
        assert isinstance(await first, SearchResult)

    run(main())


@pytest.mark.parametrize(("kind", "seconds"), [("quota", QUOTA_SECONDS), ("auth", AUTH_SECONDS)])
def test_no_quota_or_a_wrong_key_is_not_tried_again(kind: SourceErrorKind, seconds: float):
    async def main() -> None:
        backend = Scripted(error(kind, "fix it"))
        source = guarded(backend)
        await failed(source)
        refused = await failed(source)
        assert refused.kind == kind
        assert "fix it" in str(refused)
        assert round(refused.retry_after or 0) == seconds
        assert len(backend.requests) == 1

    run(main())


def test_a_quota_that_says_when_it_comes_back_is_believed():
    async def main() -> None:
        source = guarded(Scripted(error("quota", retry_after=120)))
        await failed(source)
        assert round((await failed(source)).retry_after or 0) == 120

    run(main())


@pytest.mark.parametrize("kind", ["quota", "rate"])
def test_a_retry_after_of_years_is_not_believed(kind: SourceErrorKind):
    async def main() -> None:
        backend = Scripted(error(kind, retry_after=1e9), [passage("Dune")])
        source = guarded(backend)
        await failed(source)
        await asyncio.sleep(24 * 3600)
        assert isinstance(await outcome(source), SearchResult)

    run(main(), seconds=1e6)


@pytest.mark.parametrize("kind", ["bad_query", "parse"])
def test_what_is_the_querys_fault_does_not_count_against_the_backend(kind: SourceErrorKind):
    async def main() -> None:
        backend = Scripted(error(kind))
        source = guarded(backend)
        for _ in range(20):
            await failed(source)
        assert len(backend.requests) == 20

    run(main())


def test_a_caller_in_a_hurry_does_not_open_the_breaker():
    async def main() -> None:
        backend = Scripted(HANG)
        source = guarded(backend, Limits(breaker_failures=2, requests=1000))
        for _ in range(5):
            await failed(source, seconds=0.5)
        assert len(backend.requests) == 5
        await failed(source, seconds=5)
        await failed(source, seconds=5)
        assert "is paused" in str(await failed(source, seconds=5))

    run(main())


def test_what_is_no_source_error_becomes_one():
    raised = run(failed(guarded(Scripted(KeyError("results")), Limits(tries=1))))
    assert (raised.kind, str(raised)) == ("upstream", "KeyError: 'results'")


def test_two_sources_that_ask_one_backend_share_its_limiter():
    async def main() -> None:
        limiter = RateLimiter("serper", QUICK)
        web, news = Scripted(error("auth", "no such key"), name="serper"), Scripted(name="serper")
        await failed(guarded(web, limiter=limiter))
        assert "no such key" in str(await failed(guarded(news, limiter=limiter)))
        assert not news.requests

    run(main())


def test_one_guard_serves_one_event_loop_after_another():
    source = guarded(Scripted(), Limits(concurrency=1, requests=1))
    for _ in range(2):
        assert isinstance(run(outcome(source)), SearchResult)


def test_retries_write_nothing_to_stderr(capfd: pytest.CaptureFixture[str]):
    run(failed(guarded(Scripted(error("upstream")))))
    assert capfd.readouterr().err == ""


def test_closing_closes_the_backend_once():
    async def main() -> None:
        backend = Scripted()
        source = guarded(backend)
        await source.aclose()
        await source.aclose()
        assert backend.closed == 1

    run(main())
