"""What the policy is trained on is what the loop makes: same text, same order, same authors."""

import asyncio
from functools import cache
from pathlib import Path

import pytest

from agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.trace import Trace
from agent.world import Question, World
from agent.world.v1 import make_world
from train.sft.segments import Piece, trajectory


@cache
def world() -> World:
    return make_world(11, split="dev", questions=100)


def rollout(world: World, pieces: list[Piece], question: Question, protocol: str) -> Trace:
    """The real loop over the real sources, with the oracle's turns as the policy."""
    turns = [piece.text for piece in pieces if piece.by == "policy"]
    agent = Agent(ScriptedPolicy(turns), protocol_named(protocol), world.sources())

    async def run() -> Trace:
        async with asyncio.timeout(20):
            return await agent.run(agent.new_trace(question.question))

    return asyncio.run(run())


@pytest.mark.parametrize("protocol", ["cairn", "multisearch"])
def test_an_oracle_trajectory_is_the_context_that_the_loop_makes(protocol: str) -> None:
    for question in world().questions:
        pieces = trajectory(world(), question, protocol_named(protocol))
        trace = rollout(world(), pieces, question, protocol)
        assert [Piece(s.by, s.text) for s in trace.segments] == pieces


@pytest.mark.parametrize("protocol", ["cairn", "multisearch"])
def test_the_oracle_answers_every_question_and_is_well_formed(protocol: str) -> None:
    for question in world().questions[:40]:
        pieces = trajectory(world(), question, protocol_named(protocol))
        trace = rollout(world(), pieces, question, protocol)
        assert trace.answer in question.answers
        assert trace.stopped is not None
        assert trace.stopped.reason == "answered"
        assert not [step for step in trace.steps if step.kind in ("plan_rejected", "search_failed")]


def test_the_oracle_cites_the_passage_that_states_the_claim() -> None:
    for question in world().questions[:40]:
        trace = rollout(world(), trajectory(world(), question, protocol_named("cairn")), question, "cairn")
        evidenced = next(step for step in trace.steps if step.kind == "evidenced")
        cited = {trace.passages[number - 1].id for claim in evidenced.claims for number in claim.cites}
        assert cited == set(question.supporting)


def test_a_stage_that_shows_fewer_passages_leaves_out_what_they_do_not_state() -> None:
    pytest.importorskip("torch")
    from train.common.recipe import SftRecipe, read_recipe
    from train.sft.tokenizer import train_tokenizer
    from train.sft.trajectories import tokenizer_texts, world_examples

    recipe = read_recipe(Path(__file__).parents[3] / "train" / "recipes" / "tiny_nothing.toml")
    small = {"questions_per_world": 60, "tokenizer_worlds": 1, "max_tokens": 4000}
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=small)})
    tokenizer = train_tokenizer(tokenizer_texts(recipe), vocabulary=700)

    def made(recipe: SftRecipe) -> int:
        return len(list(world_examples(recipe, tokenizer, world_seed=1, progress=0.0)))

    def showing(passages: int) -> SftRecipe:
        stage = recipe.curriculum[-1].model_copy(update={"passages": passages})
        return recipe.model_copy(update={"curriculum": (stage,)})

    assert made(showing(0)) == 60
    assert 20 < made(showing(1)) < 60
