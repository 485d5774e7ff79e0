"""The noisy expert's trajectories are what the loop really makes of a policy that copies well and chooses badly."""

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tokenizers import Tokenizer

from agent.protocols import protocol_named, protocol_names
from agent.trace import Trace
from agent.world import Question
from tests.train.sft.test_episodes import rollout, world
from train.common.habit import Noise
from train.common.recipe import read_recipe
from train.sft.episodes import Episode, EpisodePiece, noisy_episode
from train.sft.oracle import Unreachable
from train.sft.oracle.noisy import NoisyExpert, draw, noises


@cache
def expert() -> NoisyExpert:
    return NoisyExpert(world())


class NoisyRollout(NamedTuple):
    question: Question
    noise: Noise
    made: Episode
    trace: Trace
    """What the loop makes of the episode."""


def noisy(name: str, wanted: Noise) -> list[NoisyRollout]:
    return [one for one in every(name) if one.noise == wanted]


@cache
def every(name: str) -> tuple[NoisyRollout, ...]:
    return tuple(_every(name))


def _every(name: str) -> Iterator[NoisyRollout]:
    protocol = protocol_named(name)
    for question in world().questions:
        for noise in noises(question, protocol):
            try:
                made = noisy_episode(expert(), question, protocol, noise)
            except Unreachable:
                continue
            yield NoisyRollout(question, noise, made, rollout(question, made, name))


def queries(trace: Trace) -> list[str]:
    return [f"{step.query} ({step.source})" for step in trace.steps if step.kind == "searched"]


@pytest.mark.parametrize("name", protocol_names())
def test_a_noisy_episode_is_the_context_that_the_loop_makes_and_well_formed(name: str) -> None:
    kinds = Counter[str]()
    for _, noise, made, trace in every(name):
        assert [EpisodePiece(s.by, s.text) for s in trace.segments] == list(made.pieces)
        assert trace.stopped is not None
        assert trace.stopped.reason == "answered"
        assert not [step for step in trace.steps if step.kind in ("plan_rejected", "search_failed")]
        kinds[noise] += 1
    assert len(kinds) >= 3


@pytest.mark.parametrize("name", protocol_names())
def test_stopping_too_early_is_nearly_always_wrong(name: str) -> None:
    said = [one.trace.answer in one.question.answers for one in noisy(name, "few_rounds")]
    assert len(said) > 10
    assert sum(said) < 0.4 * len(said)


def test_the_wrong_source_finds_nothing_and_the_policy_says_so() -> None:
    said = {one.trace.answer for one in noisy("cairn", "wrong_source")}
    assert said == {"I do not know"}


def test_one_source_believes_what_is_outdated() -> None:
    wrong = 0
    for question, _, _, trace in noisy("cairn", "one_source"):
        assert all(query.endswith(("(web)", "(kg)", "(arxiv)", "(news)")) for query in queries(trace))
        shown = " ".join(f"{passage.title} {passage.text}" for passage in trace.passages)
        if trace.answer not in question.answers and trace.answer != "I do not know":
            assert trace.answer is not None
            assert trace.answer in shown or question.type in ("choice", "count")
            wrong += 1
    assert wrong


def test_one_query_is_sent_where_three_would_be() -> None:
    for question, _, _, trace in noisy("multisearch", "one_query"):
        sent = [len(step.plan.nodes) for step in trace.steps if step.kind == "planned"]
        assert sent[0] == len(question.plan[0])


def test_what_is_known_by_heart_is_searched_and_still_right() -> None:
    found = noisy("cairn", "known")
    assert found
    for question, _, _, trace in found:
        assert queries(trace)
        assert trace.answer in question.answers


@pytest.mark.train
def test_the_recipe_of_the_weak_start_learns_from_the_noisy_expert_in_the_tokens_of_its_start() -> None:
    pytest.importorskip("torch")
    from train.sft.trajectories import pool_batches

    root = Path(__file__).parents[3]
    recipe = read_recipe(root / "train" / "recipes" / "tiny_weak.toml")
    few = {"worlds_per_pool": 1, "questions_per_world": 60, "people": 60}
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=few)})
    good = recipe.model_copy(update={"data": recipe.data.model_copy(update={"noisy_share": 0.0})})
    assert recipe.keep_tokenizer
    tokenizer = Tokenizer.from_file(str(root / recipe.start / "tokenizer.json"))
    weak, strong = (
        [example for batch in pool_batches(one, tokenizer, pool=0, progress=0.0) for example in batch]
        for one in (recipe, good)
    )
    assert len(weak) == pytest.approx(len(strong), rel=0.05)
    assert sum(len(example.ids) for example in weak) < 0.9 * sum(len(example.ids) for example in strong)


def test_noisy_trajectories_are_drawn_in_their_share_and_rare_ones_stay_rare() -> None:
    rng = random.Random(1)
    drawn = Counter(draw(rng, 0.75, ["few_rounds", "one_source"]) for _ in range(4000))
    assert drawn[None] / 4000 == pytest.approx(0.25, abs=0.03)
    assert drawn["few_rounds"] / 4000 == pytest.approx(0.75 * 12 / 16, abs=0.03)
    rare = Counter(draw(rng, 0.75, ["wrong_source"]) for _ in range(4000))
    assert rare["wrong_source"] / 4000 == pytest.approx(0.75 / 4, abs=0.03)
    assert draw(rng, 0.0, ["known"]) is None
    assert draw(rng, 1.0, []) is None
