"""Tree rollouts with shared prefixes (Tree-GRPO, 2509.21240): a tree grows from whole turns of its own rollouts."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from train.rewards.base import Reward
from train.rl.credit import TreeSettings
from train.rl.replay import Prefix, prefix_of, whole_turns
from train.rl.rollouts import RolloutResult, RolloutWorker
from train.rl.tasks import Ask


async def run_trees(
    worker: RolloutWorker,
    asks: Sequence[Ask],
    *,
    tree: TreeSettings,
    reward: Reward[Any],
    progress: float = 0.0,
    seeds: Sequence[int],
    first: int = 0,
) -> list[RolloutResult]:
    """Grow the trees of each question, all at once; the rollouts of a tree follow one another.

    Args:
        worker: runs single rollouts.
        asks: the questions.
        tree: how many trees, and how they grow.
        reward: scores each rollout when it ends.
        progress: share of the training that is done, for rewards with stages.
        seeds: one for each rollout, `tree.rollouts` for each question.
        first: number of the first group.

    Raises:
        SetupError: the engine gives no ids or no log-probabilities.
    """
    free = asyncio.Semaphore(worker.concurrency)
    size = tree.rollouts // tree.trees

    async def one(place: int, number: int, seed: int, prefix: Prefix) -> RolloutResult:
        async with free:
            return await worker.run_one(
                asks[place], first + place, seed, reward=reward, progress=progress, prefix=prefix, tree=number
            )

    async def grown(place: int, number: int) -> list[RolloutResult]:
        at = place * tree.rollouts + number * size
        own = seeds[at : at + size]
        found, chance = [await one(place, number, own[0], Prefix())], random.Random(own[0])
        for begin in range(1, size, tree.expansions):
            chosen = choose_nodes(found, tree.expansions, chance)
            pairs = zip(own[begin:], chosen, strict=False)
            found += await _together([one(place, number, seed, prefix) for seed, prefix in pairs])
        return found

    trees = await _together([grown(place, number) for place in range(len(asks)) for number in range(tree.trees)])
    return [result for found in trees for result in found]


def choose_nodes(grown: Sequence[RolloutResult], number: int, chance: random.Random) -> list[Prefix]:
    """Where a tree grows next: `number` of its whole turns, each once if there are enough.

    A turn that several rollouts share is one node. The last turn of a rollout is none, and neither is anything of a
    masked one. A tree without a node grows from the question.
    """
    nodes = [
        (result, turns)
        for result in grown
        if result.samples
        for turns in range(result.prefix.turns + 1, whole_turns(result.trace) + 1)
    ]
    if not nodes:
        return [Prefix()] * number
    chosen = chance.sample(nodes, number) if len(nodes) >= number else chance.choices(nodes, k=number)
    return [prefix_of(result.trace, turns) for result, turns in chosen]


async def _together(runs: Sequence[Any]) -> list[Any]:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(run) for run in runs]
    return [task.result() for task in running]
