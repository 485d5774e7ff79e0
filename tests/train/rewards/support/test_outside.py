"""Judge and reader at an endpoint with scripted replies, and the reader in this process."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent.trace import Trace
from tests.train.evaluation.test_judge import Bench
from tests.train.rewards.rollouts import EVIDENCE, NEXT, PLAN, QUERY, TASK, rollout, said
from train.evaluation.judge import Judge
from train.rewards import EndpointJudge, EndpointReader, LocalReader, Rewarded, RewardTools, reward_of
from train.rewards.support.outside import read_answer, read_score

T = TypeVar("T")


def judged(bench: Bench, work: Callable[[Judge], Coroutine[Any, Any, T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(10), bench.judge() as judge:
            return await work(judge)

    return asyncio.run(bounded())


def graded(bench: Bench, *, graded: bool) -> float | None:
    return judged(bench, lambda judge: EndpointJudge(judge, graded=graded).score(TASK, "in Trieste"))


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ("100", 1.0),
        (" 85.", 0.85),
        ("<think>hm</think>0", 0.0),
        ("101", None),
        ("0.5", None),
        ("ten", None),
        ("", None),
    ],
)
def test_a_grade_is_a_number_up_to_100(reply: str, share: float | None):
    assert read_score(reply) == share


@pytest.mark.parametrize(("reply", "said"), [("Trieste\n", "Trieste"), ("<think>x</think> y", "y"), (" ", None)])
def test_a_reader_says_something_or_nothing(reply: str, said: str | None):
    assert read_answer(reply) == said


def test_a_judge_gives_a_verdict_or_a_grade():
    assert graded(Bench("correct"), graded=False) == 1.0
    assert graded(Bench("incorrect"), graded=False) == 0.0
    assert graded(Bench("70"), graded=True) == 0.7


def test_an_answer_goes_to_the_judge_as_data():
    bench = Bench("70")
    graded(bench, graded=True)
    assert bench.data() == {
        "question": TASK.question,
        "reference_answers": ["Trieste", "Triest"],
        "answer_to_grade": "in Trieste",
    }


@pytest.mark.parametrize("bench", [Bench(500), Bench("I would say 70"), Bench(401)])
def test_tries_are_bounded_and_then_there_is_no_verdict(bench: Bench):
    assert graded(bench, graded=True) is None
    assert len(bench.requests) == (1 if bench.replies[0] == 401 else 3)


def test_a_second_try_may_succeed():
    assert graded(Bench(503, "correct"), graded=False) == 1.0


def scored(name: str, trace: Trace, bench: Bench, **settings: Any) -> Rewarded | None:
    async def work(judge: Judge) -> Rewarded | None:
        tools = RewardTools(judge=EndpointJudge(judge), reader=EndpointReader(judge))
        return await reward_of(name, settings, tools=tools).score(trace, TASK)

    return judged(bench, work)


def test_a_reader_sees_the_evidence_and_the_question_and_nothing_else():
    trace = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Rome"))
    bench = Bench("Trieste")
    found = scored("evidence", trace, bench, variant="printed")
    assert found is not None
    assert found.parts == {"answer": 0.0, "evidence": 1.0, "format": pytest.approx(0.4)}
    evidence = "Tarn Harbour was built by Lina Orr.\nLina Orr was born in Trieste."
    assert bench.data() == {"evidence": evidence, "question": TASK.question}


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("dag", rollout("dag", PLAN, said("Trieste"))),
        ("evidence", rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))),
        ("reflect", rollout("reflect", said("Trieste"))),
    ],
)
def test_an_endpoint_that_is_down_masks_the_rollout(name: str, trace: Trace):
    assert scored(name, trace, Bench(503), variant="printed") is None
    assert scored(name, trace, Bench("correct"), variant="printed") is not None


def test_a_local_reader_is_a_function():
    trace = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Rome"))
    reader = LocalReader(lambda question, evidence: evidence.rsplit(maxsplit=1)[-1])
    found = asyncio.run(reward_of("evidence", tools=RewardTools(reader=reader)).score(trace, TASK))
    assert found is not None
    assert found.parts["evidence"] == 1.0


@pytest.mark.train
def test_our_own_small_reader_can_be_loaded(tmp_path: Path):
    pytest.importorskip("torch")
    from lab.reader.examples import Classes
    from train.reader.pages import ReaderShape
    from train.reader.reading import TrainedReader, make_reader
    from train.reader.words import ReaderVocabulary

    shape = ReaderShape(width=16, layers=1, heads=2, inner=32, most_words=64)
    vocabulary, classes = ReaderVocabulary(["born", "was", "in"]), Classes(("I do not know.",))
    TrainedReader(make_reader(shape, vocabulary, classes), vocabulary, classes, shape, name="small").save(tmp_path)
    said = asyncio.run(LocalReader.load(tmp_path).read(TASK.question, "Lina Orr was born in Trieste."))
    assert isinstance(said, str)
