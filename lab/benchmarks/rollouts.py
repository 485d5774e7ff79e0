"""Times the rollout phase of a recipe: ours beside plain generation with serial searches, and a whole step of a run."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers

from agent.loop.budgets import Budgets
from agent.policies.base import Policy, Sampling
from agent.policies.hub_form import open_hub_form
from lab.benchmarks.engines import PATIENT
from lab.benchmarks.plain_rollouts import PlainPolicy, Serial
from train.models.pretrained import in_hub_form, start_folder
from train.rewards.base import Reward
from train.rewards.registry import reward_of
from train.rl.live import live_of
from train.rl.recipe import RlRecipe
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of
from train.rl.run import RlRun
from train.rl.tasks import Ask, tasks_of


@dataclass(frozen=True)
class Phase:
    """One way through the same batch."""

    way: str
    search_ms: float
    seconds: float
    rollouts: int
    policy_tokens: int
    searches: int
    searching: float
    """Seconds of all searches together; those of ours overlap, and overlap generation."""
    reward: float


def phases(recipe: RlRecipe, *, search_ms: Sequence[float], threads: int = 0, times: int = 1) -> list[Phase]:
    """Run the first batch of a recipe in both ways by turns, with searches that take a set time.

    Args:
        recipe: its start, questions and limits; of a start that is an adapter, both ways run the merged model.
        search_ms: what a search takes beside its own time.
        threads: of our engine; 0: what torch takes.
        times: runs of each way; the figures are those of the batch with the median time.
    """
    with in_hub_form(start_folder(recipe.start)) as folder:
        whole = recipe.model_copy(update={"start": str(folder)})
        return _phases(whole, search_ms=search_ms, threads=threads, times=times)


def _phases(recipe: RlRecipe, *, search_ms: Sequence[float], threads: int, times: int) -> list[Phase]:
    hub = open_hub_form(recipe.start)
    auto = transformers.AutoModelForCausalLM
    model: Any = auto.from_pretrained(
        hub.folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    ).eval()
    live = live_of(recipe, threads=threads)
    asks = tasks_of(recipe).draw(0, 0, recipe.rollout.prompts)
    made: list[Phase] = []
    try:
        for wait in search_ms:
            ours: list[Phase] = []
            plain: list[Phase] = []
            for _ in range(times):
                began = time.perf_counter()
                policy = live.refresh(model)  # its cost belongs to our phase
                refreshed = time.perf_counter() - began
                ours.append(_phase("ours", wait, asyncio.run(_ours(recipe, policy, asks, wait / 1000)), refreshed))
                plain.append(_phase("plain", wait, asyncio.run(_plain(recipe, model, asks, wait / 1000)), 0.0))
            made += [_middle(ours), _middle(plain)]
    finally:
        live.close()
    return made


@dataclass(frozen=True)
class Step:
    """Where the seconds of a whole step went."""

    parts: Mapping[str, float]
    searching: float
    """Seconds of all its searches together, which overlap each other and generation; they lie within the rollouts'."""


def whole_step(recipe: RlRecipe, *, threads: int = 0) -> Step:
    """The last of a few whole steps."""
    steps: list[Mapping[str, float]] = []
    few = recipe.model_copy(update={"steps": 3, "report": recipe.report.model_copy(update={"evaluate_every_steps": 0})})
    with TemporaryDirectory() as folder:
        RlRun(few, Path(folder) / "run", threads=threads).go(lambda _, figures: steps.append(figures))
    prefix = "trainer/seconds_"
    parts = {name.removeprefix(prefix): value for name, value in steps[-1].items() if name.startswith(prefix)}
    return Step(parts, steps[-1].get("search/seconds", 0.0))


Timed = tuple[float, list[RolloutResult], list[float]]
"""Seconds of all, the rollouts, and the seconds of each search."""


async def _ours(recipe: RlRecipe, policy: Policy, asks: Sequence[Ask], seconds: float) -> Timed:
    worker = RolloutWorker(policy, _patient(recipe), Sampling(temperature=1.0), recipe.rollout.concurrency)
    return await _timed(recipe, worker, asks, seconds, None)


async def _plain(recipe: RlRecipe, model: Any, asks: Sequence[Ask], seconds: float) -> Timed:
    policy = PlainPolicy(model, open_hub_form(recipe.start))
    policy.rollouts = len(asks) * recipe.rollout.group
    worker = _Leaving(policy, _patient(recipe), Sampling(temperature=1.0), policy.rollouts)
    return await _timed(recipe, worker, asks, seconds, asyncio.Lock())


def _patient(recipe: RlRecipe) -> Budgets:
    """Neither way may end a rollout sooner because it makes it wait."""
    return replace(
        recipe.rollout.budgets,
        seconds=PATIENT.seconds,
        search_seconds=PATIENT.search_seconds,
        answer_seconds=PATIENT.answer_seconds,
    )


class _Leaving(RolloutWorker):
    """Signals every rollout that has ended to a plain policy."""

    async def _run_one(self, ask: Ask, group: int, seed: int, reward: Reward[Any], progress: float) -> RolloutResult:
        try:
            return await super()._run_one(ask, group, seed, reward, progress)
        finally:
            assert isinstance(self.policy, PlainPolicy)
            self.policy.leave()


async def _timed(
    recipe: RlRecipe, worker: RolloutWorker, asks: Sequence[Ask], seconds: float, lock: asyncio.Lock | None
) -> Timed:
    spent: list[float] = []
    slowed = _slowed(asks, seconds, lock, spent)
    began = time.perf_counter()
    results = await _all(recipe, worker, slowed)
    return time.perf_counter() - began, results, spent


async def _all(recipe: RlRecipe, worker: RolloutWorker, asks: Sequence[Ask]) -> list[RolloutResult]:
    group = recipe.rollout.group
    seeds = seeds_of(recipe.seed, step=0, attempt=0, asks=len(asks), group=group)
    return await worker.run(asks, group=group, reward=reward_of("outcome"), seeds=seeds)


def _slowed(asks: Sequence[Ask], seconds: float, lock: asyncio.Lock | None, spent: list[float]) -> list[Ask]:
    return [
        replace(ask, sources={name: Serial(source, lock, seconds, spent) for name, source in ask.sources.items()})
        for ask in asks
    ]


def _middle(phases: Sequence[Phase]) -> Phase:
    return sorted(phases, key=lambda phase: phase.seconds)[len(phases) // 2]


def _phase(way: str, wait: float, timed: Timed, before: float) -> Phase:
    seconds, results, spent = timed
    scored = [one.rewarded.total for one in results if one.rewarded is not None]
    return Phase(
        way=way,
        search_ms=wait,
        seconds=seconds + before,
        rollouts=len(results),
        policy_tokens=sum(one.trace.usage.policy_tokens for one in results),
        searches=sum(one.trace.usage.searches for one in results),
        searching=sum(spent),
        reward=sum(scored) / max(1, len(scored)),
    )
