"""Rollouts that begin with turns of another one, and trees of them, with the shipped checkpoint and by hand."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from agent.policies.embedded import EmbeddedPolicy  # noqa: E402 - only where TRL is
from agent.sources.base import SearchRequest, SearchResult, Source  # noqa: E402
from agent.trace import Segment, Trace  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.checkpoints.export import export_checkpoint  # noqa: E402
from train.rewards.registry import reward_of  # noqa: E402
from train.rl.batch import RolloutReward, advantages, rollout_reward  # noqa: E402
from train.rl.credit import TreeSettings  # noqa: E402
from train.rl.replay import prefix_of, whole_turns  # noqa: E402
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.tasks import Ask, tasks_of  # noqa: E402
from train.rl.trees import choose_nodes, run_trees  # noqa: E402
from train.rl.turns import observations, turn_count  # noqa: E402

pytestmark = pytest.mark.train

REWARD = reward_of("outcome", {})
TREE = TreeSettings(trees=2, expansions=2, rounds=2)
ROLLOUT = {"prompts": 1, "group": TREE.rollouts, "rounds": 3, "passages": 24, "policy_tokens": 256}
CREDIT = {"credit": {"tree": TREE.model_dump()}}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPolicy]:
    hot = hot_checkpoint(tmp_path_factory.mktemp("hot") / "hub", heat=0.6)
    export_checkpoint(hot, folder := tmp_path_factory.mktemp("ct2"), "float32")
    one = EmbeddedPolicy.load(folder, workers=1, compute_type="float32")
    yield one
    asyncio.run(one.aclose())


@pytest.fixture(scope="module")
def worker(policy: EmbeddedPolicy) -> RolloutWorker:
    return RolloutWorker.of(policy, recipe(rollout=ROLLOUT, learning=CREDIT).rollout)


def _run(worker: RolloutWorker, ask: Ask, seed: int, **said: Any) -> RolloutResult:
    return asyncio.run(worker.run_one(ask, 0, seed, reward=REWARD, progress=0.0, **said))


@pytest.fixture(scope="module")
def long(worker: RolloutWorker) -> RolloutResult:
    """A rollout with at least two turns to go on from."""
    asks = tasks_of(recipe(rollout={**ROLLOUT, "prompts": 6}, learning=CREDIT)).draw(0, 0, 6)
    rollouts = (_run(worker, ask, seed) for seed in range(8) for ask in asks)
    return next(one for one in rollouts if whole_turns(one.trace) >= 2)


@pytest.fixture(scope="module")
def ask(long: RolloutResult) -> Ask:
    return long.ask


def _main(trace: Trace, turns: int) -> list[Segment]:
    """Up to the observation of so many turns, with the log-probabilities."""
    return trace.segments[: observations(trace)[turns - 1] + 1]


@dataclass(frozen=True)
class Silent:
    """A source that finds nothing new."""

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult()


def test_a_repeated_turn_is_the_recorded_one_id_by_id(worker: RolloutWorker, ask: Ask, long: RolloutResult) -> None:
    for turns in range(1, whole_turns(long.trace) + 1):
        prefix = prefix_of(long.trace, turns)
        other = _run(worker, ask, 999, prefix=prefix)
        assert _main(other.trace, turns) == _main(long.trace, turns)
        assert turn_count(other.trace) > turns
        assert prefix.turns == turns
        assert prefix.tokens == sum(len(one.ids or ()) for one in _main(long.trace, turns) if one.by == "policy")


def test_with_the_same_seed_a_rollout_goes_on_as_it_did(worker: RolloutWorker, ask: Ask, long: RolloutResult) -> None:
    again = _run(worker, ask, long.trace.seed, prefix=prefix_of(long.trace, 1))
    assert [one.text for one in again.trace.segments] == [one.text for one in long.trace.segments]
    assert again.trace.usage == long.trace.usage
    assert [one.ids for one in again.samples] == [one.ids for one in long.samples]


def test_what_a_repeated_search_found_is_not_searched_again(
    worker: RolloutWorker, ask: Ask, long: RolloutResult
) -> None:
    nothing: dict[str, Source] = dict.fromkeys(ask.sources, Silent())
    empty = Ask(ask.question, ask.task, ask.protocol, nothing, ask.world)
    other = _run(worker, empty, 999, prefix=prefix_of(long.trace, 1))
    assert _main(other.trace, 1) == _main(long.trace, 1)
    later = [step for step in other.trace.steps if step.kind == "searched" and step.round > 1]
    assert all(not step.passages for step in later)


def test_a_tree_grows_from_whole_turns_of_its_own(worker: RolloutWorker, ask: Ask) -> None:
    seeds = seeds_of(3, step=0, attempt=0, asks=1, group=TREE.rollouts)
    grown = asyncio.run(run_trees(worker, [ask], tree=TREE, reward=REWARD, seeds=seeds, first=7))
    assert [one.trace.seed for one in grown] == seeds
    assert [one.tree for one in grown] == [0] * 5 + [1] * 5
    assert {one.group for one in grown} == {7}
    for tree in (grown[:5], grown[5:]):
        assert tree[0].prefix.turns == 0
        for at, one in enumerate(tree[1:], start=1):
            before = tree[: 1 + 2 * ((at - 1) // 2)]
            texts = [segment.text for segment in one.trace.segments if segment.by == "policy"]
            shared = texts[: one.prefix.turns]
            assert any(
                [s.text for s in other.trace.segments if s.by == "policy"][: len(shared)] == shared for other in before
            )
    assert any(one.prefix.turns for one in grown)


def test_a_shared_turn_is_one_node_and_the_last_turn_none(worker: RolloutWorker, ask: Ask, long: RolloutResult) -> None:
    whole = whole_turns(long.trace)
    other = _run(worker, ask, 999, prefix=prefix_of(long.trace, whole))
    number = whole + whole_turns(other.trace) - whole
    nodes = choose_nodes([long, other], number, random.Random(0))
    assert sorted(one.turns for one in nodes) == list(range(1, number + 1))
    masked = RolloutResult(ask, 0, long.trace, (), None)
    assert [one.turns for one in choose_nodes([masked], 2, random.Random(0))] == [0, 0]


def test_the_advantage_is_that_of_the_tree_and_that_of_all_trees() -> None:
    """Over all rollouts the mean is 1/4; inside of the first tree 1/2, of the second 0, and of the masked one nothing."""
    rewards: list[tuple[int, float | None]] = [(0, 1.0), (0, 0.0), (1, 0.0), (1, 0.0), (2, None)]
    ones = [RolloutReward(0, None if one is None else {"answer": one}, tree=tree) for tree, one in rewards]
    settings = {"divide_by_std": False, "credit": {"tree": {"trees": 1, "expansions": 2}}}
    found: Any = advantages(ones, recipe(learning=settings).learning, {})
    assert found.tolist() == [0.75 + 0.5, -0.25 - 0.5, -0.25, -0.25, 0.0]
    apart = [RolloutReward(group, one.parts, tree=0) for group, one in enumerate(ones)]
    alone: Any = advantages(apart, recipe(learning=settings).learning, {})
    assert not any(alone.tolist())


def test_what_is_shared_is_reported(worker: RolloutWorker, ask: Ask, long: RolloutResult) -> None:
    learning = recipe(rollout=ROLLOUT, learning=CREDIT).learning
    other = _run(worker, ask, 999, prefix=prefix_of(long.trace, 1), tree=1)
    reward = rollout_reward(other, learning)
    first = sum(len(one.ids or ()) for one in _main(long.trace, 1) if one.by == "policy")
    assert reward.credit.figures == {"shared_token_share": first / other.policy_tokens}
    assert reward.tree == 1


@pytest.mark.slow
def test_a_run_learns_from_trees(tmp_path: Path) -> None:
    lines: list[Any] = []
    small = recipe(1, start=str(hot_checkpoint(tmp_path / "hot", heat=0.6)), rollout=ROLLOUT, learning=CREDIT)
    assert RlRun(small, tmp_path / "run", threads=1).go(lambda _, figures: lines.append(figures))
    assert 0 < lines[0]["trainer/shared_token_share"] < 1
    assert 0.98 < lines[0]["trainer/ratio_lowest"] <= lines[0]["trainer/ratio_highest"] < 1.02
    assert lines[0]["trainer/grad_norm"] > 0


def test_the_group_must_be_the_rollouts_of_the_trees() -> None:
    with pytest.raises(ValueError, match="have 10 rollouts, and `group` is 3"):
        recipe(learning=CREDIT)
