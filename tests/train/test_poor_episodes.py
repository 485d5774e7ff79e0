"""The poor trajectories are what the loop really makes of a policy that copies well and chooses badly."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named, protocol_names
from agent.trace import Trace
from agent.world import Question, World
from agent.world.v1 import make_world as make_first_world
from agent.world.v1.questions import MIX
from tests.train.sft.test_episodes import rollout, world
from train.common.recipe import read_recipe
from train.sft.episodes import Episode, poor_episode
from train.sft.oracle import Unreachable
from train.sft.oracle.poor import Poverty, Told, draw, poverties
from train.sft.oracle.poor_first import poor_oracle
from train.sft.segments import Piece, played


@cache
def told() -> Told:
    return Told(world())


def poor(name: str, *wanted: Poverty) -> Iterator[tuple[Question, Poverty, Episode]]:
    protocol = protocol_named(name)
    for question in world().questions:
        for how in poverties(question, protocol):
            if wanted and how not in wanted:
                continue
            try:
                yield question, how, poor_episode(told(), question, protocol, how)
            except Unreachable:
                continue


def queries(trace: Trace) -> list[str]:
    return [f"{step.query} ({step.source})" for step in trace.steps if step.kind == "searched"]


@pytest.mark.parametrize("name", protocol_names())
def test_a_poor_episode_is_the_context_that_the_loop_makes_and_well_formed(name: str) -> None:
    kinds = Counter[str]()
    for question, how, made in poor(name):
        trace = rollout(question, made, name)
        assert [Piece(s.by, s.text) for s in trace.segments] == list(made.pieces)
        assert trace.stopped is not None
        assert trace.stopped.reason == "answered"
        assert not [step for step in trace.steps if step.kind in ("plan_rejected", "search_failed")]
        kinds[how] += 1
    assert len(kinds) >= 3


@pytest.mark.parametrize("name", protocol_names())
def test_stopping_too_early_is_nearly_always_wrong(name: str) -> None:
    said = [rollout(question, made, name).answer in question.answers for question, _, made in poor(name, "few_rounds")]
    assert len(said) > 10
    assert sum(said) < 0.4 * len(said)


def test_the_wrong_source_finds_nothing_and_the_policy_says_so() -> None:
    said = {rollout(question, made, "cairn").answer for question, _, made in poor("cairn", "wrong_source")}
    assert said == {"I do not know"}


def test_one_source_believes_what_is_outdated() -> None:
    wrong = 0
    for question, _, made in poor("cairn", "one_source"):
        trace = rollout(question, made, "cairn")
        assert all(query.endswith(("(web)", "(kg)", "(arxiv)", "(news)")) for query in queries(trace))
        shown = " ".join(f"{passage.title} {passage.text}" for passage in trace.passages)
        if trace.answer not in question.answers and trace.answer != "I do not know":
            assert trace.answer is not None
            assert trace.answer in shown or question.type in ("choice", "count")
            wrong += 1
    assert wrong


def test_one_query_stands_where_three_are_asked() -> None:
    for question, _, made in poor("multisearch", "one_query"):
        trace = rollout(question, made, "multisearch")
        asked = [len(step.plan.nodes) for step in trace.steps if step.kind == "planned"]
        assert asked[0] == len(question.plan[0])


def test_what_is_known_by_heart_is_searched_and_still_right() -> None:
    found = [(rollout(question, made, "cairn"), question) for question, _, made in poor("cairn", "known")]
    assert found
    for trace, question in found:
        assert queries(trace)
        assert trace.answer in question.answers


@cache
def first_world() -> World:
    return make_first_world(3, split="dev", people=60, questions=40, mix=MIX)


@pytest.mark.parametrize("name", ["cairn", "multisearch"])
def test_a_poor_trajectory_in_a_first_world_is_the_context_that_the_loop_makes(name: str) -> None:
    said = defaultdict[str, list[bool]](list)
    protocol = protocol_named(name)
    first = Told(first_world())
    for question in first_world().questions:
        for how in poverties(question, protocol):
            try:
                pieces = played(first_world(), poor_oracle(first, question, protocol, how))
            except LookupError:
                continue
            trace = looped(question, pieces, protocol, first_world())
            assert [Piece(s.by, s.text) for s in trace.segments] == pieces
            assert trace.stopped is not None
            assert trace.stopped.reason == "answered"
            said[how].append(trace.answer in question.answers)
    assert sum(said["few_rounds"]) < 0.5 * len(said["few_rounds"])
    others = {"cairn": {"few_rounds", "one_source", "wrong_source"}, "multisearch": {"few_rounds", "one_query"}}
    assert set(said) == others[name]


def looped(question: Question, pieces: list[Piece], protocol: TextProtocol, world: World) -> Trace:
    """The real loop over the real sources, with these turns as the policy."""
    turns = [piece.text for piece in pieces if piece.by == "policy"]
    agent = Agent(ScriptedPolicy(turns), protocol, world.sources())
    return asyncio.run(agent.run(agent.new_trace(question.question)))


@pytest.mark.train
def test_the_recipe_of_the_weak_start_learns_from_poor_trajectories_in_the_tokens_of_its_start() -> None:
    pytest.importorskip("torch")
    from train.sft.trajectories import pool_batches

    root = Path(__file__).parents[2]
    recipe = read_recipe(root / "train" / "recipes" / "tiny_weak.toml")
    good = recipe.model_copy(update={"data": recipe.data.model_copy(update={"poor_share": 0.0})})
    assert recipe.keep_tokenizer
    tokenizer = Tokenizer.from_file(str(root / recipe.start / "tokenizer.json"))
    weak, strong = (
        [example for batch in pool_batches(one, tokenizer, pool=0, progress=0.0) for example in batch]
        for one in (recipe, good)
    )
    assert len(weak) == len(strong)
    assert sum(len(example.ids) for example in weak) < 0.9 * sum(len(example.ids) for example in strong)


def test_poor_trajectories_are_drawn_in_their_share_and_rare_ones_stay_rare() -> None:
    rng = random.Random(1)
    drawn = Counter(draw(rng, 0.75, ["few_rounds", "one_source"]) for _ in range(4000))
    assert drawn[None] / 4000 == pytest.approx(0.25, abs=0.03)
    assert drawn["few_rounds"] / 4000 == pytest.approx(0.75 * 12 / 16, abs=0.03)
    rare = Counter(draw(rng, 0.75, ["wrong_source"]) for _ in range(4000))
    assert rare["wrong_source"] / 4000 == pytest.approx(0.75 / 4, abs=0.03)
    assert draw(rng, 0.0, ["known"]) is None
    assert draw(rng, 1.0, []) is None
