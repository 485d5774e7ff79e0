"""The checkpoint in the package, through the whole agent."""

import asyncio
from collections.abc import Sequence

import pytest

from agent.build.agent import build_agent
from agent.build.shipped import CHECKPOINTS
from agent.protocols import protocol_names
from agent.settings import load_settings
from agent.trace import Evidenced, Trace
from agent.world import Question, load_world


def rollouts(questions: Sequence[str], *, world: str = "test", protocol: str = "cairn") -> list[Trace]:
    async def run() -> list[Trace]:
        agent = build_agent(load_settings(world=world, protocol=protocol))
        try:
            async with asyncio.timeout(100):
                return await asyncio.gather(*(agent.run(agent.new_trace(question)) for question in questions))
        finally:
            await agent.policy.aclose()

    return asyncio.run(run())


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    copied = (
        "chain1",
        "chain2",
        "chain3",
        "comparison",
        "intersection",
        "choice",
    )  # the answer is a name that is found
    return [question for question in load_world("dev-v2").questions if question.type in copied][:24]


@pytest.fixture(scope="module", params=["cairn", pytest.param("multisearch", marks=pytest.mark.slow)])
def traces(request: pytest.FixtureRequest, questions: list[Question]) -> list[Trace]:
    return rollouts([question.question for question in questions], world="dev-v2", protocol=str(request.param))


def test_most_questions_of_an_unseen_world_are_answered_rightly(traces: list[Trace], questions: list[Question]) -> None:
    right = [trace.answer in question.answers for trace, question in zip(traces, questions, strict=True)]
    assert sum(right) >= 0.75 * len(right)


def test_answers_come_from_what_was_found_and_not_from_memory(traces: list[Trace]) -> None:
    for trace in traces:
        shown = " ".join(f"{passage.title} {passage.text}" for passage in trace.passages)
        assert trace.usage.searches >= 1
        if trace.stopped is not None and trace.stopped.reason == "answered":
            assert trace.answer is not None
            assert trace.answer.split()[-1] in shown + trace.question


def test_every_claim_cites_a_passage_that_was_shown(traces: list[Trace]) -> None:
    for trace in traces:
        for step in trace.steps:
            if isinstance(step, Evidenced):
                assert step.claims
                assert all(1 <= number <= len(trace.passages) for claim in step.claims for number in claim.cites)


def test_text_ids_and_log_probabilities_of_what_it_sampled_agree(traces: list[Trace]) -> None:
    for trace in traces:
        for segment in trace.segments:
            assert segment.ids is not None
            if segment.by == "policy":
                assert segment.logprobs is not None
                assert len(segment.logprobs) == len(segment.ids)
                assert all(value <= 0 for value in segment.logprobs)
            else:
                assert segment.logprobs is None


@pytest.mark.slow
@pytest.mark.parametrize("protocol", protocol_names())
def test_the_second_checkpoint_speaks_every_protocol_on_the_whole_little_world(protocol: str) -> None:
    known = "In which city does the parliament of Ethrun meet?"
    questions = [q for q in load_world("dev-v2").questions if q.type in ("chain1", "choice") and q.hops == 1][:8]
    traces = rollouts([*(question.question for question in questions), known], world="dev-v2", protocol=protocol)
    right = [trace.answer in question.answers for trace, question in zip(traces[:-1], questions, strict=True)]
    assert sum(right) >= 0.5 * len(right)
    assert all(trace.stopped is not None and trace.stopped.reason == "answered" for trace in traces)
    assert traces[-1].usage.searches == 0
    assert traces[-1].answer == "Eaglesea"


def test_a_question_about_the_real_world_gets_a_sentence_and_no_guess() -> None:
    (trace,) = rollouts(["What is the capital of France?"])
    assert trace.answer is not None
    assert "connect a model" in trace.answer
    assert trace.usage.searches == 0


def test_one_form_is_shipped_with_a_card_and_stays_small() -> None:
    (tiny,) = {path.parent for path in CHECKPOINTS.glob("*/ct2")}
    assert {path.name for path in tiny.iterdir()} == {"ct2", "README.md"}
    assert sum(path.stat().st_size for path in tiny.rglob("*") if path.is_file()) <= 5_000_000
    assert "## Results" in (tiny / "README.md").read_text(encoding="utf-8")
