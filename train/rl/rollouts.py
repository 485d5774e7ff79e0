"""A batch of questions as rollouts with their rewards. All of them run at once in one event loop.

Where one waits for a search, the engine works on others. A failure outside of the policy masks its own rollout alone.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.errors import SetupError
from agent.loop.agent import Agent, Budgets
from agent.policies.base import Policy, Sampling
from agent.trace import Trace
from agent.trace.samples import Sample, to_samples
from train.rewards.base import Reward, Rewarded
from train.rl.recipe import RolloutSettings
from train.rl.replay import Prefix, RepeatingPolicy, repeating
from train.rl.tasks import Ask


@dataclass(frozen=True)
class RolloutResult:
    """One rollout of a batch."""

    ask: Ask
    group: int
    """Of the rollouts of one question; a number that no other group of the step has."""
    trace: Trace
    samples: tuple[Sample, ...]
    """Its own context first, then its branches; none where it is masked."""
    rewarded: Rewarded | None
    """None: masked."""
    tree: int = 0
    """Of its group's, where rollouts grow in trees."""
    prefix: Prefix = field(default_factory=Prefix)
    """What it repeats of another rollout of its tree."""

    @property
    def policy_tokens(self) -> int:
        """Tokens that are trained, in all its rows."""
        return sum(sum(sample.mask) for sample in self.samples)


@dataclass(frozen=True)
class RolloutWorker:
    """Runs rollouts: an engine and its limits."""

    policy: Policy
    budgets: Budgets
    sampling: Sampling
    concurrency: int

    @classmethod
    def of(cls, policy: Policy, rollout: RolloutSettings) -> "RolloutWorker":
        """As a recipe has it."""
        sampling = Sampling(temperature=rollout.temperature, top_p=rollout.top_p)
        return cls(policy, rollout.budgets, sampling, rollout.concurrency)

    @property
    def greedy(self) -> "RolloutWorker":
        """The same without chance."""
        return replace(self, sampling=Sampling())

    async def run(
        self,
        asks: Sequence[Ask],
        *,
        group: int,
        reward: Reward[Any],
        progress: float = 0.0,
        seeds: Sequence[int],
        first: int = 0,
    ) -> list[RolloutResult]:
        """Run `group` rollouts of each question.

        Args:
            asks: the questions.
            group: rollouts of each.
            reward: scores each rollout when it ends.
            progress: share of the training that is done, for rewards with stages.
            seeds: one for each rollout; those of a group follow one another.
            first: number of the first group.

        Raises:
            SetupError: the engine gives no ids or no log-probabilities.
        """
        free = asyncio.Semaphore(self.concurrency)

        async def one(place: int, seed: int) -> RolloutResult:
            number = place // group
            async with free:
                return await self._run_one(asks[number], first + number, seed, reward, progress)

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one(place, seed)) for place, seed in enumerate(seeds)]
        return [task.result() for task in running]

    async def _run_one(self, ask: Ask, group: int, seed: int, reward: Reward[Any], progress: float) -> RolloutResult:
        return await self.run_one(ask, group, seed, reward=reward, progress=progress)

    async def run_one(
        self,
        ask: Ask,
        group: int,
        seed: int,
        *,
        reward: Reward[Any],
        progress: float,
        prefix: Prefix | None = None,
        tree: int = 0,
    ) -> RolloutResult:
        """Run one rollout.

        Args:
            ask: its question.
            group: number of its group.
            seed: of its sampling.
            reward: scores it when it ends.
            progress: share of the training that is done.
            prefix: turns of another rollout of the question that it begins with.
            tree: of its group's, where rollouts grow in trees.

        Raises:
            SetupError: the engine gives no ids or no log-probabilities.
        """
        shared = prefix or Prefix()
        agent = Agent(
            policy=RepeatingPolicy(self.policy, shared) if shared.turns else self.policy,
            protocol=ask.protocol,
            sources=repeating(ask.sources, shared) if shared.turns else ask.sources,
            budgets=self.budgets,
            sampling=self.sampling,
        )
        trace = agent.new_trace(ask.question.question, history=ask.question.history, seed=seed)
        await agent.run(trace)
        rewarded = await reward.score(trace, ask.task, progress=progress, protocol=ask.protocol)
        if rewarded is None:
            return RolloutResult(ask, group, trace, (), None, tree, shared)
        try:
            return RolloutResult(ask, group, trace, tuple(to_samples(trace)), rewarded, tree, shared)
        except ValueError as error:
            raise SetupError(f"{self.policy.name} cannot be trained: {error}") from error


def seeds_of(seed: int, *, step: int, attempt: int, asks: int, group: int, rank: int = 0) -> list[int]:
    """A seed for each rollout of a batch, the same whenever the batch is made."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed} {step} {attempt} {rank} {place}".encode()).digest()[:6], "big")
        for place in range(asks * group)
    ]
