"""Times supervised training of an adapter: ours beside TRL's SFTTrainer with peft, on the same rows by turns.

Both begin from the same weights and the same new adapter, in the same precision, with the same optimizer, and see each
row once; both leave gradient checkpointing out. The first step of each is not timed: kernels are made in it.
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, cast

from agent.errors import SetupError
from agent.settings import default_environment

default_environment({"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"})

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import AutoTokenizer, PreTrainedModel, TrainerCallback  # noqa: E402
from transformers.trainer_callback import PrinterCallback  # noqa: E402
from trl.trainer.sft_config import SFTConfig  # noqa: E402
from trl.trainer.sft_trainer import SFTTrainer  # noqa: E402

from train.common.recipe import SftRecipe  # noqa: E402
from train.distill.rows import TrainingRow, read_rows, write_rows  # noqa: E402
from train.models.pretrained import Pretrained, open_pretrained  # noqa: E402
from train.sft.memory import give_back  # noqa: E402
from train.sft.run import SftProgress, SftRun  # noqa: E402
from train.sft.trajectories import Example, pool_batches, row_example  # noqa: E402

Way = Literal["ours", "trl", "trl, by length"]
WAYS: Final[tuple[Way, ...]] = ("ours", "trl", "trl, by length")
BOUND: Final = 1.5
"""How many times as fast as TRL as it comes ours must be."""
_STEPS_BATCHES: Final = 2
"""Batches of a step."""
_HELD_OUT: Final = 6
"""Rows at most that both are measured on before and after."""


@dataclass(frozen=True, kw_only=True)
class SftPlan:
    """What is trained, and how."""

    start: str
    rows: Path
    rank: int = 16
    steps: int = 4
    """That are timed."""
    batch_tokens: int = 4096
    """Of one of our batches, with padding; two make a step."""
    max_tokens: int = 2600
    lr: float = 5e-4
    bf16: bool = True
    seed: int = 0


@dataclass
class SftFigures:
    """What came of one way, a value for each time."""

    way: Way
    tokens_per_second: list[float] = field(default_factory=list[float])
    """Of rows, padding not counted."""
    padding: float = 0.0
    """Share of what was computed."""
    before: float = 0.0
    """Loss of the policy's tokens of rows that were not seen."""
    after: list[float] = field(default_factory=list[float])

    @property
    def middle(self) -> float:
        return median(self.tokens_per_second)


@dataclass(frozen=True)
class Timed:
    tokens: int
    padded: int
    seconds: float
    before: float
    after: float


def measure(
    plan: SftPlan, *, times: int = 5, ways: Sequence[Way] = WAYS, report: Callable[[int], None] = lambda done: None
) -> list[SftFigures]:
    """Train each way so often, by turns.

    Args:
        plan: what is trained.
        times: of each way.
        ways: in their order.
        report: receives how many runs are done.

    Raises:
        SetupError: the start or the rows cannot be used, or there are too few rows.
    """
    figures = {way: SftFigures(way) for way in ways}
    with TemporaryDirectory(prefix="cairn-bench-") as folder:
        sample, held_out = _sampled(plan, Path(folder))
        for number in range(times):
            for way in ways:
                out = Path(folder) / f"{number} {way}"
                run = _ours if way == "ours" else _trl
                timed = run(plan, way, sample, held_out, out)
                mine = figures[way]
                mine.tokens_per_second.append(timed.tokens / timed.seconds)
                mine.padding, mine.before = 1 - timed.tokens / timed.padded, timed.before
                mine.after.append(timed.after)
                gc.collect()
                give_back()
                report(number * len(ways) + list(ways).index(way) + 1)
    return list(figures.values())


def same_loss(figures: Sequence[SftFigures]) -> bool:
    """Whether all ways have learned alike: their losses differ by less than a tenth of what was learned."""
    ends = [median(one.after) for one in figures]
    return max(ends) - min(ends) < 0.1 * (figures[0].before - min(ends))


def _recipe(plan: SftPlan, rows: Path) -> SftRecipe:
    return SftRecipe.model_validate(
        {
            "kind": "sft",
            "name": "bench",
            "protocols": ("cairn",),
            "seed": plan.seed,
            "start": plan.start,
            "adapter": {"rank": plan.rank, "alpha": 2 * plan.rank},
            "data": {"rows": str(rows), "max_tokens": plan.max_tokens},
            "optimizer": {
                "epochs": 1,
                "batch_tokens": plan.batch_tokens,
                "batches_per_step": _STEPS_BATCHES,
                "muon_lr": 0,
                "adamw_lr": plan.lr,
                "final_lr": 1.0,
                "warmup_steps": 1,
                "weight_decay": 0.0,
                "clip": 1.0,
                "bf16": plan.bf16,
            },
            "report": {"every_steps": 10**9, "evaluate_every_steps": 10**9, "save_every_steps": 10**9},
        }
    )


def _sampled(plan: SftPlan, folder: Path) -> tuple[Path, list[TrainingRow]]:
    """A file with as many rows as the steps need, and others to measure on.

    Raises:
        SetupError: there are too few.
    """
    begun = open_pretrained(plan.start, adapter=None, bf16=False)
    wanted = (plan.steps + 1) * _STEPS_BATCHES * plan.batch_tokens
    rows = list(read_rows(plan.rows))
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(plan.seed)).tolist()
    recipe = _recipe(plan, plan.rows)
    held_out: list[TrainingRow] = []
    kept: list[TrainingRow] = []
    tokens = 0
    for place in drawn:
        row = rows[place]
        length = len(row_example(row, begun.tokenizer, recipe.weights, end=begun.end).ids)
        if length > plan.max_tokens:
            continue
        if row.held_out and len(held_out) < _HELD_OUT:
            held_out.append(row)
        elif not row.held_out and tokens < wanted:
            kept.append(row)
            tokens += length
    if tokens < wanted or not held_out:
        raise SetupError(
            f"{plan.rows} has {tokens:,} tokens of rows that are short enough, and {len(held_out)} rows to measure on; "
            f"{wanted:,} and one are needed: name a larger file, or fewer --steps"
        )
    write_rows(folder / "rows.jsonl", kept)
    return folder / "rows.jsonl", held_out


def _ours(plan: SftPlan, way: Way, rows: Path, held_out: Sequence[TrainingRow], out: Path) -> Timed:
    run = SftRun(_recipe(plan, rows), out)
    before = _loss(run.begun, held_out, bf16=plan.bf16)
    seen: list[tuple[int, float]] = []

    def hear(progress: SftProgress) -> None:
        seen.append((progress.tokens, progress.seconds))

    run.run(hear)
    (first, began), (last, ended) = seen[0], seen[-1]
    batches = run.batches()
    padded = sum(len(batch) * max(len(row.ids) for row in batch) for batch in batches)
    share = sum(len(row.ids) for batch in batches for row in batch) / padded
    return Timed(
        last - first, round((last - first) / share), ended - began, before, _loss(run.begun, held_out, bf16=plan.bf16)
    )


def _trl(plan: SftPlan, way: Way, rows: Path, held_out: Sequence[TrainingRow], out: Path) -> Timed:
    recipe = _recipe(plan, rows)
    torch.manual_seed(recipe.seed)
    begun = open_pretrained(plan.start, adapter=recipe.adapter, bf16=plan.bf16)
    recipe = recipe.model_copy(update={"end": begun.end})
    batches = pool_batches(recipe, begun.tokenizer, pool=0, progress=0.0)
    examples = [example for batch in batches for example in batch]
    before = _loss(begun, held_out, bf16=plan.bf16)
    clock = _Clock()
    trainer = _Sft(
        model=cast(PreTrainedModel, begun.trained),
        processing_class=AutoTokenizer.from_pretrained(begun.folder, trust_remote_code=False),
        args=_arguments(plan, way, round(len(examples) / len(batches)), out),
        train_dataset=Dataset.from_list([_as_row(example) for example in examples]),
        callbacks=[clock],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.clock = clock
    trainer.train()
    return Timed(clock.tokens, clock.padded, clock.seconds, before, _loss(begun, held_out, bf16=plan.bf16))


class _Clock(TrainerCallback):
    """Times the steps after the first one."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.tokens = self.padded = self.steps = 0

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.steps += 1
        self.ended = time.perf_counter()
        if self.steps == 1:
            self.began = self.ended

    def saw(self, mask: torch.Tensor) -> None:
        """Count a batch."""
        if self.steps:
            self.tokens += int(mask.sum())
            self.padded += mask.numel()


class _Sft(SFTTrainer):
    clock: _Clock

    def training_step(self, *said: Any, **also: Any) -> Any:
        self.clock.saw(said[1]["attention_mask"])
        return super().training_step(*said, **also)

    def _send_telemetry(self) -> None:
        """Nothing is sent."""


def _arguments(plan: SftPlan, way: Way, rows: int, out: Path) -> SFTConfig:
    return SFTConfig(
        output_dir=str(out),
        num_train_epochs=1,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=_STEPS_BATCHES,
        learning_rate=plan.lr,
        lr_scheduler_type="constant",
        adam_beta2=0.98,
        weight_decay=0.0,
        max_grad_norm=1.0,
        max_length=None,
        bf16=plan.bf16,
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=False,
        train_sampling_strategy="group_by_length" if way == "trl, by length" else "random",
        dataset_kwargs={"skip_prepare_dataset": True},
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        seed=plan.seed,
    )


def _as_row(example: Example) -> dict[str, list[int]]:
    labels = [number if own else -100 for number, own in zip(example.ids, example.policy, strict=True)]
    return {"input_ids": list(example.ids), "labels": labels}


@torch.no_grad()
def _loss(begun: Pretrained, rows: Sequence[TrainingRow], *, bf16: bool) -> float:
    """Mean loss of the policy's tokens."""
    model = begun.trained
    device = next(model.parameters()).device
    weights = SftRecipe.model_fields["weights"].default
    model.eval()
    summed, count = 0.0, 0
    for row in rows:
        example = row_example(row, begun.tokenizer, weights, end=begun.end)
        ids = torch.tensor([example.ids], device=device)
        kept = torch.tensor([[*example.policy[1:], False]], device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            logits = begun.logits_at(ids, kept)
        summed += float(torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][kept[:, :-1]], reduction="sum"))
        count += int(kept.sum())
    return summed / count
