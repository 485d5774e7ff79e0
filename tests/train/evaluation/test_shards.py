"""Questions that other processes ask are answered, scored and kept as this process would have done it."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from agent.errors import SetupError
from agent.settings import CairnSettings
from agent.trace import Trace
from train.evaluation.chosen import Choice
from train.evaluation.endpoint import Where
from train.evaluation.judge import JudgeSettings
from train.evaluation.result import Result
from train.evaluation.run import TooManyFailed
from train.evaluation.session import Evaluation, Measured
from train.evaluation.shards import ask_elsewhere, pickled

T = TypeVar("T")
R = TypeVar("R")

WORLD = CairnSettings(world="test-v1")
FIRST: dict[str, Any] = {"questions": None, "baseline": "first-passage"}
TIMES = ("seconds", "first_token")
"""Figures that no two runs have in common."""


@dataclass
class Here:
    """Workers who are this process."""

    workers: int = 3
    items: int = 0

    def mapped(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        for item in items:
            self.items += 1
            yield function(item)


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    metrics = {name: value for name, value in result["metrics"].items() if not any(t in name for t in TIMES)}
    return result | {"metrics": metrics, "trace": ""}


def test_shards_cover_every_question_once_and_give_the_same_results():
    evaluation = Evaluation(WORLD, baseline="first-passage")
    seen: list[Result] = []
    here = Here()

    def on_result(result: Result, trace: Trace | None) -> None:
        seen.append(result)

    ask_elsewhere(here, pickled(WORLD, FIRST), evaluation.questions, concurrency=4, on_result=on_result)
    alone = evaluation.part([question.id for question in evaluation.questions]).ended
    assert here.items == 12
    assert [result.id for result in seen] == [question.id for question in evaluation.questions]
    by_id = {result.id: comparable(result.model_dump()) for result, _ in alone}
    assert {result.id: comparable(result.model_dump()) for result in seen} == by_id


def test_what_ended_is_told_before_a_hopeless_shard_ends_the_rest():
    where = Where(url="http://127.0.0.1:9/v1", model="nobody", tries=1, seconds=5)
    evaluation = Evaluation(WORLD, endpoint=where)
    told: list[Result] = []

    def on_result(result: Result, trace: Trace | None) -> None:
        told.append(result)

    arguments = pickled(WORLD, {"questions": None, "endpoint": where, "concurrency": 2})
    with pytest.raises(TooManyFailed, match="questions failed"):
        ask_elsewhere(Here(), arguments, evaluation.questions, concurrency=2, on_result=on_result)
    assert {result.failure for result in told} == {"connection"}
    assert 8 <= len(told) < 30


def test_a_judge_and_several_workers_are_refused():
    judge = JudgeSettings(base_url="http://127.0.0.1:9/v1", model="judge")
    with pytest.raises(SetupError, match="--judge-url"):
        Evaluation(CairnSettings(workers=2), measured=Measured(judge=judge))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("work", ["local", pytest.param("ray", marks=pytest.mark.filterwarnings("ignore"))])
def test_the_embedded_policy_is_the_same_elsewhere(work: Literal["local", "ray"], tmp_path: Path):
    choice = Choice(limit=24, sample=1)
    ways: list[tuple[str, int, Literal["local", "ray"]]] = [("here", 1, "local"), ("there", 2, work)]
    figures = [
        Evaluation(
            CairnSettings(world="test-v1", workers=workers, work=on), choice=choice, concurrency=4, out=tmp_path / name
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
    assert len(kept[0]) == 24
    assert kept[0] == kept[1]
    assert (figures[0]["n"], figures[0]["em"]) == (figures[1]["n"], figures[1]["em"])
