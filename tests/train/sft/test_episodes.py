"""What the second policy is trained on is what the loop makes, in every protocol and with fills."""

import asyncio
from collections.abc import Iterator
from functools import cache

import pytest

from agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named, protocol_names
from agent.trace import Trace
from agent.world import Question, World
from train.sft.episodes import Episode, EpisodePiece, episode
from train.sft.oracle import NotShown, Unreachable, can_fill
from train.world.shards import make_world


@cache
def world() -> World:
    return make_world(3, split="dev", questions=60)


def protocol(name: str) -> TextProtocol:
    found = protocol_named(name)
    return found.model_copy(update={"fills": "fill" in found.tags})


@cache
def episodes(name: str) -> tuple[tuple[Question, Episode], ...]:
    """Every question that the protocol can answer; where it knows fills, every chain in one round as well."""
    return tuple(_episodes(protocol(name)))


def _episodes(spoken: TextProtocol) -> Iterator[tuple[Question, Episode]]:
    for question in world().questions:
        for fill in (False, True) if can_fill(question.plan, spoken) else (False,):
            try:
                yield question, episode(world(), question, spoken, fill=fill)
            except (NotShown, Unreachable):
                continue


def rollout(question: Question, made: Episode, name: str) -> Trace:
    """The real loop over the real sources, with the oracle's turns as the policy."""
    script: dict[str, str] = {}
    for before, pieces in [((), made.pieces), *((made.pieces[: fork.at], fork.pieces) for fork in made.forks)]:
        text = "".join(piece.text for piece in before)
        for piece in pieces:
            if piece.by == "policy":
                script[text] = piece.text
            text += piece.text
    agent = Agent(ScriptedPolicy(lambda context: script[context]), protocol(name), world().sources())

    async def run() -> Trace:
        async with asyncio.timeout(20):
            return await agent.run(agent.new_trace(question.question, history=question.history))

    return asyncio.run(run())


@cache
def rollouts(name: str) -> tuple[tuple[Question, Episode, Trace], ...]:
    """Every episode, and what the loop makes of it."""
    return tuple((question, made, rollout(question, made, name)) for question, made in episodes(name))


@pytest.mark.parametrize("name", protocol_names())
def test_an_episode_is_the_context_that_the_loop_makes(name: str) -> None:
    for _, made, trace in rollouts(name):
        own = [EpisodePiece(s.by, s.text) for s in trace.segments if s.branch == "main"]
        assert own == list(made.pieces)
        branches = [
            [EpisodePiece(s.by, s.text) for s in trace.segments if s.branch == branch] for branch in trace.branches
        ]
        assert branches == [list(fork.pieces) for fork in made.forks]


@pytest.mark.parametrize("name", protocol_names())
def test_the_oracle_is_right_and_well_formed(name: str) -> None:
    for question, _, trace in rollouts(name):
        assert trace.stopped is not None
        assert trace.stopped.reason == "answered"
        assert not [step for step in trace.steps if step.kind in ("plan_rejected", "search_failed")]
        if question.unanswerable:
            assert trace.answer == "I do not know"
        else:
            assert trace.answer in question.answers


@pytest.mark.parametrize("name", protocol_names())
def test_the_oracle_knows_the_well_known_by_heart(name: str) -> None:
    known = [made for question, made in episodes(name) if question.well_known]
    assert known
    assert all(len(made.pieces) == 2 for made in known)


@pytest.mark.parametrize(("name", "least"), [(name, 0.5 if name == "dag" else 0.95) for name in protocol_names()])
def test_nearly_every_question_within_reach_becomes_an_episode(name: str, least: float) -> None:
    reached = {question.id for question, _ in episodes(name)}
    assert len(reached) >= least * len(world().questions)


def test_a_claim_of_the_oracle_cites_a_passage_that_says_it() -> None:
    for question, _, trace in rollouts("cairn"):
        for step in trace.steps:
            if step.kind != "evidenced" or question.type in ("intersection", "count"):
                continue
            for claim in step.claims:
                shown = [trace.passages[number - 1] for number in claim.cites]
                value = claim.text.rstrip(".").rpartition(" is ")[2].partition(" since ")[0]
                assert shown
                assert all(value in f"{passage.title} {passage.text}" for passage in shown), claim.text


def test_evidence_is_copied_word_for_word() -> None:
    for _, _, trace in rollouts("evidence"):
        texts = " ".join(passage.text for passage in trace.passages)
        for step in trace.steps:
            if step.kind == "evidenced":
                assert all(line in texts for line in step.text.splitlines())


def test_a_fill_is_a_branch_that_ends_in_a_whole_query() -> None:
    forks = [fork for _, made in episodes("cairn") for fork in made.forks]
    assert forks
    for fork in forks:
        assert [piece.by for piece in fork.pieces] == ["environment", "loop", "policy"]
        assert fork.pieces[-1].text.endswith("</fill>")
        assert "#" not in fork.pieces[-1].text
