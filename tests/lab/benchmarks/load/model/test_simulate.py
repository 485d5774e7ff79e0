"""The simulation against what can be said of it with a pencil."""

import math
from dataclasses import replace

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.benchmarks.load.model.calls import Call
from lab.benchmarks.load.model.cost import Cost
from lab.benchmarks.load.model.fit import slowed
from lab.benchmarks.load.model.paced import PacedCost, PacedLoad, fit_wakes, predict_paced
from lab.benchmarks.load.model.runs import Run, RunStage, TimedQuestion, Turn, runs_of
from lab.benchmarks.load.model.simulate import Machine, Shared, predict
from lab.benchmarks.load.streams import StreamLoad, ramp_seconds

LONG = 600
"""Tokens of a context that shares its call with no other."""
STEP = Cost(call=0.0, prompt=0.0, step=0.01, attend=0.0)


def run_of(*tokens: int, prompt: int = LONG, gap: float = 0.0) -> Run:
    return Run(tuple(RunStage(gap, (Turn(prompt, count),)) for count in tokens), gap)


def test_one_stream_takes_the_time_of_its_parts():
    run = run_of(10, 20, gap=0.05)
    found = predict([run], Machine(STEP, 0.0, workers=2), streams=1, seconds=30)
    assert found.answer_s_p50 == pytest.approx(3 * 0.05 + 30 * 0.01)
    assert found.answers_per_s == pytest.approx(1 / 0.45, rel=0.02)


@pytest.mark.parametrize(("both", "a_second"), [(1.0, 20.0), (2.0, 10.0), (1.25, 16.0)])
def test_many_streams_are_as_fast_as_the_workers_are(both: float, a_second: float):
    cost = Cost(call=0.0, prompt=0.0, step=0.01, attend=0.0, both=both)
    found = predict([run_of(10)], Machine(cost, 0.0, workers=2), streams=12, seconds=60)
    assert found.answers_per_s == pytest.approx(a_second, rel=0.03)
    assert found.engine_busy == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_each_worker_is_a_call_more_at_the_same_time(workers: int):
    found = predict([run_of(10)], Machine(STEP, 0.0, workers=workers), streams=24, seconds=60)
    assert found.answers_per_s == pytest.approx(10.0 * workers, rel=0.03)
    assert found.engine_busy == pytest.approx(workers, rel=0.03)


def test_the_event_loop_is_the_limit_where_it_is_the_slowest():
    found = predict([run_of(1, gap=0.1)], Machine(STEP, 0.0, workers=2), streams=8, seconds=60)
    assert found.answers_per_s == pytest.approx(5.0, rel=0.03)
    assert found.loop_busy == pytest.approx(1.0, rel=0.03)


def test_contexts_that_are_alike_share_calls_and_long_ones_do_not():
    cost = Cost(call=0.0, prompt=0.0, step=0.01, attend=0.0, member=0.0)
    short = predict([run_of(10, prompt=50)], Machine(cost, 0.0, workers=2), streams=32, seconds=30)
    long = predict([run_of(10)], Machine(cost, 0.0, workers=2), streams=32, seconds=30)
    assert short.answers_per_s == pytest.approx(8 * long.answers_per_s, rel=0.1)


def test_turns_that_are_requested_together_go_on_together():
    fills = Run((RunStage(0.0, (Turn(LONG, 10), Turn(LONG, 20))),), 0.0)
    assert predict([fills], Machine(STEP, 0.0, workers=2), streams=1, seconds=20).answer_s_p50 == pytest.approx(0.2)


@settings(deadline=None, max_examples=12)
@given(st.integers(1, 24), st.lists(st.integers(1, 40), min_size=1, max_size=5), st.floats(0.0, 0.02))
def test_every_stream_has_a_question_on_its_way_from_its_beginning_to_the_end(
    streams: int, said: list[int], gap: float
):
    """Little's law: the answers' seconds together are the streams' time."""
    found = predict(
        [run_of(count, gap=gap) for count in said], Machine(STEP, 0.0, workers=2), streams=streams, seconds=40
    )
    together = found.answers * found.answer_s_mean
    assert streams * (40 - ramp_seconds(40)) <= together <= streams * found.seconds + 1e-6


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 5)), min_size=1, max_size=8))
def test_shared_work_is_all_done_and_never_faster_than_it_may_be(jobs: list[tuple[float, float]]):
    env = simpy.Environment()
    shared = Shared(env, lambda there: min(1.0, 2 / there))
    ended: dict[int, float] = {}

    def job(number: int, at: float, seconds: float):
        yield env.timeout(at)
        yield shared.work(seconds)
        ended[number] = env.now

    for number, (at, seconds) in enumerate(jobs):
        env.process(job(number, at, seconds))
    env.run()
    assert set(ended) == set(range(len(jobs)))
    assert all(ended[number] >= at + seconds - 1e-6 for number, (at, seconds) in enumerate(jobs))
    assert max(ended.values()) >= sum(seconds for _, seconds in jobs) / 2 - 1e-6


def test_a_question_is_replayed_with_the_calls_of_its_time_and_what_lies_between():
    calls = [Call(20, 30, (5,), (2,)), Call(40, 60, (9,), (3,)), Call(130, 150, (5,), (7,))]
    found = runs_of([TimedQuestion(3, 10, 70), TimedQuestion(4, 110, 155), TimedQuestion(5, 200, 210)], calls)
    assert list(found) == [3, 4]
    assert found[3] == Run((RunStage(10e-9, (Turn(5, 2),)), RunStage(10e-9, (Turn(9, 3),))), 10e-9)
    assert found[4] == Run((RunStage(20e-9, (Turn(5, 7),)),), 5e-9)


def test_calls_that_mostly_overlap_were_requested_together_and_those_that_touch_were_not():
    calls = [Call(10, 30, (5, 6), (2, 3)), Call(12, 40, (9,), (3,)), Call(38, 60, (20,), (4,))]
    (run,) = runs_of([TimedQuestion(0, 0, 70)], calls).values()
    assert [[turn.tokens for turn in stage.turns] for stage in run.stages] == [[2, 3, 3], [4]]
    assert run.stages[1].gap_seconds == 0


def pace(token_seconds: float = 0.0, wake_seconds: float = 0.0) -> PacedCost:
    return PacedCost((41, 21), 20, 0.1, rest_seconds=0.02, wake_seconds=wake_seconds, token_seconds=token_seconds)


def test_a_paced_answer_takes_its_tokens_its_search_and_the_rest():
    found = predict_paced(pace(), streams=10, seconds=20).load
    assert found.answer_s_p95 == pytest.approx(2.0 + 1.0 + 0.1 + 0.02)
    assert found.answers == sum(math.ceil((20 - ramp_seconds(20) * n / 10) / 3.12) for n in range(10))


def test_paced_streams_are_late_where_the_loop_has_no_time():
    found = predict_paced(pace(0.001), streams=100, seconds=30)
    assert found.load.answers_per_s == pytest.approx(1 / 0.062, rel=0.1)
    assert found.load.answer_s_p50 > 4.0
    assert found.tokens == found.load.answers * 62


def test_a_loop_wakes_for_each_token_of_one_stream_and_for_several_of_many():
    one = predict_paced(pace(), streams=1, seconds=20)
    many = predict_paced(pace(), streams=300, seconds=20)
    assert one.wakes == one.tokens
    assert many.wakes < many.tokens / 3


def test_what_a_wake_costs_is_nothing_to_a_loop_that_never_sleeps():
    busy = predict_paced(pace(0.001), streams=100, seconds=30)
    dear = predict_paced(pace(0.001, wake_seconds=0.001), streams=100, seconds=30)
    assert dear.load.answers_per_s == pytest.approx(busy.load.answers_per_s, rel=0.05)


@pytest.mark.parametrize(("wake", "token"), [(6e-4, 5e-5), (2e-5, 6e-5), (0.0, 1e-4)])
def test_what_two_loads_cost_the_loop_predicts_what_another_one_does(wake: float, token: float):
    real = pace(token, wake)

    def busy(pace: PacedCost, streams: int) -> float:
        return predict_paced(pace, streams=streams, seconds=20.0).load.loop_busy

    few, many = (
        PacedLoad(streams, 20.0, found.loop_busy * found.seconds)
        for streams in (16, 128)
        for found in [predict_paced(real, streams=streams, seconds=20.0).load]
    )
    assert busy(fit_wakes(pace(), few, many), 60) == pytest.approx(busy(real, 60), rel=0.15)


@pytest.mark.parametrize("both", [1.1, 1.6])
def test_a_load_says_how_much_calls_at_the_same_time_slow_each_other_down(both: float):
    runs = [run_of(10, 20, gap=0.002), run_of(15)]
    real = Machine(replace(STEP, both=both), 1e-5, workers=2)
    seen = predict(runs, real, streams=8, seconds=30)
    load = StreamLoad(8, seen.seconds, seen.answers, 0, 0, seen.answers_per_s, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    found = slowed(runs, replace(real, cost=STEP), load, seconds=30)
    assert found.cost.both == pytest.approx(both, rel=0.03)
    assert replace(found, cost=STEP) == replace(real, cost=STEP)
