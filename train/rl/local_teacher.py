"""A teacher in this process: any causal language model in the hub's form, read by transformers."""

from collections.abc import Sequence
from typing import Any, Final, Self, cast

import torch
from tokenizers import Tokenizer

from train.models.pretrained import Pretrained, open_pretrained
from train.rl.batch import WeightedRow
from train.rl.teacher import same_vocabulary

_TOKENS: Final = 16_384
"""Of a batch, with padding."""


class LocalTeacher:
    """A model that nothing trains: in float32 on a CPU, in bfloat16 on a GPU."""

    def __init__(self, begun: Pretrained) -> None:
        self._begun = begun
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        begun.model.requires_grad_(False).eval()
        cast(Any, begun.model).to(self._device, dtype=torch.bfloat16 if self._device.type == "cuda" else torch.float32)

    @classmethod
    def load(cls, model: str, policy: Tokenizer) -> Self:
        """Load a teacher.

        Args:
            model: what `cairn train sft` begins from, too.
            policy: whose tokens it scores.

        Raises:
            SetupError: it cannot be loaded, or has another vocabulary.
        """
        begun = open_pretrained(model, adapter=None, bf16=False)
        same_vocabulary(begun.tokenizer, policy, name=model)
        return cls(begun)

    async def logprobs(self, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
        """See `train.rl.teacher.TeacherModel`."""
        found: dict[int, tuple[float, ...]] = {}
        order = sorted(range(len(rows)), key=lambda at: len(rows[at].ids))
        while order:
            size = max(1, _TOKENS // len(rows[order[-1]].ids))
            order, batch = order[:-size], order[-size:]
            found |= zip(batch, self._scored([rows[at] for at in batch]), strict=True)
        return [found[at] for at in range(len(rows))]

    @torch.no_grad()
    def _scored(self, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
        """Padded on the right: no real token sees what follows it."""
        length = max(len(row.ids) for row in rows)
        ids, chosen = torch.zeros((2, len(rows), length), dtype=torch.long)
        for at, row in enumerate(rows):
            ids[at, : len(row.ids)] = torch.tensor(row.ids)
            chosen[at, : len(row.ids)] = torch.tensor([bool(weight) for weight in row.weights])
        wanted = chosen.bool()
        wanted[:, 0] = False
        before = torch.nn.functional.pad(wanted[:, 1:], (0, 1))
        logs = self._begun.logits_at(ids.to(self._device), before.to(self._device)).float().log_softmax(-1)
        own = logs.gather(1, ids[wanted].to(self._device)[:, None])[:, 0].cpu()
        placed = torch.zeros(ids.shape).masked_scatter(wanted, own)
        return [tuple(line[: len(row.ids)]) for line, row in zip(placed.tolist(), rows, strict=True)]

    async def aclose(self) -> None:
        """Nothing is held but memory."""
