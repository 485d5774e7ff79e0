"""The one file that imports TRL: its GRPOTrainer with our rollouts, advantages and rows, and states that are whole.

What stays TRL's: loss and clips, KL and entropy, optimiser, processes (accelerate). What is ours: where rows come from,
what each token weighs in the loss (so every average is a weighted sum over `num_items_in_batch`), the schedules of rate
and KL, how states are saved, and what is logged. TRL's interfaces that this leans on are experimental: it is pinned.
"""

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import SetupError
from agent.settings import default_environment

default_environment({"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"})

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import PreTrainedModel, Trainer, TrainerCallback  # noqa: E402
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled  # noqa: E402
from transformers.trainer_callback import PrinterCallback  # noqa: E402
from transformers.utils import logging as transformers_logging  # noqa: E402
from trl.trainer.grpo_config import GRPOConfig  # noqa: E402
from trl.trainer.grpo_trainer import GRPOTrainer  # noqa: E402
from trl.trainer.utils import use_adapter  # noqa: E402

from train.common.losses import likelihood_loss  # noqa: E402
from train.common.precision import computes_bf16  # noqa: E402
from train.models.attention import use_blocked  # noqa: E402
from train.models.pretrained import open_pretrained, padding_tokenizer  # noqa: E402
from train.rl.batch import WeightedRow, by_length, filled, tensors  # noqa: E402
from train.rl.live_server import by_nccl, joinable  # noqa: E402
from train.rl.optimizer import rate  # noqa: E402
from train.rl.processes import all_gather, place  # noqa: E402
from train.rl.provider import BatchProvider, Figures, TrainingBatch  # noqa: E402
from train.rl.ratio import Ratio  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.sharding import WholeCopy, check_shares, give_start, is_requested, keep_on_cpus, share_on_cpus  # noqa: E402
from train.rl.states import PREFIX, STATES, settle  # noqa: E402

_PASS: Final = 16_384
"""Tokens of one pass without gradients, padding included."""


class RlTrainer(GRPOTrainer):
    """GRPOTrainer whose generation batch is a `TrainingBatch`."""

    def __init__(self, recipe: RlRecipe, out: Path, provider: BatchProvider) -> None:
        """Load the start and take the recipe.

        Args:
            recipe: of the run.
            out: its folder.
            provider: makes the training batches.

        Raises:
            SetupError: the start cannot be loaded, or the recipe's vLLM server cannot be joined.
        """
        self._recipe = recipe
        self._provider = provider
        self._states = out / STATES
        self._saving: Path | None = None
        self._ratio = Ratio()
        self._by_update: list[Figures] = []
        self._teaching: list[int] = []
        """Rows of each micro-batch, the most in any process."""
        self._micro_batches = recipe.optimizer.micro_batches * recipe.optimizer.minibatches
        transformers_logging.disable_progress_bar()  # the terminal belongs to the command
        torch.manual_seed(recipe.seed)  # of a new adapter, the same in every process
        with joinable(recipe):
            begun = open_pretrained(recipe.start, adapter=recipe.adapter, bf16=False)
            tokenizer = padding_tokenizer(begun, recipe.start)
            if not torch.cuda.is_available():
                use_blocked(begun.model)  # rows are padded on the right
            elif recipe.optimizer.bf16:  # what autocast leaves in float32 needs no more digits than the rest
                torch.backends.cuda.matmul.allow_tf32 = True
            samples = is_requested() and not by_nccl(recipe)
            self._copy = WholeCopy(begun.trained) if samples else None
            super().__init__(
                model=cast(PreTrainedModel, begun.trained),
                processing_class=tokenizer,
                args=_arguments(recipe, out),
                reward_funcs=[_scored_elsewhere],
                rollout_func=_rolled_out_elsewhere,
                train_dataset=Dataset.from_dict({"prompt": [""] * (recipe.steps * self._micro_batches * place()[1])}),
                callbacks=[_Steps(self)],
            )
        plugin = self.accelerator.state.fsdp_plugin if self.is_fsdp_enabled else None
        check_shares(recipe, plugin, zero3=is_deepspeed_zero3_enabled(), nccl=by_nccl(recipe))
        if self.ref_model is not None and self.is_fsdp_enabled:
            give_start(self.ref_model, begun.model)
        elif self.ref_model is not None and begun.was_adapter:  # TRL read the model without it
            self.accelerator.unwrap_model(self.ref_model).load_state_dict(begun.model.state_dict())
        self.remove_callback(PrinterCallback)
        self._pad = int(tokenizer.pad_token_id)

    @property
    def step(self) -> int:
        """Batches of rollouts that are learned from, whole."""
        return self.state.global_step // self._recipe.updates_per_step

    @property
    def at_a_batch(self) -> bool:
        """Whether the next update begins with new rollouts: only then a state can be gone on from."""
        return self.state.global_step % self._recipe.updates_per_step == 0

    @property
    def bare(self) -> Any:
        """The model itself, as it was before it was wrapped for several processes."""
        return self.accelerator.unwrap_model(self.model)

    def whole_model(self) -> Any:
        """The model with all of its weights, for an engine; of shares a copy, which all processes must ask for at once.

        Without a copy, because the engine is a server that gets its weights otherwise, it is the model itself.
        """
        on_host = self._recipe.rollout.engine == "embedded"
        device = torch.device("cpu") if on_host else self.accelerator.device
        return self.bare if self._copy is None else self._copy.of(self.bare, device=device)

    def gathered(self) -> Mapping[str, torch.Tensor]:
        """The weights of the whole model; where processes hold shares of it, in the first one alone.

        All processes must call it at the same time.

        Raises:
            SetupError: they cannot be consolidated.
        """
        try:
            return cast(Mapping[str, torch.Tensor], self.accelerator.get_state_dict(self.model_wrapped))
        except ValueError as error:  # DeepSpeed's third stage, where its settings forbid it
            raise SetupError(f"the weights cannot be consolidated from all processes: {error}") from error

    def send_weights(self, model: Any) -> None:
        """Send the weights to the vLLM server of the recipe. TRL has gathered the trainer's own `model` for that."""
        self.vllm_generation.sync_weights()

    def probabilities(self, rows: Sequence[WeightedRow]) -> list[float]:
        """How likely the model finds those tokens of each row that have a weight: exp of their mean log-probability.

        Rows of like length are computed together, as many as a pass has room for.
        """
        found = [0.0] * len(rows)
        for places in by_length([len(row.ids) for row in rows], most=_PASS):
            inputs = tensors([rows[at] for at in places], pad=self._pad, device=self.accelerator.device)
            weights = inputs["tool_mask"]
            with torch.no_grad():
                logprobs = self._logprobs(self.model, inputs)
            means = torch.where(weights > 0, logprobs * weights, 0.0).sum(dim=1) / weights.sum(dim=1)
            for at, value in zip(places, means.exp().tolist(), strict=True):
                found[at] = value
        return found

    def by_the_first(self, work: Callable[[Any], None]) -> Callable[[Any], None]:
        """What the first process does with a model while the others wait for it."""

        def do(model: Any) -> None:
            if self.accelerator.is_main_process:
                work(model)
            self.accelerator.wait_for_everyone()

        return do

    def go(self, state: Path | None) -> None:
        """Train to the end, or until the run is interrupted; from a state, if there is one."""
        self.train(resume_from_checkpoint=str(state) if state else None)

    def create_accelerator_and_postprocess(self) -> None:
        """As it is, but on CPUs, too, weights are shared where the launcher wants it."""
        share_on_cpus()
        super().create_accelerator_and_postprocess()
        if self.is_fsdp_enabled:
            keep_on_cpus(self.accelerator.state.fsdp_plugin)

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """The next micro-batch; of a new training batch where the last one is learned."""
        if self._step % (self._micro_batches * self.num_iterations) == 0 or self._buffered_inputs is None:
            self.beta = self._recipe.learning.kl_weight(self.step / self._recipe.steps)
            self._ratio = Ratio()
            model = self.bare
            model.eval()
            batch = self._provider.training_batch(self.step, self.whole_model())
            model.train()
            counts = all_gather([[len(rows) for rows in batch.micro_batches]])
            most = [max(number) for number in zip(*counts, strict=True)]  # TRL gathers figures row by row
            alike = [
                filled(rows, number, pad=self._pad) for rows, number in zip(batch.micro_batches, most, strict=True)
            ]
            self._buffered_inputs = [self._inputs(rows, batch) for rows in alike]
            self._teaching = most
        return self._buffered_inputs[self._step % self._micro_batches]

    def skip_an_empty_update(self) -> None:
        """Where no row of any process teaches, the optimiser must not move by what it remembers of former updates.

        DeepSpeed updates before it can be kept from it.
        """
        size = self._recipe.optimizer.micro_batches
        first = (self._step - size) % self._micro_batches  # TRL has counted the micro-batches of this update
        if not any(self._teaching[first : first + size]):
            cast(torch.nn.Module, self.model).zero_grad(set_to_none=True)

    def _inputs(self, rows: Sequence[WeightedRow], batch: TrainingBatch) -> dict[str, torch.Tensor]:
        device = self.accelerator.device
        inputs = tensors(rows, pad=self._pad, device=device)
        inputs["num_items_in_batch"] = torch.tensor(float(batch.whole), device=device)
        exact = batch.exact and not self.args.bf16
        engine = self._recipe.learning.old == "engine" or (self._recipe.learning.old is None and exact)
        with torch.no_grad():
            if engine and self._recipe.rollout.temperature == 1.0:
                inputs["old_per_token_logps"] = inputs["sampling_per_token_logps"]
            elif self._recipe.updates_per_step > 1:
                inputs["old_per_token_logps"] = self._logprobs(self.model, inputs)
            if self.beta != 0.0 and self.ref_model is not None:
                inputs["ref_per_token_logps"] = self._logprobs(self.ref_model, inputs)
            elif self.beta != 0.0 and self._recipe.adapter is not None:
                with use_adapter(self.bare, "ref"):  # the start's, as TRL has copied it
                    inputs["ref_per_token_logps"] = self._logprobs(self.model, inputs)
        return inputs

    def _logprobs(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Of the completion's tokens, at the recipe's temperature, [rows, completion]."""
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        seen = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        kept = inputs["completion_ids"].size(1)
        return self._get_per_token_logps_and_entropies(model, ids, seen, kept)[0]

    def _get_per_token_logps_and_entropies(self, *said: Any, **also: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*said, **also)
        self._newest = result[0]
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        known = {name: len(values) for name, values in self._metrics["train"].items()}
        loss = super()._compute_loss(model, inputs)
        if not inputs["tool_mask"].any():  # a micro-batch without rows has no figures
            for name, values in self._metrics["train"].items():
                del values[known.get(name, 0) :]
        place = self._step % (self._micro_batches * self.num_iterations)
        sampled = place < self._recipe.optimizer.micro_batches  # the weights are still those that sampled
        if sampled and self._recipe.rollout.temperature == 1.0:
            trained = inputs["tool_mask"] > 0
            self._ratio.add((self._newest.detach() - inputs["sampling_per_token_logps"])[trained])
        credit = self._recipe.learning.credit
        if credit is not None and credit.keep_likelihood and not sampled:
            loss = loss + credit.keep_likelihood * self._sunk(inputs)
        return loss

    def _sunk(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """LLDS's term, averaged as TRL's loss of the same micro-batch is; its figures are of all processes."""
        weights = inputs["tool_mask"]
        sunk = likelihood_loss(self._newest, inputs["old_per_token_logps"], inputs["advantages"], weights > 0)
        rows = sunk.kept.any(dim=1)
        seen = torch.stack([sunk.losses.detach().sum(), sunk.kept.sum(), sunk.fallen.sum(), rows.sum()])
        fall, tokens, fallen, all_rows = cast(torch.Tensor, self.accelerator.reduce(seen, reduction="sum")).tolist()
        if all_rows:
            self._metrics["train"]["likelihood_fall"].append(fall / tokens)
            self._metrics["train"]["likelihood_fallen_share"].append(fallen / all_rows)
        whole = inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes
        whole = whole * self.current_gradient_accumulation_steps / self._micro_batches
        return (sunk.losses * weights).sum() / whole

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """The recipe's rates; transformers' begin a warm-up with 0, which throws a batch of rollouts away."""
        if self.lr_scheduler is None:
            given = cast(torch.optim.Optimizer, optimizer or self.optimizer)
            rates = partial(rate, self._recipe.optimizer, updates=num_training_steps)
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(given, rates)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Take the figures of an update; those of a whole step go to the provider."""
        own = {name: _mean(values) for name, values in self._metrics["train"].items()}
        self._metrics["train"].clear()
        if "loss" not in logs:
            return
        there = {name: value for name, value in own.items() if not math.isnan(value)}
        self._by_update.append(_plain({**there, **logs}))
        if self.at_a_batch:
            names = dict.fromkeys(name for figures in self._by_update for name in figures)
            figures = {name: _mean([one[name] for one in self._by_update if name in one]) for name in names}
            self._by_update = []
            ratio = Ratio.joined(all_gather([self._ratio])).figures()
            self._provider.learned(self.step, {**figures, **ratio, "beta": float(self.beta)})

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Beside the other states, and only then under its name: what was saved before stays whole."""
        saving = self._states / "saving"
        is_main = self.accelerator.is_main_process
        try:
            if is_main:
                shutil.rmtree(saving, ignore_errors=True)
                saving.mkdir(parents=True)
            self.accelerator.wait_for_everyone()
            self._saving = saving
            Trainer._save_checkpoint(self, model, trial)
            self.accelerator.wait_for_everyone()
            if is_main:
                settle(saving / f"{PREFIX}{self.state.global_step}", self._states, keep=self._recipe.report.keep)
        except Exception as error:  # safetensors, torch and the system have errors of their own for a full disk
            if is_main:
                shutil.rmtree(saving, ignore_errors=True)
            raise SetupError(
                f"the state of step {self.step} could not be saved in {self._states}: {error}; what was saved before "
                "is whole: make room there, then go on with --resume"
            ) from error
        finally:
            self._saving = None

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._saving or self._states)

    def _send_telemetry(self) -> None:
        """Nothing is sent."""


class _Steps(TrainerCallback):
    """Decides when a state is saved, when the run ends, and which updates are none."""

    def __init__(self, trainer: RlTrainer) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer.skip_an_empty_update()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        trainer, recipe = self._trainer, self._trainer._recipe
        if not trainer.at_a_batch:
            return
        last = trainer.step >= recipe.steps
        stop = any(all_gather([trainer._provider.interrupted]))
        if last or stop or trainer.step % recipe.report.save_every_steps == 0:
            control.should_save = True
        control.should_training_stop = control.should_training_stop or stop


def _arguments(recipe: RlRecipe, out: Path) -> GRPOConfig:
    learning, optimizer, rollout = recipe.learning, recipe.optimizer, recipe.rollout
    server: dict[str, Any] = {}
    if by_nccl(recipe):
        server = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": rollout.server}
        server["vllm_importance_sampling_correction"] = False
    known = {field.name for field in fields(GRPOConfig)}  # older transformers know the other name only
    checkpointing = "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"
    named: dict[str, Any] = {**server, checkpointing: optimizer.gradient_checkpointing}
    return GRPOConfig(
        output_dir=str(out / STATES),
        max_steps=recipe.steps * recipe.updates_per_step,
        seed=recipe.seed,
        learning_rate=optimizer.lr,
        weight_decay=optimizer.weight_decay,
        adam_beta1=optimizer.betas[0],
        adam_beta2=optimizer.betas[1],
        max_grad_norm=optimizer.clip,
        optim="adamw_torch",
        per_device_train_batch_size=rollout.group,
        num_generations=rollout.group,
        gradient_accumulation_steps=optimizer.micro_batches,
        steps_per_generation=optimizer.micro_batches * optimizer.minibatches,
        num_iterations=optimizer.epochs,
        temperature=rollout.temperature,
        beta=max((weight for _, weight in learning.kl), default=0.0),
        loss_type="dapo",  # a weighted sum over num_items_in_batch; the weights make every average of it
        epsilon=learning.clip_low,
        epsilon_high=learning.high,
        bf16=computes_bf16(optimizer.bf16, torch.device("cuda" if torch.cuda.is_available() else "cpu")),
        use_cpu=not torch.cuda.is_available(),
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        shuffle_dataset=False,
        ignore_data_skip=True,
        remove_unused_columns=False,
        **named,
    )


def _scored_elsewhere(**_: Any) -> list[float | None]:
    raise NotImplementedError("rewards are scored with the rollouts")


def _rolled_out_elsewhere(*_: Any) -> dict[str, Any]:
    raise NotImplementedError("training batches take the place of TRL's generation batches")


def _mean(values: Sequence[float]) -> float:
    there = [value for value in values if not math.isnan(value)]
    return sum(there) / len(there) if there else math.nan


def _plain(figures: dict[str, Any]) -> Figures:
    return {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
