"""What can go wrong around a run: sources that die or fail for some rollouts, and a disk that is full."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from agent.errors import SourceError
from agent.policies.base import Sampling
from agent.sources.base import SearchRequest, SearchResult, Source
from tests.train.disk import full_disk
from train.rewards.base import Parts, Reward, RolloutView
from train.rewards.outcome import OutcomeReward
from train.rewards.registry import reward_of
from train.rewards.task import Task
from train.rl.live import EmbeddedLive
from train.rl.recipe import RlRecipe
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of
from train.rl.tasks import Ask, tasks_of

_BROKEN: ContextVar[bool] = ContextVar("broken", default=False)


_NO_ANSWERS: Final = ("Zzyzx",)


class Dead:
    """A source that was there when the run began, and is gone."""

    async def search(self, request: SearchRequest) -> SearchResult:
        raise SourceError("connection refused", kind="upstream")


class Dying:
    """The questions of a recipe, whose sources die before a step."""

    def __init__(self, small: RlRecipe, *, dead_from: int) -> None:
        self._tasks = tasks_of(small)
        self._dead_from = dead_from

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        asks = self._tasks.draw(step, attempt, number)
        if step < self._dead_from:
            return asks
        return [Ask(a.question, a.task, a.protocol, dict.fromkeys(a.sources, Dead()), a.world) for a in asks]

    def held_out(self) -> list[Ask]:
        return []


class Hopeless:
    """The questions of a recipe, some of which no policy can answer: rollouts that try get the same reward."""

    def __init__(self, small: RlRecipe, *, hopeless: Callable[[int, int], bool]) -> None:
        """Take note of whether those of an attempt of a step (both from 0) are hopeless."""
        self._tasks = tasks_of(small)
        self._hopeless = hopeless

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        asks = self._tasks.draw(step, attempt, number)
        if not self._hopeless(step, attempt):
            return asks
        return [replace(ask, task=replace(ask.task, answers=_NO_ANSWERS, options=())) for ask in asks]

    def held_out(self) -> list[Ask]:
        return []


class Lucky(OutcomeReward):
    """Has a policy of random weights be right and well-formed by chance, by the number of letters that it writes.

    No answer to a hopeless question is right.
    """

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        written = sum(len(one.text) for one in rollout.trace.segments if one.by == "policy")
        right = task.answers != _NO_ANSWERS and written % 2 == 0
        return {"answer": float(right), "format": self.settings.format_bonus * (written % 3 == 0)}

    @classmethod
    def of(cls, reward: Reward[Any]) -> Self:
        """In the place of a recipe's outcome."""
        return cls(reward.settings, reward.tools)


class _Flaky:
    """A source that fails for some rollouts, and for those always."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def search(self, request: SearchRequest) -> SearchResult:
        if _BROKEN.get():
            raise SourceError("connection refused", kind="upstream")
        return await self._source.search(request)


@dataclass(frozen=True)
class _Unlucky(RolloutWorker):
    """Breaks some rollouts, by their seeds."""

    broken: frozenset[int] = frozenset()

    async def _run_one(self, ask: Ask, group: int, seed: int, reward: Reward[Any], progress: float) -> RolloutResult:
        token = _BROKEN.set(seed in self.broken)
        try:
            return await super()._run_one(ask, group, seed, reward, progress)
        finally:
            _BROKEN.reset(token)


def rollouts_twice(small: RlRecipe, model: Any) -> tuple[list[RolloutResult], list[RolloutResult]]:
    """The rollouts of a recipe's first batch with sources that are well, and with every fifth one's failing."""
    number, group = small.rollout.prompts, small.rollout.group
    asks = [
        Ask(a.question, a.task, a.protocol, {n: _Flaky(s) for n, s in a.sources.items()})
        for a in tasks_of(small).draw(0, 0, number)
    ]
    seeds = seeds_of(1, step=0, attempt=0, asks=number, group=group)
    live = EmbeddedLive(Path(small.start), workers=1)
    policy = live.refresh(model)

    async def run(ill: Sequence[int]) -> list[RolloutResult]:
        worker = _Unlucky(policy, small.rollout.budgets, Sampling(temperature=1.0), len(seeds), frozenset(ill))
        return await worker.run(asks, group=group, reward=reward_of("outcome"), seeds=seeds)

    try:
        return asyncio.run(run(())), asyncio.run(run(seeds[::5]))
    finally:
        live.close()


def fallen(well: Sequence[RolloutResult], ill: Sequence[RolloutResult]) -> set[int]:
    """The places of rollouts that were masked: those of every fifth that searched, and no others."""
    searched = {at for at, one in enumerate(well) if one.trace.usage.searches}
    masked = {at for at, one in enumerate(ill) if one.rewarded is None}
    assert masked == searched & set(range(0, len(well), 5))
    assert masked
    return masked


@contextmanager
def full_disk_from(full: int, *, most: int = 100_000) -> Generator[Any]:
    """A listener that fills the disk when a step has ended, before the step's state is saved."""
    with ExitStack() as held:

        def on_step(step: int, _: Mapping[str, float]) -> None:
            if step == full:
                held.enter_context(full_disk(most))

        yield on_step
