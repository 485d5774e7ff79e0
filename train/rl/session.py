"""One sitting of a run in its folder, from its beginning to its end: what `cairn train rl` and `ppo` have in common.

RunManifest, monitors, traces, questions, rewards with what they ask, the probes, dev questions. How anything is learned
from the rollouts is theirs.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.files.foreign import no_link, open_file
from agent.trace import Trace
from agent.world import WORLD_SOURCES
from train.common.interrupt import interruptible
from train.common.saving import as_a_whole
from train.rewards.base import Reward, RewardTools
from train.rewards.registry import reward_of
from train.rl.batch import LENGTH, Scored, totals
from train.rl.recipe import RlRecipe
from train.rl.rollouts import Played, Table, seeds_of
from train.rl.tasks import Ask, Tasks, tasks_of
from train.rl.tools import tools_of
from train.safety.figures import Figures, Watched
from train.safety.manifest import RunManifest, hash_of, kept_manifest
from train.safety.monitors import Monitors
from train.safety.probes import RetrieverProbes, world_probes

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TRACES: Final = "traces.jsonl"

Tell = Callable[[int, Mapping[str, float]], None]
"""Is told of each step with its figures."""
Gather = Callable[[list[Any]], list[Any]]
"""From the list of this process to those of all, one behind the other."""


@dataclass
class Sitting:
    """What is open while a run goes. Steps count from 0 here; what is written counts them from 1."""

    recipe: RlRecipe
    out: Path
    runner: asyncio.Runner
    """Of the one event loop in which rollouts are played and tools are asked."""
    tasks: Tasks
    rewards: Sequence[Reward[Any]]
    """Of each stage."""
    interrupted: Callable[[], bool]
    gather: Gather
    written: "Written | None"
    """None in a process that does not write."""
    figures: Figures = field(default_factory=dict[str, float])
    """Of the last step."""

    async def ask_canary(self, asks: Sequence[Ask], step: int) -> None:
        """Ask the sources of these questions for what they are known to hold.

        Raises:
            RetrieverDead: one of them does not find it.
        """
        safety = self.recipe.safety
        for ask in {id(ask.sources): ask for ask in asks}.values():
            probes = safety.probes or (world_probes(ask.world, list(WORLD_SOURCES)) if ask.world else ())
            retriever = RetrieverProbes(probes, every_steps=safety.probe_every_steps, seconds=safety.probe_seconds)
            if retriever.is_due(step + 1):
                await retriever.check(ask.sources, when=f"before step {step + 1}")

    def watch(self, step: int, played: Sequence[Played], worth: Sequence[Scored], weights: Mapping[str, float]) -> None:
        """Tell the monitors of all processes' rollouts, and keep some of the traces.

        Args:
            step: from 0.
            played: rollouts.
            worth: what each is worth.
            weights: of the parts of the reward.

        Raises:
            Collapsed: a rule about rollouts is broken.
            SetupError: the traces cannot be written, because the disk is full or otherwise.
        """
        told = zip(played, worth, totals(worth, weights), strict=True)
        watched: list[Watched] = self.gather(
            [
                Watched(one.trace, value.parts, total or 0.0, too_long=value.parts is None and one.rewarded is not None)
                for one, value, total in told
            ]
        )
        if self.written:
            self.written.monitors.saw(step + 1, watched)
            self._keep(step + 1, [one.trace for one in played[: self.recipe.report.traces]])

    def _keep(self, step: int, traces: Sequence[Trace]) -> None:
        path = self.out / TRACES
        try:
            with open(path, "a", encoding="utf-8", opener=no_link) as lines:
                lines.writelines(_line(step, trace) for trace in traces)
        except OSError as error:
            raise SetupError(
                f"{path} cannot be written ({error}): make room there, then go on with --resume"
            ) from error

    def dev(self, table: Table, step: int) -> Figures:
        """EM on the held-out questions, greedily, with the weights before this step; nothing where it is not due."""
        every = self.recipe.report.evaluate_every_steps
        asks = self.tasks.held_out() if self.written and every and step % every == 0 else []
        if not asks:
            return {}
        exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
        seeds = seeds_of(self.recipe.seed, step=step, attempt=-1, asks=len(asks), group=1)
        played = self.runner.run(table.greedy.play(asks, group=1, reward=exact, seeds=seeds))
        right = [one.rewarded.total for one in played if one.rewarded is not None]
        return {"dev_em": sum(right) / len(right), "dev_n": float(len(right))} if right else {}

    def ended(self, done: int, figures: Figures, tell: Tell) -> None:
        """Write down what the trainer tells of a step.

        Args:
            done: steps that are done with it.
            figures: the trainer's own.
            tell: hears of all of them.

        Raises:
            Collapsed: a rule about them is broken.
        """
        if self.written:
            self.figures = self.written.monitors.ended(done, figures)
            tell(done, self.figures)

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
class Written:
    """What one process of a run writes."""

    manifest: RunManifest
    monitors: Monitors


@contextmanager
def sitting(
    recipe: RlRecipe,
    out: Path,
    *,
    after: int,
    tasks: Tasks | None = None,
    writes: bool = True,
    gather: Gather = list,
) -> Iterator[Sitting]:
    """Sit down to a run.

    Args:
        recipe: of the run.
        out: its folder.
        after: steps that are done; what the files say of later ones is taken back.
        tasks: in the place of the recipe's questions.
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
            _cut(out / TRACES, after=after)
            written = Written(manifest, monitors)
        interrupted = stack.enter_context(interruptible())
        asked = tasks or tasks_of(recipe)
        tools = stack.enter_context(tools_of(recipe, out, runner=runner))
        yield Sitting(recipe, out, runner, asked, _rewards(recipe, tools), interrupted, gather, written)


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


def _cut(path: Path, *, after: int) -> None:
    """Take back the traces of steps that are done again."""
    if path.exists():
        with open_file(path) as file:
            lines = file.read().split(b"\n")[:-1]  # a text may hold other ends of lines; the last may be cut off
        kept = [line + b"\n" for line in lines if _step_of(line) <= after]
        with as_a_whole(path) as made:
            made.write_bytes(b"".join(kept))


def _line(step: int, trace: Trace) -> str:
    return f'{{"step": {step}, "trace": {trace.model_dump_json()}}}\n'


def _step_of(line: bytes) -> int:
    return int(line.removeprefix(b'{"step": ').partition(b",")[0])
