"""Held-out trajectories: names and worlds of the dev split, and how a model does on them, by protocol and by type."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from tokenizers import Tokenizer

from train.common.recipe import SftRecipe
from train.sft.oracle import can_fill
from train.sft.trajectories import Example, question_rows, row_examples, spoken


@dataclass
class HeldOutScores:
    """Right tokens, right answers and right trajectories, all with the oracle's words before them."""

    tokens: int = 0
    right_tokens: int = 0
    rows: int = 0
    right_rows: int = 0
    answers: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    """Protocol, type of question or both → whether every token of the answer is the most likely one."""

    def add(self, examples: Sequence[Example], hits: torch.Tensor, policy: torch.Tensor) -> None:
        """Count a batch: `hits` and `policy` are [rows, length - 1], of the tokens from the second on."""
        self.right_tokens += int((hits & policy).sum())
        self.tokens += int(policy.sum())
        self.right_rows += int((hits | ~policy).all(dim=1).sum())
        self.rows += len(examples)
        for example, row in zip(examples, hits, strict=True):
            start = example.answer_from
            if not start:
                continue
            right = bool(row[start - 1 : len(example.ids) - 1].all())
            protocol, _, kind = example.kind.partition(" ")
            for name in (protocol, kind, example.kind):
                self.answers[name].append(right)

    def by_kind(self) -> dict[str, float]:
        """The share of right answers by protocol and by type of question."""
        shares = {name: sum(right) / len(right) for name, right in self.answers.items() if " " not in name}
        return {name: round(share, 3) for name, share in sorted(shares.items())}


def held_out(recipe: SftRecipe, tokenizer: Tokenizer) -> Iterator[list[Example]]:
    """Batches of like length: every question of a dev world under every protocol; or the rows that were kept back."""
    if recipe.data.rows:
        yield from _batches(row_examples(recipe, tokenizer, held_out=True))
        return
    data = recipe.data.model_copy(update={"split": "dev"})
    world = data.world(0, questions=recipe.report.dev_questions)
    protocols = [spoken(data, name) for name in recipe.protocols]
    examples = [
        row
        for place, question in enumerate(world.questions)
        for protocol in protocols
        for row in question_rows(
            world,
            question,
            protocol,
            tokenizer,
            recipe,
            fill=bool(data.fill_share) and place % 2 == 0 and can_fill(question.plan, protocol),
        )
        if recipe.model is None or len(row.ids) <= recipe.model.context
    ]
    yield from _batches(examples)


def _batches(examples: list[Example]) -> Iterator[list[Example]]:
    examples.sort(key=lambda example: len(example.ids))
    for start in range(0, len(examples), 8):
        yield examples[start : start + 8]
