"""Rows of rollouts: what a model is trained on is what it would write and read in the loop."""

import asyncio
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from agent.errors import SetupError
from agent.loop.agent import Agent
from agent.outbound.llm import LlmClient
from agent.policies.openai_policy import OpenAiPolicy
from agent.protocols import protocol_named
from agent.trace import Trace
from agent.trace.samples import to_samples
from tests.agent.policies.chat_server import Reply, chat_server
from tests.shipped import HUB
from tests.train.distill.made import rollouts
from tests.train.rewards.rollouts import EVIDENCE, NEXT, QUERY, SOURCE, TASK, rollout, said
from train.distill.rows import TrainingRow, read_rows, rows_of, write_rows

CAIRN, EVIDENCE_PROTOCOL = protocol_named("cairn"), protocol_named("evidence")


@pytest.mark.slow
def test_rows_are_written_and_read_as_they_were(tmp_path: Path) -> None:
    rows = [row for trace in rollouts()[:5] for row in rows_of(trace, CAIRN, type="chain1")]
    assert write_rows(tmp_path / "rows.jsonl", rows) == 5
    assert list(read_rows(tmp_path / "rows.jsonl")) == rows


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"trace": "a"}\n', encoding="utf-8")
    with pytest.raises(SetupError, match=r"line 1 is no row: question"):
        list(read_rows(path))
    with pytest.raises(SetupError, match="cairn train distill"):
        list(read_rows(tmp_path / "none.jsonl"))


@pytest.mark.slow
def test_all_rows_of_a_question_are_held_out_or_none_and_about_one_of_sixteen_is() -> None:
    (row,) = rows_of(rollouts()[0], CAIRN)
    rows = [row.model_copy(update={"question": f"Who is number {number}?"}) for number in range(1600)]
    assert 60 < sum(row.held_out for row in rows) < 140
    assert row.held_out == row.model_copy(update={"branch": "1.B", "policy": "another"}).held_out


async def chatted() -> Trace:
    """A rollout of a chat model behind a real server."""
    turns = [QUERY, NEXT, EVIDENCE + said("Trieste")]
    async with asyncio.timeout(20), chat_server(*(Reply([text]) for text in turns)) as server:
        policy = OpenAiPolicy(LlmClient(base_url=server.url, model="m", api_key="k"), kind="chat", continues="no")
        agent = Agent(policy, EVIDENCE_PROTOCOL, dict.fromkeys(("all", "documents"), SOURCE))
        try:
            return await agent.run(agent.new_trace(TASK.question))
        finally:
            await agent.aclose()


def test_the_row_of_a_served_chat_is_what_a_trained_policy_would_have_in_its_context() -> None:
    (row,) = rows_of(asyncio.run(chatted()), EVIDENCE_PROTOCOL)
    trained = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))
    assert row.pieces[0].text == EVIDENCE_PROTOCOL.prompt_text(TASK.question)
    assert [piece.text for piece in row.pieces if piece.by == "environment"] == [
        segment.text for segment in trained.segments if segment.by == "environment"
    ]
    assert "".join(piece.text for piece in row.pieces) == "".join(segment.text for segment in trained.segments)


@pytest.mark.train
def test_the_tokens_of_a_rollout_are_those_that_were_sampled() -> None:
    pytest.importorskip("torch")
    from train.common.recipe import LossWeights
    from train.sft.trajectories import row_example

    tokenizer = Tokenizer.from_file(str(HUB / "tokenizer.json"))
    weights = LossWeights(policy=1.0, answer=2.0, environment=0.0)
    for trace in rollouts():
        (row,) = rows_of(trace, CAIRN)
        (sample,) = to_samples(trace)
        example = row_example(row, tokenizer, weights)
        assert example.ids[:-1] == sample.ids
        assert example.policy[:-1] == sample.mask
        assert not any(weight for weight, own in zip(example.weights, example.policy, strict=True) if not own)


@pytest.mark.train
def test_ids_of_another_tokenizer_are_not_believed() -> None:
    pytest.importorskip("torch")
    from train.common.recipe import LossWeights
    from train.sft.trajectories import row_example

    (row,) = rows_of(rollouts()[0], CAIRN)
    shifted = tuple(p.model_copy(update={"ids": tuple(i + 1 for i in p.ids or ())}) for p in row.pieces)
    tokenizer = Tokenizer.from_file(str(HUB / "tokenizer.json"))
    weights = LossWeights(policy=1.0, answer=1.0, environment=0.0)
    strange = row_example(row.model_copy(update={"pieces": shifted}), tokenizer, weights)
    assert tokenizer.decode(list(strange.ids), skip_special_tokens=True) == "".join(p.text for p in row.pieces)


def test_a_branch_is_a_row_of_its_own_whose_context_is_only_read() -> None:
    trace = with_a_branch()
    main, branch = rows_of(trace, CAIRN)
    assert (main.branch, main.context) == ("main", 0)
    assert branch.branch == "1.B"
    assert [piece.text for piece in branch.pieces[branch.context :]] == [" of Lina Orr</fill>"]
    assert branch.pieces[: branch.context] == main.pieces[:2]


def with_a_branch() -> Trace:
    made = rollouts()[0].model_dump()
    made["segments"].insert(2, {"branch": "1.B", "by": "policy", "text": " of Lina Orr</fill>", "ids": (1,)})
    made["branches"] = {"1.B": {"parent": "main", "segment": 1, "node": "B"}}
    return Trace.model_validate(made)


def test_rows_of_chats_have_no_branches() -> None:
    made = with_a_branch()
    for place, segment in enumerate(made.segments):
        made.segments[place] = segment.model_copy(update={"ids": None, "logprobs": None})
    rows: list[TrainingRow] = rows_of(made, CAIRN)
    assert [row.branch for row in rows] == ["main"]
