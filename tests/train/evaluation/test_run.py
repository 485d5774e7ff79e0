import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from agent.errors import PolicyError, SetupError
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.fuse import FusedSource
from agent.trace import Answered, Stopped, Trace, Usage
from tests.conftest import ANSWER_TURN, PLAN_TURN, Broken, Echo, answer, make_agent
from train.evaluation.questions import GoldQuestion, fingerprint
from train.evaluation.respondents import Rollouts
from train.evaluation.result import QuestionResult
from train.evaluation.run import HOPELESS, TooManyFailed, evaluate, tally
from train.evaluation.scoring import Scoring, score_trace

DUNE = GoldQuestion(
    id="q", question="Who wrote Dune?", answers=("Frank Herbert",), supporting=("web:who wrote Dune", "x")
)


def many(n: int) -> list[GoldQuestion]:
    return [GoldQuestion(id=f"q{i}", question=f"Who wrote book {i}?", answers=("Frank Herbert",)) for i in range(n)]


async def all_of(rollouts: Iterable[Any]) -> list[Trace]:
    return [await one for one in rollouts]


def run_all(
    agent: Agent, questions: list[GoldQuestion], *, concurrency: int = 4, most_failed: float = 0.5
) -> dict[str, QuestionResult]:
    results: dict[str, QuestionResult] = {}

    def keep(result: QuestionResult, trace: Trace | None) -> None:
        assert trace
        assert result.trace == trace.id
        assert result.id not in results
        results[result.id] = result

    async def run() -> None:
        async with asyncio.timeout(20):
            await evaluate(
                Rollouts(agent),
                questions,
                scoring=Scoring(),
                concurrency=concurrency,
                on_result=keep,
                most_failed=most_failed,
            )

    asyncio.run(run())
    return results


def test_a_trace_is_scored_with_what_it_used_and_what_gold_it_was_shown():
    trace = answer([PLAN_TURN, ANSWER_TURN])
    result = score_trace(DUNE, trace)
    assert (result.prediction, result.status, result.stopped) == ("Frank Herbert", "scored", "answered")
    wanted = {"em": 1.0, "f1": 1.0, "cover": 1.0, "rounds": 1, "searches": 2, "gold_found": 0.5}
    assert wanted.items() <= result.metrics.items()
    assert result.metrics["policy_tokens"] == trace.usage.policy_tokens > 0
    assert result.citations == ("web:who wrote Dune",)


def test_no_answer_is_wrong_and_says_how_it_stopped():
    result = score_trace(DUNE, answer(["I give up."]))
    assert (result.metrics["em"], result.metrics["f1"], result.prediction) == (0.0, 0.0, "")
    assert (result.stopped, result.status) == ("bad_format", "scored")


def test_a_question_whose_source_failed_is_not_scored_although_there_is_an_answer():
    agent = make_agent([PLAN_TURN, ANSWER_TURN], sources={name: Broken() for name in ("web", "news")})
    result = score_trace(DUNE, answer([], agent=agent))
    assert result.prediction == "Frank Herbert"
    assert (result.status, result.failure, result.metrics) == ("failed", "source", {})
    assert result.detail == "web: no route"


def test_a_question_that_one_of_several_fused_sources_failed_is_not_scored():
    agent = make_agent(
        [PLAN_TURN, ANSWER_TURN], sources={"web": FusedSource({"here": Echo(), "wiki": Broken()}), "news": Echo()}
    )
    result = score_trace(DUNE, answer([], agent=agent))
    assert (result.status, result.failure, result.metrics) == ("failed", "source", {})
    assert result.detail == "wiki failed"


@pytest.mark.parametrize(
    ("reason", "kind"), [("engine", "engine"), ("interrupted", "interrupted"), ("cancelled", "interrupted")]
)
def test_a_rollout_that_could_not_end_is_not_scored(reason: str, kind: str):
    trace = Trace(id="t", question="Who?", protocol="cairn", policy="p", steps=[Answered(text="Frank Herbert")])
    trace.steps.append(Stopped.model_validate({"reason": reason}))
    result = score_trace(DUNE, trace)
    assert (result.status, result.failure, result.metrics) == ("failed", kind, {})


def test_gold_that_was_found_but_not_shown_does_not_count():
    passage = Passage(id="x", source="web", title="", text="…")
    trace = Trace(id="t", question="Who?", protocol="cairn", policy="p", usage=Usage(searches=1), passages=[passage])
    trace.steps.append(Stopped(reason="answered"))
    assert score_trace(DUNE, trace).metrics["gold_found"] == 0.5
    trace.passages.clear()
    assert score_trace(DUNE, trace).metrics["gold_found"] == 0


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_every_question_runs_once_however_many_run_at_once(concurrency: int):
    results = run_all(make_agent([PLAN_TURN, ANSWER_TURN]), many(10), concurrency=concurrency)
    assert sorted(results) == sorted(f"q{i}" for i in range(10))
    assert all(result.metrics["em"] for result in results.values())


def test_rollouts_run_at_the_same_time_but_never_more_than_requested():
    running = most = 0

    class Counting:
        async def search(self, request: SearchRequest) -> SearchResult:
            nonlocal running, most
            running, most = running + 1, max(most, running + 1)
            for _ in range(20):
                await asyncio.sleep(0)
            running -= 1
            return SearchResult()

    turns = ["<search>\nA: x (web)\n</search>", ANSWER_TURN]
    run_all(make_agent(turns, sources={"web": Counting()}), many(9), concurrency=3)
    assert most == 3


def test_an_engine_that_fails_now_and_then_is_counted_apart():
    def turn(context: str) -> str | Exception:
        return PolicyError("out of memory") if "book 3" in context else "<answer>Frank Herbert</answer>"

    results = run_all(make_agent(turn), many(2 * HOPELESS))
    assert [r.id for r in results.values() if r.status == "failed"] == ["q3"]
    assert tally(results.values()) == {"engine": 1}
    assert results["q3"].detail == "out of memory"


def test_an_engine_that_fails_from_the_start_ends_the_run_with_a_sentence():
    contexts: list[str] = []

    def turn(context: str) -> Exception:
        contexts.append(context)
        return PolicyError("connection refused")

    with pytest.raises(TooManyFailed, match=r"8 of the first 8 questions failed \(8: the engine.*50% may.*refused"):
        run_all(make_agent(turn), many(100), concurrency=1)
    assert len(contexts) == HOPELESS


@pytest.mark.parametrize(("most", "ended"), [(0.3, 10), (0.5, 100)])
def test_the_run_goes_on_while_no_more_than_the_allowed_share_fails(most: float, ended: int):
    """Every other one of the later questions fails: 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, and so on."""
    done: list[str] = []

    def turn(context: str) -> str | Exception:
        done.append(context)
        number = len(done) - 1
        return PolicyError("busy") if number >= 5 and number % 2 else "<answer>Frank Herbert</answer>"

    if ended < 100:
        with pytest.raises(TooManyFailed, match="at most 30% may"):
            run_all(make_agent(turn), many(100), concurrency=1, most_failed=most)
        assert len(done) < 30
    else:
        assert len(run_all(make_agent(turn), many(100), concurrency=1, most_failed=most)) == 100


def test_the_last_questions_failure_does_not_end_a_run_that_is_over():
    results = run_all(make_agent([PolicyError("gone")]), many(3))
    assert tally(results.values()) == {"engine": 3}


def test_earlier_turns_are_given_to_the_agent():
    question = GoldQuestion(
        id="q", question="And when?", answers=("1965",), history=(("Who wrote Dune?", "Frank Herbert"),)
    )
    traces: list[Trace] = []

    def keep(result: QuestionResult, trace: Trace | None) -> None:
        assert trace
        traces.append(trace)

    agent = make_agent(["<answer>1965</answer>"])
    asyncio.run(evaluate(Rollouts(agent), [question], scoring=Scoring(), concurrency=1, on_result=keep))
    assert traces[0].history == question.history
    assert "Who wrote Dune?" in traces[0].segments[0].text


def test_no_two_questions_or_runs_sample_by_the_same_seed_and_the_same_run_does():
    def seeds(seed: int, ids: list[str]) -> list[int]:
        agent = make_agent(["<answer>1965</answer>"] * len(ids))
        rollouts = [Rollouts(agent, seed).ask(GoldQuestion(id=id, question="When?", answers=("1965",))) for id in ids]
        return [trace.seed for trace in asyncio.run(all_of(rollouts))]

    ids = [f"q{number}" for number in range(40)]
    first = seeds(1, ids)
    assert len({*first, *seeds(2, ids)}) == 80
    assert seeds(1, ids[::-1]) == first[::-1], "in whatever order they come"


def test_a_question_that_the_agent_refuses_is_named():
    long = GoldQuestion(id="long", question="x" * 30_000, answers=("y",))
    with pytest.raises(SetupError, match="'long' cannot be put to the agent: "):
        run_all(make_agent([]), [long])


def test_a_changed_gold_answer_changes_the_fingerprint():
    one, other = many(2), many(2)
    assert fingerprint(one) == fingerprint(other)
    other[1] = other[1].model_copy(update={"answers": ("Brian Herbert",)})
    assert fingerprint(one) != fingerprint(other)
