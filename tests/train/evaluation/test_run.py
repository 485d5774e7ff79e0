import asyncio

import pytest

from agent.errors import PolicyError, SetupError
from agent.evidence import Passage
from agent.rollout import Agent
from agent.trace import Answered, Stopped, Trace, Usage
from tests.conftest import ANSWER_TURN, PLAN_TURN, Broken, answer, make_agent
from train.evaluation.questions import Question, fingerprint, take
from train.evaluation.run import HOPELESS, Result, evaluate, score_trace

DUNE = Question(id="q", question="Who wrote Dune?", answers=("Frank Herbert",), supporting=("web:who wrote Dune", "x"))


def many(n: int) -> list[Question]:
    return [Question(id=f"q{i}", question=f"Who wrote book {i}?", answers=("Frank Herbert",)) for i in range(n)]


def run_all(agent: Agent, questions: list[Question], *, concurrency: int = 4) -> dict[str, Result]:
    results: dict[str, Result] = {}

    def keep(result: Result, trace: Trace) -> None:
        assert result.trace == trace.id
        assert result.id not in results
        results[result.id] = result

    async def run() -> None:
        async with asyncio.timeout(20):
            await evaluate(agent, questions, concurrency=concurrency, on_result=keep)

    asyncio.run(run())
    return results


def test_a_trace_is_scored_with_what_it_used_and_what_gold_it_was_shown():
    trace = answer([PLAN_TURN, ANSWER_TURN])
    result = score_trace(DUNE, trace)
    assert (result.em, result.f1, result.cover, result.prediction) == (True, 1.0, True, "Frank Herbert")
    assert (result.rounds, result.searches, result.gold, result.gold_found) == (1, 2, 2, 1)
    assert result.policy_tokens == trace.usage.policy_tokens > 0
    assert (result.stopped, result.infrastructure) == ("answered", False)


def test_no_answer_is_wrong_and_says_how_it_stopped():
    result = score_trace(DUNE, answer(["I give up."]))
    assert (result.em, result.f1, result.prediction, result.stopped) == (False, 0.0, "", "bad_format")
    assert not result.infrastructure


def test_a_failed_source_counts_as_infrastructure_although_there_is_an_answer():
    agent = make_agent([PLAN_TURN, ANSWER_TURN], sources={name: Broken() for name in ("web", "news")})
    result = score_trace(DUNE, answer([], agent=agent))
    assert result.em
    assert result.infrastructure


@pytest.mark.parametrize("reason", ["engine", "interrupted", "cancelled"])
def test_a_rollout_that_could_not_end_counts_as_infrastructure(reason: str):
    trace = Trace(id="t", question="Who?", protocol="cairn", policy="p", steps=[Answered(text="Frank Herbert")])
    trace.steps.append(Stopped.model_validate({"reason": reason}))
    assert score_trace(DUNE, trace).infrastructure


def test_gold_that_was_found_but_not_shown_does_not_count():
    passage = Passage(id="x", source="web", title="", text="…")
    trace = Trace(id="t", question="Who?", protocol="cairn", policy="p", usage=Usage(searches=1), passages=[passage])
    assert score_trace(DUNE, trace).gold_found == 1
    trace.passages.clear()
    assert score_trace(DUNE, trace).gold_found == 0


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_every_question_is_asked_once_however_many_run_at_once(concurrency: int):
    results = run_all(make_agent([PLAN_TURN, ANSWER_TURN]), many(10), concurrency=concurrency)
    assert sorted(results) == sorted(f"q{i}" for i in range(10))
    assert all(result.em for result in results.values())


def test_rollouts_run_at_the_same_time_but_never_more_than_asked():
    running = most = 0

    class Counting:
        async def search(self, query: str, *, limit: int, filters: object = ()) -> list[Passage]:
            nonlocal running, most
            running, most = running + 1, max(most, running + 1)
            for _ in range(20):
                await asyncio.sleep(0)
            running -= 1
            return []

    turns = ["<search>\nA: x (web)\n</search>", ANSWER_TURN]
    run_all(make_agent(turns, sources={"web": Counting()}), many(9), concurrency=3)
    assert most == 3


def test_an_engine_that_fails_now_and_then_is_counted_apart():
    def turn(context: str) -> str | Exception:
        return PolicyError("out of memory") if "book 3" in context else "<answer>Frank Herbert</answer>"

    results = run_all(make_agent(turn), many(2 * HOPELESS))
    assert [r.id for r in results.values() if r.infrastructure] == ["q3"]
    assert results["q3"].detail == "out of memory"


def test_an_engine_that_fails_from_the_start_ends_the_run_with_a_sentence():
    asked: list[str] = []

    def turn(context: str) -> Exception:
        asked.append(context)
        return PolicyError("connection refused")

    with pytest.raises(SetupError, match=r"failed on the first 8 questions: connection refused"):
        run_all(make_agent(turn), many(100), concurrency=1)
    assert len(asked) == HOPELESS


def test_a_question_that_cannot_be_asked_is_named():
    long = Question(id="long", question="x" * 30_000, answers=("y",))
    with pytest.raises(SetupError, match="'long' cannot be asked: "):
        run_all(make_agent([]), [long])


def test_a_longer_run_contains_a_shorter_one():
    questions = many(5)
    assert take(questions, 2) == questions[:2]
    assert take(questions, None) == questions


def test_a_changed_gold_answer_changes_the_fingerprint():
    one, other = many(2), many(2)
    assert fingerprint(one) == fingerprint(other)
    other[1] = other[1].model_copy(update={"answers": ("Brian Herbert",)})
    assert fingerprint(one) != fingerprint(other)
