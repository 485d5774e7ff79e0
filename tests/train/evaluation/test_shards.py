"""Questions that other processes ask are answered, scored and kept as this process would have done it."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from agent.errors import SetupError
from agent.parallel.spread import Spread
from agent.settings import CairnSettings
from agent.trace import Trace
from tests.train.evaluation.far import AgentRequest, Given, chat, far_agent
from train.evaluation import session
from train.evaluation.baselines import FirstPassage
from train.evaluation.chosen import QuestionChoice
from train.evaluation.endpoint import EndpointOptions
from train.evaluation.judge import JudgeSettings
from train.evaluation.result import QuestionResult
from train.evaluation.run import TooManyFailed
from train.evaluation.session import Evaluation, MeasureOptions, SoFar
from train.evaluation.shards import ask_elsewhere, let_go, pickled
from train.evaluation.store import read_results

T = TypeVar("T")
R = TypeVar("R")

WORLD = CairnSettings(world="test-v2")
FIRST: dict[str, Any] = {"questions": None, "baseline": "first-passage"}
TIMES = ("seconds", "first_token")
"""Figures that no two runs have in common."""


@dataclass
class Here:
    """Workers who are this process."""

    workers: int = 3
    items: int = 0

    def ended(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        for item in items:
            self.items += 1
            yield function(item)


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    yield
    let_go()


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    metrics = {name: value for name, value in result["metrics"].items() if not any(t in name for t in TIMES)}
    return result | {"metrics": metrics, "trace": ""}


def forgotten(result: QuestionResult, trace: Trace | None) -> None:
    """Ignores results."""


def nowhere() -> EndpointOptions:
    return EndpointOptions(url="http://127.0.0.1:9/v1", model="none", tries=1, seconds=5)


def test_shards_cover_every_question_once_and_give_the_same_results():
    questions = Evaluation(WORLD, baseline="first-passage").questions[:100]
    seen: list[QuestionResult] = []
    alone: list[QuestionResult] = []
    here = Here()
    ask_elsewhere(
        here,
        pickled(WORLD, FIRST),
        questions,
        concurrency=2,
        on_result=lambda result, _: seen.append(result),
    )
    ask_elsewhere(Here(), pickled(WORLD, FIRST), questions, concurrency=999, on_result=lambda one, _: alone.append(one))
    assert here.items == -(-100 // 8)
    assert [result.id for result in seen] == [question.id for question in questions]
    assert [comparable(one.model_dump()) for one in seen] == [comparable(one.model_dump()) for one in alone]


def test_the_respondent_is_loaded_once_for_all_shards_and_closed_once(monkeypatch: pytest.MonkeyPatch):
    counts: Counter[str] = Counter()

    class Counted(FirstPassage):
        def __init__(self, *world: Any) -> None:
            counts["loaded"] += 1
            super().__init__(*world)

        async def aclose(self) -> None:
            counts["closed"] += 1

    monkeypatch.setattr(session, "FirstPassage", Counted)
    questions, here = Evaluation(WORLD, baseline="first-passage").questions[:12], Here()
    ask_elsewhere(here, pickled(WORLD, FIRST), questions, concurrency=1, on_result=forgotten)
    assert (here.items, counts) == (12, {"loaded": 1})
    ask_elsewhere(here, pickled(WORLD, FIRST | {"seed": 1}), questions, concurrency=12, on_result=forgotten)
    assert counts == {"loaded": 2, "closed": 1}, "another evaluation takes its place"
    let_go()
    assert counts == {"loaded": 2, "closed": 2}


def test_what_ended_is_reported_before_a_hopeless_shard_ends_the_rest():
    where = nowhere()
    questions = Evaluation(WORLD, endpoint=where).questions
    arguments = pickled(WORLD, {"questions": None, "endpoint": where, "concurrency": 2})
    reported: list[QuestionResult] = []
    with pytest.raises(TooManyFailed, match="questions failed"):
        ask_elsewhere(Here(), arguments, questions, concurrency=3, on_result=lambda result, _: reported.append(result))
    assert {result.failure for result in reported} == {"connection"}
    assert 8 <= len(reported) < 12


@pytest.mark.slow
def test_a_hopeless_shard_ends_the_rest_and_what_ended_beside_it_is_reported():
    where = nowhere()
    questions = Evaluation(WORLD, endpoint=where).questions
    arguments = pickled(WORLD, {"questions": None, "endpoint": where, "concurrency": 3})
    reported: list[QuestionResult] = []
    with Spread(workers=2) as spread, pytest.raises(TooManyFailed, match="of the first 8 questions failed"):
        ask_elsewhere(spread, arguments, questions, concurrency=3, on_result=lambda result, _: reported.append(result))
    assert {result.failure for result in reported} == {"connection"}
    assert 4 * 8 <= len(reported) < 5 * 12, "four shards were on their way"
    assert len({result.id for result in reported}) == len(reported)


@pytest.mark.slow
def test_what_ended_beside_a_slow_shard_is_kept_when_the_run_is_killed(tmp_path: Path):
    settings, choice = CairnSettings(world="test-v2", workers=2), QuestionChoice(limit=16)
    begun, free = threading.Event(), threading.Event()
    slow = Evaluation(WORLD, choice=choice, baseline="first-passage").questions[0].question

    def says(request: AgentRequest) -> Given:
        if request.question == slow:
            begun.set()
            free.wait(60)
        return chat("no one")

    def interrupt(so_far: SoFar) -> None:
        if so_far.done == 14:
            begun.wait(60)  # its worker may be the later one to start
            raise KeyboardInterrupt

    with far_agent(says) as agent:
        where = EndpointOptions(url=agent.url, model="m", tries=1)
        how: dict[str, Any] = {"choice": choice, "endpoint": where, "concurrency": 1, "out": tmp_path / "out"}
        try:
            with pytest.raises(KeyboardInterrupt):
                Evaluation(settings, **how).run(interrupt)
            kept = [result.id for result in read_results(tmp_path / "out")]
        finally:
            free.set()
        figures = Evaluation(WORLD, **how).run()  # the number of workers is nothing of a run's
        requests = Counter(one.question for one in agent.requests)
    assert len(set(kept)) == 14
    assert figures["n"] == 16
    assert {question: times for question, times in requests.items() if times > 1} == {slow: 2}


def test_a_judge_and_several_workers_are_refused():
    judge = JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge")
    with pytest.raises(SetupError, match="--judge-url"):
        Evaluation(CairnSettings(workers=2), measured=MeasureOptions(judge=judge))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "work", ["local", pytest.param("ray", marks=[pytest.mark.long, pytest.mark.filterwarnings("ignore")])]
)
def test_the_embedded_policy_is_the_same_elsewhere(work: Literal["local", "ray"], tmp_path: Path):
    choice = QuestionChoice(limit=8, sample=1)
    ways: list[tuple[str, int, Literal["local", "ray"]]] = [("here", 1, "local"), ("there", 2, work)]
    figures = [
        Evaluation(
            CairnSettings(world="test-v2", workers=workers, work=on), choice=choice, concurrency=4, out=tmp_path / name
        ).run()
        for name, workers, on in ways
    ]
    kept = [
        {
            row["id"]: comparable(row)
            for row in map(json.loads, (tmp_path / name / "results.jsonl").read_bytes().splitlines())
        }
        for name in ("here", "there")
    ]
    assert len(kept[0]) == 8
    assert kept[0] == kept[1]
    assert (figures[0]["n"], figures[0]["em"]) == (figures[1]["n"], figures[1]["em"])
