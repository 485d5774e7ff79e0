import asyncio
from dataclasses import replace

import pytest

from agent.errors import Failure, SourceError, SourceErrorKind
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, ask, credits_of
from agent.sources.limits import Limits
from agent.sources.resilience.cached import BRIEF_SECONDS, Cached
from agent.sources.resilience.resilient import Fallback, Guarded
from agent.sources.resilience.store import AnswerStore, open_store
from tests.agent.sources.resilience.backends import HANG, Scripted, error, passage
from tests.virtual_clock import now, run

LIMITS = Limits(keep_seconds=3600, stale_seconds=7200)


class Day:
    """A wall clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def cached(
    source: Scripted, *, store: AnswerStore | None = None, clock: Day | None = None, limits: Limits = LIMITS
) -> Cached:
    return Cached(source, name="web", store=store or open_store("memory:"), limits=limits, now=clock or Day())


async def find(source: Cached, query: str = "Dune", *, seconds: float = 10, limit: int = 3) -> SearchResult:
    return await ask(source, SearchRequest(query, limit=limit), seconds=seconds)


def test_what_was_found_is_given_again_for_nothing():
    async def main() -> None:
        backend = Scripted(credits=2)
        source = cached(backend)
        first, again = await find(source), await find(source)
        assert (first.cached, first.credits) == ("", 2)
        assert (again.cached, again.credits, again.usd) == ("fresh", 0, 0)
        assert (again.passages, again.backend) == (first.passages, "tavily")
        assert len(backend.requests) == 1
        assert credits_of(source) == 2

    run(main())


def test_notes_are_kept_with_an_answer_and_the_failures_of_that_day_are_not():
    def answer() -> SearchResult:
        return SearchResult(
            (passage("a"),), backend="brave", notes=("no dates",), failures=(Failure("tavily", "rate", "x"),)
        )

    async def main() -> None:
        source = cached(Scripted(answer))
        await find(source)
        again = await find(source)
        assert (again.backend, again.notes, again.failures) == ("brave", ("no dates",), ())

    run(main())


def test_white_space_does_not_make_a_new_query_but_case_limit_filters_and_source_do():
    source = cached(Scripted())
    after, lang = Filter(name="after", value="2026"), Filter(name="lang", value="de")
    key = source.key(SearchRequest("who wrote Dune", limit=3))
    assert source.key(SearchRequest("  who   wrote\nDune ", limit=3)) == key
    assert source.key(SearchRequest("who wrote dune", limit=3)) != key
    assert source.key(SearchRequest("who wrote Dune", limit=4)) != key
    assert source.key(SearchRequest("who wrote Dune", limit=3, filters=(after,))) != key
    assert (
        Cached(Scripted(), name="news", store=None, limits=LIMITS).key(SearchRequest("who wrote Dune", limit=3)) != key
    )
    assert source.key(SearchRequest("x", limit=3, filters=(after, lang))) == source.key(
        SearchRequest("x", limit=3, filters=(lang, after))
    )


def test_where_the_whole_request_counts_another_question_is_another_search():
    request = SearchRequest("Dune", limit=3, question="Who wrote Dune?", entities=("Dune",), relations=("author",))
    others = [replace(request, question="Where?"), replace(request, entities=()), replace(request, relations=("date",))]
    query, whole = (Cached(Scripted(), name="x", store=None, limits=LIMITS, whole=whole) for whole in (False, True))
    assert {query.key(one) for one in others} == {query.key(request)}
    assert len({whole.key(one) for one in (request, *others)}) == 4


def test_after_its_time_it_is_searched_again():
    async def main() -> None:
        backend, clock = Scripted(), Day()
        source = cached(backend, clock=clock)
        await find(source)
        clock.now += 3599
        assert (await find(source)).cached == "fresh"
        clock.now += 2
        assert (await find(source)).cached == ""
        assert len(backend.requests) == 2

    run(main())


@pytest.mark.parametrize("kind", ["rate", "quota", "upstream", "timeout", "auth"])
def test_an_old_answer_is_given_where_a_new_request_fails_and_says_so(kind: SourceErrorKind):
    async def main() -> None:
        clock = Day()
        source = cached(Scripted([passage("a")], error(kind, "no luck")), clock=clock)
        await find(source)
        clock.now += 7200
        hits = await find(source)
        assert [p.id for p in hits.passages] == ["a"]
        assert (hits.cached, hits.credits) == ("stale", 0)
        assert hits.notes == ("found 2 hours ago: a new request failed",)
        assert [(f.backend, f.kind, f.why) for f in hits.failures] == [("web", kind, "no luck")]

    run(main())


@pytest.mark.parametrize("kind", ["bad_query", "parse"])
def test_an_old_answer_does_not_hide_what_is_wrong_with_the_query_or_the_backend(kind: SourceErrorKind):
    async def main() -> None:
        clock = Day()
        source = cached(Scripted([passage("a")], error(kind)), clock=clock)
        await find(source)
        clock.now += 7200
        with pytest.raises(SourceError):
            await find(source)

    run(main())


def test_a_very_old_answer_does_not_stand_in():
    async def main() -> None:
        clock = Day()
        source = cached(Scripted([passage("a")], error("quota")), clock=clock)
        await find(source)
        clock.now += 3600 + 7200 + 1
        with pytest.raises(SourceError, match="it said quota"):
            await find(source)

    run(main())


def test_an_old_answer_stands_in_when_the_callers_time_is_over():
    async def main() -> None:
        clock = Day()
        source = cached(Scripted([passage("a")], HANG), clock=clock)
        await find(source)
        clock.now += 7200
        hits = await find(source, seconds=5)
        assert hits.cached == "stale"
        assert [f.kind for f in hits.failures] == ["timeout"]
        assert now() < 5

    run(main())


def test_errors_are_not_kept():
    async def main() -> None:
        source = cached(Scripted(error("upstream"), [passage("a")]))
        with pytest.raises(SourceError):
            await find(source)
        assert [p.id for p in (await find(source)).passages] == ["a"]

    run(main())


def test_an_empty_answer_is_kept_for_a_shorter_time_and_never_stands_in():
    async def main() -> None:
        clock = Day()
        source = cached(Scripted([], error("upstream")), clock=clock)
        assert (await find(source)).passages == ()
        clock.now += BRIEF_SECONDS - 1
        assert (await find(source)).cached == "fresh"
        clock.now += 2
        with pytest.raises(SourceError):
            await find(source)

    run(main())


def test_an_incomplete_answer_is_kept_for_a_shorter_time_and_may_stand_in_like_any_other():
    def incomplete() -> SearchResult:
        return SearchResult((passage("a"),), backend="brave", incomplete=True)

    async def main() -> None:
        clock = Day()
        backend = Scripted(incomplete, error("upstream"), [passage("b")])
        source = cached(backend, clock=clock)
        await find(source)
        clock.now += BRIEF_SECONDS - 1
        assert (await find(source)).cached == "fresh"
        clock.now += 2
        assert [(hits.cached, hits.passages[0].id) for hits in [await find(source), await find(source)]] == [
            ("stale", "a"),
            ("", "b"),
        ]
        clock.now += BRIEF_SECONDS + 1
        assert (await find(source)).cached == "fresh", "what is complete is kept for its whole time"

    run(main())


def test_an_empty_answer_after_failures_is_not_kept():
    async def main() -> None:
        backend = Scripted(lambda: SearchResult((), failures=(Failure("tavily", "upstream", "x"),)))
        source = cached(backend)
        await find(source)
        await find(source)
        assert len(backend.requests) == 2

    run(main())


def test_equal_queries_in_flight_share_one_call_and_one_of_them_pays():
    async def main() -> None:
        backend = Scripted(seconds=1)
        source = Cached(backend, name="web", store=None, limits=LIMITS)
        found = await asyncio.gather(*(find(source, query) for query in ("Dune", "Dune ", "Dune", "Emma")))
        assert [query for _, query in backend.requests] == ["Dune", "Emma"]
        passages = [result.passages for result in found]
        assert passages[0] == passages[1] == passages[2] != passages[3]
        assert [hits.credits for hits in found] == [1, 0, 0, 1]
        await find(source)
        assert len(backend.requests) == 3, "without a store nothing is kept"

    run(main())


def test_a_failure_is_raised_for_each_who_waited_for_it_as_its_own_error():
    async def main() -> None:
        source = cached(Scripted(error("quota", "no credits left"), seconds=1))
        raised = await asyncio.gather(find(source), find(source), return_exceptions=True)
        assert [str(r) for r in raised] == ["no credits left"] * 2
        assert raised[0] is not raised[1]

    run(main())


def test_who_leaves_does_not_take_the_call_away_from_the_others():
    async def main() -> None:
        backend = Scripted(seconds=2)
        source = cached(backend)
        first = asyncio.create_task(find(source))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(find(source))
        await asyncio.sleep(0.5)
        first.cancel()
        assert [p.id for p in (await second).passages] == ["tavily on Dune"]
        assert (await second).credits == 1, "who left did not pay"
        assert first.cancelled()
        assert len(backend.requests) == 1

    run(main())


def test_when_the_last_one_leaves_the_call_ends_and_the_next_one_starts_another():
    async def main() -> None:
        backend = Scripted(HANG)
        source = cached(backend)
        waiting = [asyncio.create_task(find(source, seconds=100)) for _ in range(3)]
        await asyncio.sleep(1)
        assert backend.running == 1
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert backend.running == 0
        backend.acts = [[passage("a")]]
        assert [p.id for p in (await find(source)).passages] == ["a"]
        assert len(backend.requests) == 2

    run(main())


def test_no_one_boards_a_call_that_is_being_ended():
    async def main() -> None:
        backend = Scripted(HANG, [passage("a")], seconds_to_leave=1)
        source = cached(backend)
        first = asyncio.create_task(find(source, seconds=100))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(0.5)
        assert [p.id for p in (await find(source)).passages] == ["a"]
        await asyncio.wait([first])

    run(main())


def test_who_joined_late_and_still_has_time_asks_again_when_that_of_the_first_is_over():
    async def main() -> None:
        backend = Scripted(HANG, [passage("a")])
        guard = Guarded(backend, name="tavily", limits=Limits(timeout_seconds=8))
        source = Cached(Fallback("web", [guard]), name="web", store=None, limits=LIMITS)
        first = asyncio.create_task(find(source, seconds=4))
        await asyncio.sleep(1)
        second = asyncio.create_task(find(source, seconds=20))
        with pytest.raises(SourceError):
            await first
        assert now() < 4
        hits = await second
        assert [p.id for p in hits.passages] == ["a"]
        assert [f.kind for f in hits.failures] == ["timeout"], "it waited for the first call's end, so it reports it"

    run(main())


def test_what_is_kept_by_another_version_or_damaged_is_not_there():
    async def main() -> None:
        store = open_store("memory:")
        backend = Scripted()
        source = cached(backend, store=store)
        key = source.key(SearchRequest("Dune", limit=3))
        for raw in (b"", b"\x80\x04garbage", b"{}", b'{"version": 2}', b"[1, 2", b"12345"):
            await store.put(key, raw, seconds=100)
            assert (await find(source)).cached == ""
        other = source.key(SearchRequest("Emma", limit=3))
        await store.put(key, await store.get(other) or b"", seconds=100)
        await find(source, "Emma")
        await store.put(key, await store.get(other) or b"", seconds=100)
        assert (await find(source)).cached == "", "it is the answer to something else"

    run(main())


def test_what_is_no_source_error_becomes_one():
    with pytest.raises(SourceError, match="KeyError: 'x'"):
        run(find(cached(Scripted(KeyError("x")))))


def test_closing_ends_what_is_in_flight_and_closes_what_is_inside():
    async def main() -> None:
        backend, store = Scripted(HANG), open_store("memory:")
        source = cached(backend, store=store)
        waiting = asyncio.create_task(find(source, seconds=100))
        await asyncio.sleep(1)
        await source.aclose()
        with pytest.raises(SourceError, match="closed"):
            await waiting
        assert (backend.running, backend.closed) == (0, 1)
        await store.put("x", b"y", seconds=10)
        assert await store.get("x") is None

    run(main())
