"""One PPO run in one folder: rollouts as in `train.rl`, the learner, what is watched, and what is left at the end.

The folder holds `states/` to resume from, `monitors.jsonl` and `tensorboard/`, `manifest.json`, `traces.jsonl` (some
rollouts of every step), and at the end `hub/` with the model. One process, one device.
"""

import json
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch

from agent.errors import SetupError
from train.common.interrupt import check_folder
from train.common.precision import computes_bf16
from train.common.recipe_files import same_run
from train.common.saving import as_a_whole
from train.models.adapters import bare
from train.models.causal import recompute_layers
from train.models.pretrained import open_pretrained
from train.ppo.learner import Figures, Learner
from train.ppo.recipe import PpoRecipe
from train.ppo.rows import rows_of
from train.ppo.scoring import Critic
from train.rl.batch import rollout_reward, totals
from train.rl.clock import Clock
from train.rl.finish import save_hub
from train.rl.live import live_of
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of
from train.rl.session import Around, OnStep, training_session
from train.rl.tasks import Tasks

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from train.rl.live import Live


STATES: Final = "states"
_PREFIX: Final = "step-"


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
        around: Around | None = None,
    ) -> None:
        """Take note of a run; nothing is loaded yet.

        Args:
            recipe: of the run.
            out: its folder.
            threads: for the engine on a CPU; 0: what torch takes.
            tasks: in the place of the recipe's questions.
            live: in the place of the recipe's engine.
            around: is put around each of its rewards.

        Raises:
            SetupError: an engine that takes its weights from TRL's trainer.
        """
        if recipe.rollout.engine == "vllm-server":
            raise SetupError("PPO cannot hand weights to a vLLM server: use the engine 'vllm', in this process")
        self.recipe = recipe
        self.out = out
        self._threads = threads
        self._tasks = tasks
        self._around = around
        self._live = live

    def table(self) -> "RichTable | None":
        """The last step's figures for a terminal; None in a process that does not write."""
        return self._here.table()

    def go(self, on_step: OnStep, *, resume: bool = False) -> bool:
        """Train to the end; False where it was interrupted (its state is saved then).

        Args:
            on_step: called after every step.
            resume: go on from the newest state.

        Raises:
            SetupError: something cannot be used, the run stopped itself, or there is nothing to resume.
        """
        recipe, state = self.recipe, newest_state(self.out)
        check_folder(self.out, begun=state is not None, resume=resume)
        done = step_of(state) if state else 0
        with training_session(recipe, self.out, after=done, tasks=self._tasks, around=self._around) as self._here:
            models = load_models(recipe)
            self._learner = Learner(models.policy, models.critic, models.reference, recipe, parted=models.parted)
            if state:
                self._load(state)
            self._engine = self._live or live_of(recipe, threads=self._threads)
            with closing(self._engine):
                done = self._steps(done, on_step, self._here.interrupted)
            self._here.close(done)
            if done == recipe.steps:
                save_hub(self._learner.policy, recipe, self.out)
        return done == recipe.steps

    def _steps(self, done: int, on_step: OnStep, interrupted: Callable[[], bool]) -> int:
        """Every step that is left; gives how many are done in the end."""
        while done < self.recipe.steps:
            figures = self._step(done)
            done += 1
            self._here.ended(done, figures, on_step)
            last = interrupted() or done == self.recipe.steps
            if last or done % self.recipe.report.save_every_steps == 0:
                self._save(done)
            if last:
                break
        return done

    def _step(self, step: int) -> Figures:
        """Run the rollouts of a step (from 0), and learn from them."""
        clock, progress = Clock(), step / self.recipe.steps
        policy = self._engine.refresh(self._learner.policy)
        worker = RolloutWorker.of(policy, self.recipe.rollout)
        clock.lap("refresh")
        dev = self._here.dev(worker, step)
        clock.lap("dev")
        weights = self.recipe.reward[self.recipe.reward_stage(progress)].weights
        results = self._here.runner.run(self._rollouts(worker, step, progress))
        self._engine.check()
        rewards = [rollout_reward(one, self.recipe.learning) for one in results]
        self._here.watch(step, results, rewards, weights)  # before anything is learned from them
        clock.lap("rollouts")
        device = next(self._learner.policy.parameters()).device
        rows = rows_of([one.samples for one in results], totals(rewards, weights), device=device)
        learned = self._learner.learn(rows, progress=progress, seed=self.recipe.seed * 1_000_003 + step)
        clock.lap("update")
        return {**learned, **dev, **clock.figures(), "rows": len(rows)}

    async def _rollouts(self, worker: RolloutWorker, step: int, progress: float) -> list[RolloutResult]:
        """A step's rollouts."""
        recipe, group = self.recipe, self.recipe.rollout.group
        asks = self._here.tasks.draw(step, 0, recipe.rollout.prompts)
        await self._here.probe_sources(asks, step)
        seeds = seeds_of(recipe.seed, step=step, attempt=0, asks=len(asks), group=group)
        reward = self._here.rewards[recipe.reward_stage(progress)]
        return await worker.run(asks, group=group, reward=reward, progress=progress, seeds=seeds)

    def _save(self, done: int) -> None:
        kept = {"policy": self._learner.policy.state_dict(), "learner": self._learner.state()}
        said = {"recipe": self.recipe.model_dump_json()}
        save_state(self.out, done, {**kept, **said}, keep=self.recipe.report.keep)

    def _load(self, path: Path) -> None:
        kept = load_state(path, device=next(self._learner.policy.parameters()).device)
        if not same_run(json.loads(kept["recipe"]), self.recipe.model_dump(mode="json")):
            raise SetupError(f"{path} was made by another recipe: use that one, or another --out")
        self._learner.policy.load_state_dict(kept["policy"])
        self._learner.load(kept["learner"])


@dataclass(frozen=True)
class Models:
    """What is trained, and what it is held against."""

    policy: Any
    """A model of transformers, with its adapter where the recipe has one."""
    critic: Critic
    reference: Any
    """The start as it was; None where no step has a KL weight."""
    parted: bool
    """See `train.models.pretrained.Pretrained`."""


def load_models(recipe: PpoRecipe) -> Models:
    """The start in float32, three times at most: policy, trunk of the critic, reference.

    With an adapter the trunk of the critic has one of its own, too.

    Raises:
        SetupError: it cannot be loaded.
    """
    begun = open_pretrained(recipe.start, adapter=recipe.adapter, bf16=False)
    policy: Any = begun.trained.to("cuda" if torch.cuda.is_available() else "cpu")
    inside = bare(policy)
    device = next(inside.parameters()).device
    critic = Critic(deepcopy(inside.base_model), width=inside.config.get_text_config().hidden_size).to(device)
    reference = deepcopy(policy).requires_grad_(False) if any(weight for _, weight in recipe.learning.kl) else None
    if reference is not None and computes_bf16(recipe.optimizer.bf16, device):
        cast(torch.nn.Module, reference).to(torch.bfloat16)
    if recipe.optimizer.gradient_checkpointing:
        for model in (inside, critic.trunk):
            recompute_layers(model)
    return Models(policy, critic, reference, begun.parted)


def newest_state(out: Path) -> Path | None:
    """The newest state in a run's folder; None where there is none."""
    found = [path for path in (out / STATES).glob(f"{_PREFIX}*.pt") if path.stem.removeprefix(_PREFIX).isdigit()]
    return max(found, key=_number, default=None)


def step_of(state: Path) -> int:
    """Steps that were done when it was saved."""
    return _number(state)


def save_state(out: Path, step: int, state: dict[str, Any], *, keep: int) -> Path:
    """Write a state beside the others, and only then under its name; then remove the oldest.

    Args:
        out: folder of the run.
        step: steps that are done.
        state: of tensors and plain values.
        keep: states that stay, the newest ones.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    folder = out / STATES
    made = folder / f"{_PREFIX}{step:06d}.pt"
    with as_a_whole(made) as written:
        torch.save(state, written)
    for old in sorted(folder.glob(f"{_PREFIX}*.pt"), key=_number)[:-keep]:
        old.unlink()
    return made


def load_state(path: Path, *, device: torch.device) -> dict[str, Any]:
    """Read a state.

    Raises:
        SetupError: it is damaged.
    """
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise SetupError(
            f"{path} is damaged ({error}): remove it, and --resume continues from the previous one"
        ) from error


def _number(path: Path) -> int:
    return int(path.stem.removeprefix(_PREFIX))
