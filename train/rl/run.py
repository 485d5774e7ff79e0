"""One RL run in one folder: rollouts, rewards, training batches, what is watched, and what is left at the end.

The folder holds `states/` to resume from, `monitors.jsonl` and `tensorboard/`, `manifest.json`, `traces.jsonl` (some
rollouts of every step), and at the end `hub/` with the model.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.errors import SetupError
from train.common.interrupt import check_folder
from train.rewards.base import Reward
from train.rl.adapter import RlTrainer
from train.rl.batch import (
    RolloutReward,
    WeightedRow,
    credit_figures,
    informative_rollouts,
    rollout_reward,
    rows_of,
    split,
    turn_advantages,
)
from train.rl.clock import Clock
from train.rl.finish import save_hub
from train.rl.gain import gain_credit
from train.rl.live import live_of
from train.rl.live_server import ServerLive, by_nccl
from train.rl.processes import all_gather, place
from train.rl.provider import Figures, TrainingBatch
from train.rl.recipe import Learning, RlRecipe
from train.rl.rollouts import RolloutResult, RolloutWorker, seeds_of
from train.rl.session import Around, OnStep, training_session
from train.rl.states import newest_state, updates_of
from train.rl.tasks import Ask, Tasks
from train.rl.teacher import open_teacher, taught_rows
from train.rl.trees import run_trees
from train.safety.rules import Collapsed

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from train.rl.live import Live


class RlRun:
    """One run. `go` it once."""

    def __init__(
        self,
        recipe: RlRecipe,
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
        """
        self.recipe = recipe
        self.out = out
        self._threads = threads
        self._tasks = tasks
        self._around = around
        self._given_live = live
        self._clock = Clock()
        self.done = False

    @property
    def interrupted(self) -> bool:
        """Whether the run is to end after this step."""
        return self._here.interrupted()

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
        after = updates_of(state) // recipe.updates_per_step if state else 0
        self._rank, self._ranks = place()
        if recipe.rollout.prompts % self._ranks:
            raise SetupError(
                f"{recipe.rollout.prompts} prompts cannot be shared by {self._ranks} processes: make `prompts` a "
                "multiple of them"
            )
        self._on_step = on_step
        with training_session(
            recipe,
            self.out,
            after=after,
            tasks=self._tasks,
            around=self._around,
            writes=self._rank == 0,
            gather=all_gather,
        ) as self._here:
            self._live = self._given_live or live_of(recipe, threads=self._threads)
            with closing(self._live), self._opened_teacher():
                self._trainer = trainer = RlTrainer(recipe, self.out, self)
                if isinstance(self._live, ServerLive) and self._live.hand_over is None:
                    nccl, take = by_nccl(recipe), self._live.take
                    self._live.hand_over = trainer.send_weights if nccl else trainer.by_the_first(take)
                trainer.go(state)
            self._end(trainer)
        return self.done

    def training_batch(self, step: int, model: Any) -> TrainingBatch:
        """Run a step's rollouts; see `train.rl.provider.BatchProvider`."""
        self._clock = Clock()
        recipe, progress = self.recipe, step / self.recipe.steps
        policy = self._live.refresh(model)
        self._clock.lap("refresh")
        worker = RolloutWorker.of(policy, recipe.rollout)
        self._figures = self._here.dev(worker, step)
        self._clock.lap("dev")
        stage = recipe.reward_stage(progress)
        weights = recipe.reward[stage].weights
        reward = self._here.rewards[stage]
        results, rewards = self._here.runner.run(self._rollouts(worker, reward, step, weights))
        self._clock.lap("rollouts")
        all_rewards = all_gather(rewards)
        self._figures |= credit_figures(all_rewards)
        all_advantages = turn_advantages(all_rewards, recipe.learning, weights)
        first = self._before(len(rewards))
        mine = all_advantages[first : first + len(rewards)]
        credit = recipe.learning.credit
        all_rows = recipe.learning.kl_weight(progress) > 0 or (credit is not None and credit.keep_likelihood > 0)
        rows, whole = self._rows(results, rewards, mine, all_rows=all_rows)
        self._figures["rows"] = float(sum(all_gather([len(rows)])))
        optimizer = recipe.optimizer
        micro_batches = split(rows, minibatches=optimizer.minibatches, micro_batches=optimizer.micro_batches)
        return TrainingBatch(micro_batches, sum(all_gather([whole])), self._live.exact)

    def learned(self, step: int, figures: Figures) -> None:
        """Write a step down; see `train.rl.provider.BatchProvider`."""
        self._clock.lap("update")
        self._here.ended(step, {**figures, **self._clock.figures(), **self._figures}, self._on_step)

    def _rows(
        self,
        results: Sequence[RolloutResult],
        rewards: Sequence[RolloutReward],
        mine: Sequence[tuple[float, ...]],
        *,
        all_rows: bool,
    ) -> tuple[list[WeightedRow], float]:
        """The rows of rollouts with what rewards, and a teacher where there is one, say of their tokens."""
        level, teacher, said = self.recipe.learning.level, self._teacher, self.recipe.teacher
        if teacher is None or said is None:
            return rows_of(results, rewards, mine, level=level, all_rows=all_rows)
        scored = list(zip(results, rewards, mine, strict=True))
        made = self._here.runner.run(taught_rows(teacher, said, scored, level=level, all_rows=all_rows))
        tokens = sum(all_gather([made.tokens]))
        self._figures |= {"teacher_kl": sum(all_gather([made.apart])) / max(1, tokens), "teacher_tokens": float(tokens)}
        self._clock.lap("teacher")
        return made.rows, made.whole

    async def _rollouts(
        self, worker: RolloutWorker, reward: Reward[Any], step: int, weights: Mapping[str, float]
    ) -> tuple[list[RolloutResult], list[RolloutReward]]:
        """The rollouts that a step learns from, with their rewards.

        Raises:
            BatchNotFilled: dynamic sampling gave up.
        """
        learning, group = self.recipe.learning, self.recipe.rollout.group
        rounds = DynamicSampling(learning, self.recipe.rollout.prompts // self._ranks)
        kept: list[RolloutResult] = []
        rewards: list[RolloutReward] = []
        groups_of_all = all_gather([0])
        while any(sizes := rounds.sizes(groups_of_all)):
            asks = self._drawn(step, rounds.round, sizes)
            await self._here.probe_sources(asks, step)
            new = await self._round(worker, reward, asks, step, rounds.round, first=self._rank * max(sizes))
            await asyncio.to_thread(self._live.check)
            new_rewards = self._rewarded(worker, new)
            self._here.watch(step, new, new_rewards, weights)
            teach = informative_rollouts(new_rewards, learning, weights) if learning.resampling else [True] * len(new)
            groups = dict.fromkeys(one.group for one, good in zip(new, teach, strict=True) if good)
            taken = set(list(groups)[: rounds.wanted - len(kept) // group])
            kept += [one for one in new if one.group in taken]
            rewards += [one for one in new_rewards if one.group in taken]
            groups_of_all = all_gather([len(kept) // group])
            rounds.ended(step, groups=sum(sizes), found=sum(all_gather([len(groups)])), kept=groups_of_all)
        if learning.resampling:
            self._figures |= {"batch_filled": rounds.filled(groups_of_all), "resample_rounds": float(rounds.round - 1)}
        return kept, rewards

    def _rewarded(self, worker: RolloutWorker, results: Sequence[RolloutResult]) -> list[RolloutReward]:
        """The rewards of a round, with the credit of its turns."""
        learning = self.recipe.learning
        rewards = [rollout_reward(one, learning) for one in results]
        if learning.credit is None or learning.credit.information_gain is None:
            return rewards
        gained = gain_credit(results, worker.policy, self._trainer.probabilities)
        return [replace(reward, credit=credit) for reward, credit in zip(rewards, gained, strict=True)]

    async def _round(
        self, worker: RolloutWorker, reward: Reward[Any], asks: Sequence[Ask], step: int, attempt: int, *, first: int
    ) -> list[RolloutResult]:
        """Run the rollouts of this process's questions; `first` of the round are in the processes before it."""
        rollout, seed = self.recipe.rollout, self.recipe.seed
        seeds = seeds_of(seed, step=step, attempt=attempt, asks=len(asks), group=rollout.group, first=first)
        number = (attempt * self._ranks + self._rank) * rollout.prompts
        progress, credit = step / self.recipe.steps, self.recipe.learning.credit
        if credit is not None and credit.tree is not None:
            return await run_trees(
                worker, asks, tree=credit.tree, reward=reward, progress=progress, seeds=seeds, first=number
            )
        return await worker.run(asks, group=rollout.group, reward=reward, progress=progress, seeds=seeds, first=number)

    def _drawn(self, step: int, attempt: int, sizes: Sequence[int]) -> list[Ask]:
        """This process's share of a round's questions: as many as `sizes` has for it."""
        most = max(sizes)
        drawn = self._here.tasks.draw(step, attempt, most * self._ranks)
        return drawn[self._rank * most :][: sizes[self._rank]]

    @contextmanager
    def _opened_teacher(self) -> Iterator[None]:
        """The recipe's teacher, for as long as the run is."""
        run = self._here.runner.run
        self._teacher = run(open_teacher(self.recipe)) if self.recipe.teacher else None
        try:
            yield
        finally:
            if self._teacher is not None:
                run(self._teacher.aclose())

    def _before(self, mine: int) -> int:
        """Rollouts of the processes before this one."""
        return sum(all_gather([mine])[: self._rank])

    def _end(self, trainer: RlTrainer) -> None:
        """What is left of the run when the training has ended."""
        self.done = trainer.step >= self.recipe.steps
        self._here.close(trainer.step)
        if self.done:
            adapted = self.recipe.adapter is not None  # every process gives its share
            model, weights = (trainer.whole_model(), None) if adapted else (trainer.bare, trainer.gathered())
            if self._rank == 0:
                save_hub(model, self.recipe, self.out, weights=weights)
        trainer.accelerator.end_training()  # older transformers have no `end`


class BatchNotFilled(Collapsed):
    """Round after round had no group whose rewards differ, so the batch cannot be filled."""


@dataclass
class DynamicSampling:
    """The rounds of one step. Without dynamic sampling there is one, and all its groups are kept.

    DAPO (2503.14476, section 3.2) samples until the batch is full of groups whose rewards differ. Every process makes
    the same decisions, because all of them see the same counts.
    """

    learning: Learning
    wanted: int
    """Groups that a process contributes to the batch."""
    round: int = field(default=0, init=False)
    """Rounds that have ended."""
    _groups: int = field(default=0, init=False)
    _found: int = field(default=0, init=False)
    _idle: int = field(default=0, init=False)

    def sizes(self, kept: Sequence[int]) -> list[int]:
        """The number of questions that each process asks in the next round; all 0: the step has what it learns from.

        A process wants as many groups as it lacks; to fill the batch, for more where few groups teach something.

        Args:
            kept: groups that each process has so far.
        """
        missing = [max(0, self.wanted - have) for have in kept]
        resample = self.learning.resampling
        if self.round == 0:
            return missing
        if resample != "full":
            return missing if self.round <= resample else [0] * len(missing)
        return [min(self.wanted, ceil(lack * self._groups / max(1, self._found))) for lack in missing]

    def ended(self, step: int, *, groups: int, found: int, kept: Sequence[int]) -> None:
        """Count a round that has ended.

        Args:
            step: from 0.
            groups: of the round, over all processes.
            found: those of them whose rewards differ.
            kept: groups that each process has now.

        Raises:
            BatchNotFilled: the batch is to be full, and the last rounds brought it no nearer.
        """
        self.round += 1
        self._groups += groups
        self._found += found
        self._idle = 0 if found else self._idle + 1
        full = self.filled(kept) == 1
        if self.learning.resampling == "full" and not full and self._idle > self.learning.resample_patience:
            raise BatchNotFilled(
                f"the run stopped itself at step {step + 1}: {self._idle} rounds in a row had no group whose rewards "
                f"differ, and the batch has {sum(kept)} of {self.wanted * len(kept)} groups: choose harder or easier "
                "questions or another reward, or set `resample` to a number of rounds to learn from smaller batches"
            )

    def filled(self, kept: Sequence[int]) -> float:
        """The share of the batch that there is."""
        return sum(min(self.wanted, have) for have in kept) / (self.wanted * len(kept))
