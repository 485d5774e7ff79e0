from hypothesis import given
from hypothesis import strategies as st

from agent.sources.resilience.breaker import Breaker, Permit


def fail(breaker: Breaker, now: float, *, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(breaker.enter(now), now)


def test_it_opens_after_so_many_failures_in_a_row_and_says_how_long():
    breaker = Breaker(failures=3, seconds=30)
    fail(breaker, 0, times=2)
    assert breaker.closed_for(0) is None
    fail(breaker, 1)
    assert breaker.state(1) == "open"
    assert breaker.closed_for(11) == 20


def test_an_answer_ends_the_row():
    breaker = Breaker(failures=2, seconds=30)
    fail(breaker, 0)
    breaker.answered(breaker.enter(0))
    fail(breaker, 0)
    assert breaker.state(0) == "closed"


def test_when_its_time_is_over_one_try_goes_through_and_decides():
    breaker = Breaker(failures=1, seconds=30)
    fail(breaker, 0)
    assert breaker.state(30) == "half-open"
    probe = breaker.enter(30)
    assert breaker.closed_for(30) == 0, "a second one would ask at the same time"
    breaker.failed(probe, 31)
    assert breaker.closed_for(31) == 30
    breaker.answered(breaker.enter(61))
    assert breaker.state(61) == "closed"


def test_a_probe_that_no_one_waits_for_makes_room_for_the_next():
    breaker = Breaker(failures=1, seconds=30)
    fail(breaker, 0)
    breaker.left(breaker.enter(30))
    assert breaker.closed_for(30) is None
    assert breaker.state(30) == "half-open"


def test_what_began_before_it_opened_changes_nothing():
    breaker = Breaker(failures=2, seconds=30)
    early = breaker.enter(0)
    breaker.open(breaker.enter(0), 0, seconds=3600)
    breaker.answered(early)
    assert breaker.closed_for(0) == 3600
    breaker.failed(early, 5)
    assert breaker.closed_for(5) == 3595


@given(st.lists(st.tuples(st.sampled_from(["answered", "failed", "left", "open"]), st.floats(0, 50)), max_size=60))
def test_however_tries_end_it_lets_a_request_through_again(events: list[tuple[str, float]]):
    breaker, clock, turns = Breaker(failures=3, seconds=30), 0.0, list[Permit]()
    for end, waited in events:
        clock += waited
        if breaker.closed_for(clock) is None:
            turns.append(breaker.enter(clock))
        if not turns:
            continue
        turn = turns.pop(0)
        match end:
            case "answered":
                breaker.answered(turn)
            case "failed":
                breaker.failed(turn, clock)
            case "left":
                breaker.left(turn)
            case _:
                breaker.open(turn, clock, seconds=60)
    for turn in turns:
        breaker.left(turn)
    assert breaker.closed_for(clock + 60) is None
