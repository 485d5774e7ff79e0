"""One session of a run in its folder, from its beginning to its end: what `cairn train rl` and `ppo` have in common.

Manifest, monitors, traces, questions, rewards with their tools, the retriever probes, dev questions. How anything is
learned from the rollouts is theirs.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.trace import Trace
from agent.world import WORLD_SOURCES
from train.common.interrupt import interruptible
from train.common.lines import add_lines, keep_lines
from train.rewards.base import Reward, RewardTools
from train.rewards.registry import reward_of
from train.rl.batch import LENGTH, RolloutReward, totals
from train.rl.recipe import RlRecipe
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of
from train.rl.tasks import Ask, Tasks, tasks_of
from train.rl.tools import tools_of
from train.safety.figures import Figures, Watched
from train.safety.manifest import RunManifest, hash_of, kept_manifest
from train.safety.monitors import Monitors
from train.safety.probes import RetrieverProbes, world_probes

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TRACES: Final = "traces.jsonl"

OnStep = Callable[[int, Mapping[str, float]], None]
"""Takes the number of each step and its figures."""
Gather = Callable[[list[Any]], list[Any]]
"""From the list of this process to those of all, one behind the other."""
Around = Callable[[Reward[Any]], Reward[Any]]
"""From a reward of the recipe to the one that scores in its place."""


@dataclass
class TrainingSession:
    """What is open while a run goes. Steps count from 0 here; what is written counts them from 1."""

    recipe: RlRecipe
    out: Path
    runner: asyncio.Runner
    """Of the one event loop in which rollouts run and tools are called."""
    tasks: Tasks
    rewards: Sequence[Reward[Any]]
    """Of each stage."""
    interrupted: Callable[[], bool]
    gather: Gather
    written: "RunRecords | None"
    """None in a process that does not write."""
    figures: Figures = field(default_factory=dict[str, float])
    """Of the last step."""

    async def probe_sources(self, asks: Sequence[Ask], step: int) -> None:
        """Search the sources of these questions for what they are known to hold.

        Raises:
            RetrieverDead: one of them does not find it.
        """
        safety = self.recipe.safety
        for ask in {id(ask.sources): ask for ask in asks}.values():
            probes = safety.probes or (world_probes(ask.world, list(WORLD_SOURCES)) if ask.world else ())
            retriever = RetrieverProbes(probes, every_steps=safety.probe_every_steps, seconds=safety.probe_seconds)
            if retriever.is_due(step + 1):
                await retriever.check(ask.sources, when=f"before step {step + 1}")

    def watch(
        self,
        step: int,
        results: Sequence[RolloutResult],
        rewards: Sequence[RolloutReward],
        weights: Mapping[str, float],
    ) -> None:
        """Pass the rollouts of all processes to the monitors, and keep some of the traces.

        Args:
            step: from 0.
            results: rollouts.
            rewards: of each.
            weights: of the parts of the reward.

        Raises:
            Collapsed: a rule about rollouts is broken.
            SetupError: the traces cannot be written, because the disk is full or otherwise.
        """
        scored = zip(results, rewards, totals(rewards, weights), strict=True)
        mine = [
            Watched(one.trace, reward.parts, total or 0.0, too_long=reward.parts is None and one.rewarded is not None)
            for one, reward, total in scored
        ]
        watched: list[Watched] = self.gather(mine)
        if self.written:
            self.written.monitors.saw(step + 1, watched)
            self._keep(step + 1, [one.trace for one in results[: self.recipe.report.traces]])

    def _keep(self, step: int, traces: Sequence[Trace]) -> None:
        lines = (f'{{"step": {step}, "trace": {trace.model_dump_json()}}}' for trace in traces)
        add_lines(self.out / TRACES, lines)

    def dev(self, worker: RolloutWorker, step: int) -> Figures:
        """EM on the held-out questions, greedily, with the weights before this step; nothing where it is not due."""
        every = self.recipe.report.evaluate_every_steps
        asks = self.tasks.held_out() if self.written and every and step % every == 0 else []
        if not asks:
            return {}
        exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
        seeds = seeds_of(self.recipe.seed, step=step, attempt=-1, asks=len(asks), group=1)
        results = self.runner.run(worker.greedy.run(asks, group=1, reward=exact, seeds=seeds))
        right = [one.rewarded.total for one in results if one.rewarded is not None]
        return {"dev_em": sum(right) / len(right), "dev_n": float(len(right))} if right else {}

    def ended(self, done: int, figures: Figures, on_step: OnStep) -> None:
        """Write down the trainer's figures of a step.

        Args:
            done: steps that are done with it.
            figures: the trainer's own.
            on_step: takes all of them.

        Raises:
            Collapsed: a rule about them is broken.
        """
        if self.written:
            self.figures = self.written.monitors.ended(done, figures)
            on_step(done, self.figures)

    def table(self) -> "RichTable | None":
        """The last step's figures for a terminal; None in a process that does not write."""
        return self.written.monitors.table() if self.written else None

    def close(self, done: int) -> None:
        """Say in the manifest how far the run came, before its model is written."""
        if self.written:
            self.written.manifest.figures = {"steps": float(done), **self.figures}
            if done < self.recipe.steps:
                self.written.manifest.interrupted()


@dataclass(frozen=True)
class RunRecords:
    """What one process of a run writes."""

    manifest: RunManifest
    monitors: Monitors


@contextmanager
def training_session(
    recipe: RlRecipe,
    out: Path,
    *,
    after: int,
    tasks: Tasks | None = None,
    around: Around | None = None,
    writes: bool = True,
    gather: Gather = list,
) -> Iterator[TrainingSession]:
    """Open a session of a run.

    Args:
        recipe: of the run.
        out: its folder.
        after: steps that are done; what the files say of later ones is taken back.
        tasks: in the place of the recipe's questions.
        around: is put around each reward.
        writes: whether this process keeps the folder.
        gather: of all processes.

    Raises:
        SetupError: something cannot be used, or a weight is of no part of its reward.
    """
    with ExitStack() as stack:
        manifest = stack.enter_context(_manifest(recipe, out)) if writes else None
        runner = stack.enter_context(asyncio.Runner())
        written = None
        if manifest is not None:
            monitors = stack.enter_context(Monitors(out, recipe.safety.all_rules, after=after))
            keep_lines(out / TRACES, after=after)
            written = RunRecords(manifest, monitors)
        interrupted = stack.enter_context(interruptible())
        questions = tasks or tasks_of(recipe)
        tools = stack.enter_context(tools_of(recipe, out, runner=runner))
        rewards = [around(reward) if around else reward for reward in _rewards(recipe, tools)]
        yield TrainingSession(recipe, out, runner, questions, rewards, interrupted, gather, written)


def _manifest(recipe: RlRecipe, out: Path) -> AbstractContextManager[RunManifest]:
    questions, start = recipe.data.questions, Path(recipe.start)
    return kept_manifest(
        out,
        recipe=recipe,
        seeds={"recipe": recipe.seed},
        data={questions.name: hash_of(questions)} if questions is not None and questions.exists() else {},
        start=start if start.is_dir() else None,
    )


def _rewards(recipe: RlRecipe, tools: RewardTools) -> list[Reward[Any]]:
    """The reward of each stage.

    Raises:
        SetupError: a tool is missing, or a weight is of no part of its reward.
    """
    rewards = [reward_of(stage.name, stage.made, tools=tools) for stage in recipe.reward]
    for stage, reward in zip(recipe.reward, rewards, strict=True):
        if unknown := set(stage.weights) - {*reward.parts, LENGTH}:
            has = ", ".join((*reward.parts, LENGTH))
            raise SetupError(f"the reward {stage.name!r} has no part {', '.join(sorted(unknown))}; it has {has}")
    return rewards
