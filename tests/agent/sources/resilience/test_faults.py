"""Fault injection: seven kinds of failure, each at 30 %, one backend dead for good, hundreds of plans for each kind."""

import re
from collections import Counter, defaultdict
from functools import cache

import pytest

from agent.errors import Failure, SourceErrorKind
from agent.trace import Searched
from tests.agent.sources.resilience.backends import most_in_window
from tests.agent.sources.resilience.faults import BACKENDS, DEAD, SECONDS, Call, Run, Step, run_plans
from tests.virtual_clock import run

PLANS = 250
KINDS: list[SourceErrorKind] = ["auth", "quota", "rate", "bad_query", "upstream", "timeout", "parse"]
LIMITS = {name: limits for backends in BACKENDS.values() for name, limits in backends.items()}
MARK = re.compile(r"\[\w+ (\d+)\] fails")
OWN = "own "
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def run_all(kind: SourceErrorKind) -> tuple[list[Run], list[Call]]:
    # A wrong key or an empty account closes a backend for long: these plans come at longer intervals.
    return run(run_plans(kind, plans=PLANS, every_seconds=600.0 if kind in {"auth", "quota"} else 0.5), seconds=1e7)


def steps_of(runs: list[Run]) -> list[tuple[Run, Step]]:
    return [(plan, step) for plan in runs for step in plan.steps]


def number_of(failure: Failure) -> int | None:
    """The call that a failure reports; None for one that the backend did not raise itself."""
    found = MARK.search(failure.why)
    # A refusal quotes the last failure, and is none.
    return int(found[1]) if found and found.start() == 0 else None


@every_kind
def test_every_plan_ends_within_its_deadline_with_one_step_for_each_node(kind: SourceErrorKind):
    runs, _ = run_all(kind)
    assert len(runs) == PLANS
    for plan in runs:
        assert plan.took <= plan.longest_path * SECONDS
        assert sorted(step.node for step in plan.steps) == sorted(node.id for node in plan.plan.nodes)
        assert all(step.took < SECONDS for step in plan.steps), "a step was cut off before it could report what failed"
        assert {s.node: list(s.passages) for s in plan.steps if isinstance(s, Searched)} == plan.found


@every_kind
def test_no_backend_gets_more_requests_than_its_limits_say(kind: SourceErrorKind):
    _, books = run_all(kind)
    for name, limits in LIMITS.items():
        calls = [call for call in books if call.backend == name]
        assert calls, f"{name} was never tried"
        assert most_in_window([call.at for call in calls], limits.per_seconds) <= limits.requests
        events = sorted((moment, change) for call in calls for moment, change in ((call.at, 1), (call.until, -1)))
        running = most = 0
        for _, change in events:
            running += change
            most = max(most, running)
        assert most <= limits.concurrency


@every_kind
def test_who_asks_to_be_left_alone_is_left_alone(kind: SourceErrorKind):
    _, books = run_all(kind)
    for name in LIMITS:
        calls = [call for call in books if call.backend == name]
        for limited in calls:
            until = limited.until + limited.retry_after
            assert not [call for call in calls if limited.until + 1e-5 < call.at < until - 1e-5]


@every_kind
def test_a_backend_that_is_dead_is_soon_left_alone(kind: SourceErrorKind):
    _, books = run_all(kind)
    after_a_minute = [call for call in books if call.backend == DEAD and call.at > 60]
    lasted = max(call.until for call in books)
    assert lasted > 100
    assert 1 <= len(after_a_minute) <= (lasted - 60) / LIMITS[DEAD].breaker_seconds + 1


@every_kind
def test_every_failure_that_a_backend_raised_is_named_by_all_who_waited_for_it_and_no_others(
    kind: SourceErrorKind,
):
    runs, books = run_all(kind)
    named: dict[int, list[tuple[Run, Step]]] = defaultdict(list)
    for plan, step in steps_of(runs):
        numbers = [n for failure in step.failures if (n := number_of(failure)) is not None]
        assert len(numbers) == len(set(numbers)), "named twice"
        for number in numbers:
            named[number].append((plan, step))
    failed = {call.number: call for call in books if call.end == "failed"}
    assert set(named) == set(failed)
    for number, call in failed.items():
        for plan, step in named[number]:
            assert step.query == call.query
            reported = [failure for failure in step.failures if number_of(failure) == number]
            assert (reported[0].backend, reported[0].kind) == (call.backend, call.kind)
            # It waited: it was there when the call failed, or when the call of which that was a part ended.
            assert plan.ended[step.node] >= call.until - 1e-5
        if call.query.startswith(OWN):
            assert len(named[number]) == 1


@every_kind
def test_every_call_that_was_cut_is_named_as_a_timeout(kind: SourceErrorKind):
    runs, books = run_all(kind)
    cut = Counter((call.backend, call.query) for call in books if call.end == "cut")
    named = Counter(
        (failure.backend, step.query)
        for _, step in steps_of(runs)
        for failure in step.failures
        if failure.kind == "timeout" and failure.why.startswith("no answer in")
    )
    assert {of: n for of, n in named.items() if of[1].startswith(OWN)} == {
        of: n for of, n in cut.items() if of[1].startswith(OWN)
    }
    assert set(named) == set(cut)
    assert sum(named.values()) >= sum(cut.values())


@every_kind
def test_a_step_without_what_it_requested_says_why(kind: SourceErrorKind):
    runs, _ = run_all(kind)
    for plan, step in steps_of(runs):
        order = list(BACKENDS[step.source])
        if _is_repeated(plan, step):
            continue
        if not isinstance(step, Searched):
            failed = {failure.backend for failure in step.failures}
            assert failed, "what is no failure is an honest answer"
            empty = {name for name in order if name not in failed and _was_empty(kind, name, step.query)}
            assert failed | empty == set(order), "not every backend is reported"
            assert all(name in failed or f"{name} found nothing" in step.why for name in order)
        elif step.cached == "stale":
            assert step.failures
        elif step.cached == "fresh":
            assert not step.failures
        elif step.backend:
            answered = step.backend.split("+")
            before = order[: order.index(answered[0])]
            if step.source == "news" or not step.passages:
                continue  # one before it may have had too little, which is no failure
            reported = {failure.backend for failure in step.failures}
            assert all(name in reported or _was_empty(kind, name, step.query) for name in before)


def _is_repeated(plan: Run, step: Step) -> bool:
    """Equal nodes of one plan share one call; what failed on its way is reported by the first one."""
    return next(s for s in plan.steps if (s.source, s.query) == (step.source, step.query)) is not step


def _was_empty(kind: SourceErrorKind, name: str, query: str) -> bool:
    _, books = run_all(kind)
    return any(c.backend == name and c.query == query and c.end == "answered" and not c.urls for c in books)


@every_kind
def test_no_passage_is_lost_and_none_is_doubled(kind: SourceErrorKind):
    runs, books = run_all(kind)
    by_mark = {call.mark: call for call in books}
    searched: Counter[int] = Counter()
    for _, step in steps_of(runs):
        if not isinstance(step, Searched):
            continue
        urls = [passage.url for passage in step.passages]
        assert len(urls) == len(set(urls))
        calls = {by_mark[passage.id[: passage.id.index("]") + 1]].number for passage in step.passages}
        assert set(urls) == {url for number in calls for url in books[number].urls}
        assert all(books[number].query == step.query for number in calls)
        if not step.cached:
            searched.update(calls)
    for call in books:
        if call.urls and call.urls != (f"https://all.org/{call.query.replace(' ', '-')}",):
            assert searched[call.number] >= 1, "an answer was thrown away"
            if call.query.startswith(OWN):
                assert searched[call.number] == 1


@every_kind
def test_what_was_paid_is_what_the_steps_say(kind: SourceErrorKind):
    runs, books = run_all(kind)
    paid = sum(step.credits for _, step in steps_of(runs))
    assert paid == sum(call.end == "answered" for call in books)


@every_kind
def test_the_faults_are_really_there_and_most_searches_survive_them(kind: SourceErrorKind):
    runs, books = run_all(kind)
    ends = Counter(call.end for call in books if call.backend != DEAD)
    assert 0.2 < (ends["failed"] + ends["cut"]) / ends.total() < 0.4
    steps = [step for _, step in steps_of(runs) if step.source in {"web", "news"}]
    searched = [step for step in steps if isinstance(step, Searched)]
    closes_for_long = kind in {"auth", "quota"}
    assert len(searched) > (0.3 if closes_for_long else 0.6) * len(steps)
    assert {step.cached for step in searched} >= ({""} if closes_for_long else {"", "fresh"})
