"""The reader's training: pools of training worlds, one after the other, on one process. A run is never resumed.

The loss is the negative log-probability of all right places and classes together (marginal likelihood).
"""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from agent.files.foreign import no_link
from agent.world import Question
from lab.reader.examples import (
    Example,
    batches,
    pool_examples,
    to_example,
    vocabulary_of,
)
from lab.reader.recipe import ReaderRecipe
from train.evaluation.metrics import exact_match
from train.reader.pages import UNKNOWN, Classes
from train.reader.reading import ReaderModel, TrainedReader, make_reader, to_rows
from train.safety.manifest import kept_manifest
from train.sft.optimizers import Muon
from train.world.shards import make_world

_AT_ONCE: Final = 16


@dataclass(frozen=True)
class Progress:
    """How far a run is; figures are of the last batches, `dev_em` of held-out worlds, as a share."""

    step: int
    examples: int
    done: float
    """Share of all pools."""
    seconds: float
    loss: float
    right: float
    dev_em: float | None = None


OnProgress = Callable[[Progress], None]


class ReaderRun:
    """One run in one folder: the reader itself, and `log.jsonl`."""

    def __init__(self, recipe: ReaderRecipe, out: Path) -> None:
        self.recipe, self.out = recipe, out
        out.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(recipe.seed)
        self._rng = random.Random(f"reader batches {recipe.seed}")
        self.vocabulary, self.classes = vocabulary_of(recipe)
        self.model = make_reader(recipe.shape, self.vocabulary, self.classes)
        self._optimizers = _optimizers(self.model, recipe)
        self._dev = _dev_examples(recipe, self.classes)
        self._last: dict[str, float] = {}
        """The last figures, for the manifest."""

    @property
    def reader(self) -> TrainedReader:
        return TrainedReader(self.model, self.vocabulary, self.classes, self.recipe.shape, name=self.recipe.name)

    def run(self, on_progress: OnProgress) -> TrainedReader:
        """Train through all pools, and save after each; a manifest says what it was made from."""
        with kept_manifest(self.out, recipe=self.recipe, seeds={"recipe": self.recipe.seed}) as manifest:
            reader = self._run(on_progress)
            manifest.figures = self._last
        return reader

    def _run(self, on_progress: OnProgress) -> TrainedReader:
        began, step, seen = time.perf_counter(), 0, 0
        losses: list[tuple[float, float]] = []
        for done, examples in self._batches():
            self._set_rate(step, done)
            losses.append(self._step(examples))
            step, seen = step + 1, seen + len(examples)
            if step % self.recipe.report.every_steps == 0:
                loss, right = (sum(column) / len(losses) for column in zip(*losses, strict=True))
                losses.clear()
                on_progress(self._log(Progress(step, seen, done, time.perf_counter() - began, loss, right)))
        on_progress(self._log(Progress(step, seen, 1.0, time.perf_counter() - began, 0.0, 0.0, self.dev_em())))
        self.reader.save(self.out)
        return self.reader

    def dev_em(self) -> float:
        """EM on held-out worlds in contexts drawn as in training; a class counts by its text."""
        reader = self.reader
        right = 0
        for at in range(0, len(self._dev), _AT_ONCE):
            part = self._dev[at : at + _AT_ONCE]
            said = reader.answers([example.sheet for _, example in part])
            right += sum(is_right(text, question) for text, (question, _) in zip(said, part, strict=True))
        self.model.train()
        return right / len(self._dev)

    def _batches(self) -> Iterator[tuple[float, list[Example]]]:
        """Every batch, with the share of all pools that is done before it."""
        pools = self.recipe.data.pools
        for pool in range(self.recipe.data.stop_after or pools):
            examples = pool_examples(self.recipe, self.classes, pool=pool)
            made = batches(examples, batch_words=self.recipe.optimizer.batch_words, rng=self._rng)
            for number, batch in enumerate(made):
                yield (pool + number / len(made)) / pools, batch
            self._log(Progress(0, 0, (pool + 1) / pools, 0.0, 0.0, 0.0, self.dev_em()))
            self.reader.save(self.out)
            self.model.train()

    def _set_rate(self, step: int, done: float) -> None:
        settings = self.recipe.optimizer
        warm = min(1.0, (step + 1) / settings.warmup_steps)
        left = 0.5 * (1 + math.cos(math.pi * done))
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * warm * (settings.final_lr + (1 - settings.final_lr) * left)

    def _step(self, examples: Sequence[Example]) -> tuple[float, float]:
        """One update; gives the loss, and the share of the probability that is on right answers' places."""
        start, end = self.model(to_rows([e.sheet for e in examples], self.vocabulary, self._rng))
        loss = answer_loss(start, end, examples)
        loss.mean().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimizer.clip)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.mean().item(), (-loss).exp().mean().item()

    def _log(self, progress: Progress) -> Progress:
        said = asdict(progress)
        self._last = {name: float(value) for name, value in said.items() if value is not None}
        with open(self.out / "log.jsonl", "a", encoding="utf-8", opener=no_link) as log:
            log.write(json.dumps(said) + "\n")
        return progress


def answer_loss(start: Tensor, end: Tensor, examples: Sequence[Example]) -> Tensor:
    """In nats for each example: minus the logarithm of what all its right spans and classes have together."""
    longest = max(len(example.sheet.words) for example in examples)
    losses: list[Tensor] = []
    for row, example in enumerate(examples):
        first = [*(span.first for span in example.spans), *(longest + known for known in example.classes)]
        last = [*(span.last for span in example.spans), *(longest + known for known in example.classes)]
        losses.append(-torch.logsumexp(start[row, first] + end[row, last], dim=0))
    return torch.stack(losses)


def is_right(text: str, question: Question) -> bool:
    """EM, or that it is not known where it is not."""
    return text == UNKNOWN if question.unanswerable else exact_match(text, question.answers)


def _dev_examples(recipe: ReaderRecipe, classes: Classes) -> list[tuple[Question, Example]]:
    rng = random.Random("reader dev")
    world = make_world(1, split="dev", questions=recipe.report.dev_questions)
    most = recipe.curriculum[-1].most_pages
    return [
        (question, to_example(world, question, recipe, classes, most_pages=most, rng=rng))
        for question in world.questions
    ]


def _optimizers(model: ReaderModel, recipe: ReaderRecipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for everything else."""
    settings = recipe.optimizer
    inside = {name for name, p in model.named_parameters() if p.ndim == 2 and name.startswith("layers.")}
    matrices = [p for name, p in model.named_parameters() if name in inside]
    muon = Muon(matrices, lr=settings.muon_lr, weight_decay=settings.weight_decay)
    adamw = torch.optim.AdamW(
        [p for name, p in model.named_parameters() if name not in inside],
        lr=settings.adamw_lr,
        betas=(0.9, 0.98),
        weight_decay=0.0,
    )
    for optimizer in (muon, adamw):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return [muon, adamw]
