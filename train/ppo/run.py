"""One PPO run in one folder: rollouts as in `train.rl`, the learner, what is watched, and what is left at the end.

The folder holds `states/` to resume from, `monitors.jsonl` and `tensorboard/`, `manifest.json`, `traces.jsonl` (some
rollouts of every step), and at the end `hub/` with the model. One process, one device.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.policies.base import Sampling
from agent.world import WORLD_SOURCES
from train.interrupt import interruptible
from train.ppo.learner import Figures, Learner
from train.ppo.models import load_models, save_hub
from train.ppo.recipe import PpoRecipe
from train.ppo.rows import rows_of
from train.ppo.states import load_state, newest_state, save_state, step_of
from train.rewards.base import Reward
from train.rewards.registry import reward_of
from train.rl.batch import scored
from train.rl.live import live_of
from train.rl.rollouts import Played, Table, seeds_of
from train.rl.tasks import Ask, Tasks, tasks_of
from train.rl.tools import tools_of
from train.safety.canary import Canary, world_probes
from train.safety.figures import Watched
from train.safety.manifest import hash_of, kept_manifest
from train.safety.monitors import Monitors

if TYPE_CHECKING:
    from train.rl.live import Live

TRACES: Final = "traces.jsonl"

Tell = Callable[[int, Mapping[str, float]], None]
"""Is told of each step with its figures."""


class PpoRun:
    """One run. `go` it once."""

    def __init__(
        self,
        recipe: PpoRecipe,
        out: Path,
        *,
        threads: int = 0,
        tasks: Tasks | None = None,
        live: "Live | None" = None,
    ) -> None:
        """Take note of a run; nothing is loaded yet.

        Args:
            recipe: of the run.
            out: its folder.
            threads: for the engine on a CPU; 0: what torch takes.
            tasks: in the place of the recipe's questions.
            live: in the place of the recipe's engine.

        Raises:
            SetupError: an engine that takes its weights from TRL's trainer.
        """
        if recipe.rollout.engine == "vllm-server":
            raise SetupError("PPO cannot hand weights to a vLLM server: use the engine 'vllm', in this process")
        self.recipe = recipe
        self.out = out
        self._threads = threads
        self._tasks = tasks
        self._live = live
        self._figures: Figures = {}

    def go(self, tell: Tell, *, resume: bool = False) -> bool:
        """Train to the end; False where it was interrupted (its state is saved then).

        Args:
            tell: hears of every step.
            resume: go on from the newest state.

        Raises:
            SetupError: something cannot be used, the run stopped itself, or there is nothing to resume.
        """
        recipe, state = self.recipe, newest_state(self.out)
        if (state is not None) != resume:
            raise SetupError(
                f"there is nothing to resume in {self.out}: start without --resume"
                if resume
                else f"{self.out} holds a run already: add --resume to go on with it, or name another --out"
            )
        done = step_of(state) if state else 0
        with ExitStack() as stack:
            manifest = stack.enter_context(self._manifest())
            self._runner = stack.enter_context(asyncio.Runner())
            self._monitors = stack.enter_context(Monitors(self.out, recipe.safety.all_rules, after=done))
            interrupted = stack.enter_context(interruptible())
            _cut(self.out / TRACES, after=done)
            self._asked = self._tasks or tasks_of(recipe)
            tools = stack.enter_context(tools_of(recipe, self.out, runner=self._runner))
            self._rewards = [reward_of(stage.name, stage.made, tools=tools) for stage in recipe.reward]
            models = load_models(recipe)
            self._learner = Learner(models.policy, models.critic, models.reference, recipe)
            if state:
                self._load(state)
            self._engine = self._live or live_of(recipe, threads=self._threads)
            stack.callback(self._engine.close)
            done = self._steps(done, tell, interrupted)
            manifest.figures = {"steps": float(done), **self._figures}
            if done < recipe.steps:
                manifest.interrupted()
                return False
            self._finish()
        return True

    def _steps(self, done: int, tell: Tell, interrupted: Callable[[], bool]) -> int:
        """Every step that is left; gives how many are done in the end."""
        while done < self.recipe.steps:
            figures = self._step(done)
            done += 1
            self._figures = self._monitors.ended(done, figures)
            tell(done, self._figures)
            last = interrupted() or done == self.recipe.steps
            if last or done % self.recipe.report.save_every_steps == 0:
                self._save(done)
            if last:
                break
        return done

    def _step(self, step: int) -> Figures:
        """Play the rollouts of a step (from 0), and learn from them."""
        rollout, progress = self.recipe.rollout, step / self.recipe.steps
        laps = [time.perf_counter()]
        policy = self._engine.refresh(self._learner.policy)
        sampling = Sampling(temperature=rollout.temperature, top_p=rollout.top_p)
        table = Table(policy, rollout.budgets, sampling, rollout.concurrency)
        laps.append(time.perf_counter())
        every = self.recipe.report.evaluate_every_steps
        dev = self._evaluated(table, step) if every and step % every == 0 else {}
        laps.append(time.perf_counter())
        played = self._runner.run(self._played(table, step, progress))
        laps.append(time.perf_counter())
        worth = [scored(one, self.recipe.learning) for one in played]
        weights = self.recipe.reward[self.recipe.reward_stage(progress)].weights
        totals = [
            None if one.parts is None else sum(weights.get(name, 1.0) * value for name, value in one.parts.items())
            for one in worth
        ]
        device = next(self._learner.policy.parameters()).device
        rows = rows_of([one.samples for one in played], totals, device=device)
        told = self._learner.learn(rows, progress=progress, seed=self.recipe.seed * 1_000_003 + step)
        laps.append(time.perf_counter())
        spent = (later - earlier for earlier, later in pairwise(laps))
        seconds = dict(zip(("refresh", "dev", "rollouts", "update"), spent, strict=True))
        return {**told, **dev, **{f"seconds_{name}": value for name, value in seconds.items()}, "rows": len(rows)}

    async def _played(self, table: Table, step: int, progress: float) -> list[Played]:
        """A step's rollouts, watched before anything is learned from them."""
        recipe = self.recipe
        asks = self._asked.draw(step, 0, recipe.rollout.prompts)
        await self._canary(asks, step)
        seeds = seeds_of(recipe.seed, step=step, attempt=0, asks=len(asks), group=recipe.rollout.group)
        reward: Reward[Any] = self._rewards[recipe.reward_stage(progress)]
        played = await table.play(asks, group=recipe.rollout.group, reward=reward, progress=progress, seeds=seeds)
        self._monitors.saw(step + 1, [Watched.of(one.trace, one.rewarded) for one in played])
        with (self.out / TRACES).open("a", encoding="utf-8") as lines:
            for one in played[: recipe.report.traces]:
                lines.write(f'{{"step": {step + 1}, "trace": {one.trace.model_dump_json()}}}\n')
        return played

    async def _canary(self, asks: Sequence[Ask], step: int) -> None:
        """Ask the sources of these questions for what they are known to hold."""
        safety = self.recipe.safety
        for ask in {id(ask.sources): ask for ask in asks}.values():
            probes = safety.canary or (world_probes(ask.world, list(WORLD_SOURCES)) if ask.world else ())
            canary = Canary(probes, every_steps=safety.canary_every_steps, seconds=safety.canary_seconds)
            if canary.is_due(step + 1):
                await canary.check(ask.sources, when=f"before step {step + 1}")

    def _evaluated(self, table: Table, step: int) -> Figures:
        """EM on the held-out questions, greedily, with the weights before this step."""
        asks = self._asked.held_out()
        if not asks:
            return {}
        greedy = Table(table.policy, table.budgets, Sampling(), table.concurrency)
        exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
        seeds = seeds_of(self.recipe.seed, step=step, attempt=-1, asks=len(asks), group=1)
        played = self._runner.run(greedy.play(asks, group=1, reward=exact, seeds=seeds))
        right = [one.rewarded.total for one in played if one.rewarded is not None]
        return {"dev_em": sum(right) / len(right), "dev_n": float(len(right))} if right else {}

    def _manifest(self) -> Any:
        questions, start = self.recipe.data.questions, Path(self.recipe.start)
        return kept_manifest(
            self.out,
            recipe=self.recipe,
            seeds={"recipe": self.recipe.seed},
            data={questions.name: hash_of(questions)} if questions is not None and questions.exists() else {},
            start=start if start.is_dir() else None,
        )

    def _save(self, done: int) -> None:
        kept = {"policy": self._learner.policy.state_dict(), "learner": self._learner.state()}
        said = {"recipe": self.recipe.model_dump_json()}
        save_state(self.out, done, {**kept, **said}, keep=self.recipe.report.keep)

    def _load(self, path: Path) -> None:
        kept = load_state(path, device=next(self._learner.policy.parameters()).device)
        if kept["recipe"] != self.recipe.model_dump_json():
            raise SetupError(f"{path} was made by another recipe: use that one, or another --out")
        self._learner.policy.load_state_dict(kept["policy"])
        self._learner.load(kept["learner"])

    def _finish(self) -> None:
        from train.rl.finish import card, figures_in  # TRL comes with it

        save_hub(self._learner.policy, self.recipe, self.out, card=card(self.recipe, figures_in(self.out)))


def _cut(path: Path, *, after: int) -> None:
    """Take back the traces of steps that are done again."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and _step_of(line) <= after]
        path.write_text("".join(kept), encoding="utf-8")


def _step_of(line: str) -> int:
    return int(line.removeprefix('{"step": ').partition(",")[0])
