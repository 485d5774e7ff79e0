"""One RL run in one folder: rollouts, rewards, lessons, what is watched, and what is left at the end.

The folder holds `states/` to resume from, `monitors.jsonl` and `tensorboard/`, `manifest.json`, `traces.jsonl` (some
rollouts of every step), and at the end `hub/` with the model.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.policies.base import Sampling
from agent.trace import Trace
from agent.world import WORLD_SOURCES
from train.interrupt import interruptible
from train.rewards.base import Reward, Tools
from train.rewards.registry import reward_of
from train.rl.adapter import Figures, Lesson, RlTrainer, everyone, newest_state, place, updates_of
from train.rl.batch import LENGTH, Scored, advantages, rows_of, scored, split, worth_learning
from train.rl.finish import save_hub
from train.rl.live import live_of
from train.rl.live_vllm import ServerLive
from train.rl.recipe import RlRecipe
from train.rl.rollouts import Played, Table, seeds_of
from train.rl.tasks import Ask, Tasks, tasks_of
from train.rl.tools import tools_of
from train.safety.canary import Canary, world_probes
from train.safety.figures import Watched
from train.safety.manifest import Manifest, hash_of, kept_manifest
from train.safety.monitors import Monitors

if TYPE_CHECKING:
    from train.rl.live import Live

TRACES: Final = "traces.jsonl"

Tell = Callable[[int, Mapping[str, float]], None]
"""Is told of each step with its figures."""


@dataclass
class Clock:
    """Seconds of a step by what they went into."""

    spent: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        """What went by since the last lap was for this."""
        now = time.perf_counter()
        self.spent[name] = self.spent.get(name, 0.0) + now - self._at
        self._at = now


class RlRun:
    """One run. `go` it once."""

    def __init__(
        self, recipe: RlRecipe, out: Path, *, threads: int = 0, tasks: Tasks | None = None, live: "Live | None" = None
    ) -> None:
        """Take note of a run; nothing is loaded yet.

        Args:
            recipe: of the run.
            out: its folder.
            threads: for the engine on a CPU; 0: what torch takes.
            tasks: in the place of the recipe's questions.
            live: in the place of the recipe's engine.
        """
        self.recipe = recipe
        self.out = out
        self._threads = threads
        self._tasks = tasks
        self._given_live = live
        self._rewards: list[Reward[Any]] = []
        self._clock = Clock()
        self._figures: Figures = {}
        self._interrupted: Callable[[], bool] = lambda: False
        self.done = False

    @property
    def interrupted(self) -> bool:
        return self._interrupted()

    def go(self, tell: Tell, *, resume: bool = False) -> bool:
        """Train to the end; False where it was interrupted (its state is saved then).

        Args:
            tell: hears of every step.
            resume: go on from the newest state.

        Raises:
            SetupError: something cannot be used, the run stopped itself, or there is nothing to resume.
        """
        recipe = self.recipe
        state = newest_state(self.out)
        if state is not None and not resume:
            raise SetupError(f"{self.out} holds a run already: add --resume to go on with it, or name another --out")
        after = updates_of(state) // recipe.updates_per_step if state and resume else 0
        self.out.mkdir(parents=True, exist_ok=True)
        self._rank, self._ranks = place()
        if recipe.rollout.prompts % self._ranks:
            raise SetupError(
                f"{recipe.rollout.prompts} prompts cannot be shared by {self._ranks} processes: make `prompts` a "
                "multiple of them"
            )
        self._tell = tell
        with ExitStack() as stack:
            if self._rank == 0:
                self._manifest = stack.enter_context(self._kept())
            self._runner = stack.enter_context(asyncio.Runner())
            if self._rank == 0:
                self._monitors = stack.enter_context(Monitors(self.out, recipe.safety.all_rules, after=after))
                self._cut_traces(after)
            self._interrupted = stack.enter_context(interruptible())
            self._tasks = self._tasks or tasks_of(recipe)
            self._rewards = self._made_rewards(stack.enter_context(tools_of(recipe, self.out, runner=self._runner)))
            self._live = self._given_live or live_of(recipe, threads=self._threads)
            stack.callback(self._live.close)
            trainer = RlTrainer(recipe, self.out, self)
            if isinstance(self._live, ServerLive):
                self._live.hand_over = trainer.vllm_generation.sync_weights
            trainer.go(resume)
            self.done = trainer.step >= recipe.steps
            if self._rank == 0:
                self._end(trainer)
        return self.done

    def lesson(self, step: int, model: Any) -> Lesson:
        """Play a step's rollouts; see `train.rl.adapter.School`."""
        self._clock = Clock()
        recipe, progress = self.recipe, step / self.recipe.steps
        policy = self._live.refresh(model)
        self._clock.lap("refresh")
        rollout = recipe.rollout
        sampling = Sampling(temperature=rollout.temperature, top_p=rollout.top_p)
        table = Table(policy, rollout.budgets, sampling, rollout.concurrency)
        dev = self._evaluated(table, step) if self._is_evaluated(step) else {}
        self._dev = dev
        self._clock.lap("dev")
        stage = recipe.reward_stage(progress)
        weights = recipe.reward[stage].weights
        played, worth = self._runner.run(self._played(table, self._rewards[stage], step, weights))
        self._clock.lap("rollouts")
        gains = advantages(everyone(worth), recipe.learning, weights)
        first = self._before(len(worth))
        mine = gains[first : first + len(worth)].tolist()
        kl = recipe.learning.kl_weight(progress) > 0
        rows, whole = rows_of(played, worth, mine, level=recipe.learning.level, all_rows=kl)
        self._dev["rows"] = float(len(rows))
        pieces = split(rows, minibatches=recipe.optimizer.minibatches, pieces=recipe.optimizer.pieces)
        return Lesson(pieces, sum(everyone([whole])), self._live.exact)

    def learned(self, step: int, figures: Figures) -> None:
        """Write a step down; see `train.rl.adapter.School`."""
        self._clock.lap("update")
        seconds = {f"seconds_{name}": spent for name, spent in self._clock.spent.items()}
        if self._rank == 0:
            self._figures = self._monitors.ended(step, {**figures, **seconds, **self._dev})
            self._tell(step, self._figures)

    async def _played(
        self, table: Table, reward: Reward[Any], step: int, weights: Mapping[str, float]
    ) -> tuple[list[Played], list[Scored]]:
        """The rollouts of a step that are learned from, with what they are worth; in dynamic sampling only of groups
        that teach something.
        """  # noqa: D205 - one sentence over two lines
        recipe, learning = self.recipe, self.recipe.learning
        wanted = recipe.rollout.prompts // self._ranks
        kept: list[Played] = []
        worth: list[Scored] = []
        for attempt in range(1 + learning.attempts):
            missing = max(everyone([wanted - len(kept) // recipe.rollout.group]))  # all processes go on together
            if missing <= 0:
                break
            asks = self._drawn(step, attempt, missing)
            await self._canary(asks, step)
            new = await self._batch(table, reward, asks, step, attempt)
            self._watch(step, new)
            there = [scored(one, learning) for one in new]
            keep = worth_learning(there, learning, weights) if learning.attempts else [True] * len(new)
            groups = {one.group for one, good in zip(new, keep, strict=True) if good}
            kept += [one for one in new if one.group in groups]
            worth += [one for one in there if one.group in groups]
        return kept, worth

    async def _batch(
        self, table: Table, reward: Reward[Any], asks: Sequence[Ask], step: int, attempt: int
    ) -> list[Played]:
        rollout = self.recipe.rollout
        seeds = seeds_of(
            self.recipe.seed, step=step, attempt=attempt, asks=len(asks), group=rollout.group, rank=self._rank
        )
        first = (attempt * self._ranks + self._rank) * rollout.prompts
        return await table.play(
            asks, group=rollout.group, reward=reward, progress=step / self.recipe.steps, seeds=seeds, first=first
        )

    def _drawn(self, step: int, attempt: int, missing: int) -> list[Ask]:
        """This process's share of the step's questions."""
        assert self._tasks is not None
        drawn = self._tasks.draw(step, attempt, missing * self._ranks)
        return drawn[self._rank * missing : (self._rank + 1) * missing]

    async def _canary(self, asks: Sequence[Ask], step: int) -> None:
        """Ask the sources of these questions for what they are known to hold."""
        safety = self.recipe.safety
        asked: set[int] = set()
        for ask in asks:
            if id(ask.sources) in asked:
                continue
            asked.add(id(ask.sources))
            probes = safety.canary or (world_probes(ask.world, list(WORLD_SOURCES)) if ask.world else ())
            canary = Canary(probes, every_steps=safety.canary_every_steps, seconds=safety.canary_seconds)
            if canary.is_due(step + 1):
                await canary.check(ask.sources, when=f"before step {step + 1}")

    def _watch(self, step: int, new: Sequence[Played]) -> None:
        """Tell the monitors of all processes' rollouts, and keep some of the traces."""
        watched: list[Watched] = everyone([Watched.of(one.trace, one.rewarded) for one in new])
        if self._rank == 0:
            self._monitors.saw(step + 1, watched)
            with (self.out / TRACES).open("a", encoding="utf-8") as lines:
                for one in new[: self.recipe.report.traces]:
                    lines.write(_line(step + 1, one.trace))

    def _is_evaluated(self, step: int) -> bool:
        every = self.recipe.report.evaluate_every_steps
        return bool(every) and step % every == 0 and self._rank == 0

    def _evaluated(self, table: Table, step: int) -> Figures:
        """EM and mean F1 on the held-out questions, greedily, with the weights before this step."""
        assert self._tasks is not None
        asks = self._tasks.held_out()
        if not asks:
            return {}
        greedy = Table(table.policy, table.budgets, Sampling(), table.concurrency)
        exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
        seeds = seeds_of(self.recipe.seed, step=step, attempt=-1, asks=len(asks), group=1)
        played = self._runner.run(greedy.play(asks, group=1, reward=exact, seeds=seeds))
        right = [one.rewarded.total for one in played if one.rewarded is not None]
        return {"dev_em": sum(right) / len(right), "dev_n": float(len(right))} if right else {}

    def _before(self, mine: int) -> int:
        """Rollouts of the processes before this one."""
        return sum(everyone([mine])[: self._rank])

    def _data(self) -> dict[str, str]:
        path = self.recipe.data.questions
        return {path.name: hash_of(path)} if path is not None and path.exists() else {}

    def _cut_traces(self, after: int) -> None:
        """Take back the traces of steps that are done again."""
        path = self.out / TRACES
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and _step_of(line) <= after]
            path.write_text("".join(kept), encoding="utf-8")

    def _kept(self) -> AbstractContextManager[Manifest]:
        """The manifest, from the beginning of this sitting to its end."""
        start = Path(self.recipe.start)
        return kept_manifest(
            self.out,
            recipe=self.recipe,
            seeds={"recipe": self.recipe.seed},
            data=self._data(),
            start=start if start.is_dir() else None,
        )

    def _made_rewards(self, tools: Tools) -> list[Reward[Any]]:
        """The reward of each stage.

        Raises:
            SetupError: a tool is missing, or a weight is of no part of its reward.
        """
        rewards = [reward_of(stage.name, stage.made, tools=tools) for stage in self.recipe.reward]
        for stage, reward in zip(self.recipe.reward, rewards, strict=True):
            if unknown := set(stage.weights) - {*reward.parts, LENGTH}:
                has = ", ".join((*reward.parts, LENGTH))
                raise SetupError(f"the reward {stage.name!r} has no part {', '.join(sorted(unknown))}; it has {has}")
        return rewards

    def _end(self, trainer: RlTrainer) -> None:
        """What the first process does when the training has ended."""
        self._manifest.figures = {"steps": float(trainer.step), **self._figures}
        state = newest_state(self.out)
        if self.done and state is not None:
            save_hub(state, self.recipe, self.out)
        else:
            self._manifest.interrupted()


def _line(step: int, trace: Trace) -> str:
    return f'{{"step": {step}, "trace": {trace.model_dump_json()}}}\n'


def _step_of(line: str) -> int:
    return int(line.removeprefix('{"step": ').partition(",")[0])
