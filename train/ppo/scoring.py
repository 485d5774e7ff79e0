"""What the policy and the critic say of tokens that are there: log-probabilities, entropy, values. Nothing is learned.

Everything is [rows, length] and 0 where the mask is false. Logits are made for policy tokens only, which is where most
of the memory goes; the whole context is read in any case.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from train.common.losses import entropy
from train.models.adapters import bare
from train.models.causal import logits_at
from train.ppo.rows import PpoRows


@dataclass(frozen=True)
class TokenScores:
    """The policy's words on its own tokens."""

    logprobs: torch.Tensor
    """[rows, length]"""
    entropy: torch.Tensor
    """[rows, length], in nats, without a gradient."""


def score(
    model: Any, rows: PpoRows, *, temperature: float = 1.0, entropies: bool = False, parted: bool = True
) -> TokenScores:
    """Log-probabilities of the policy tokens, as the sampler had them at this temperature.

    Args:
        model: a causal language model, with an adapter or without.
        rows: contexts.
        temperature: that the tokens were sampled with.
        entropies: whether these are computed, too; else they are 0.
        parted: see `train.models.pretrained.Pretrained`.
    """
    chosen = rows.mask[:, 1:]
    logits = logits_at(bare(model), rows.ids, nn.functional.pad(chosen, (0, 1)), parted=parted).float()
    logs = (logits if temperature == 1 else logits / temperature).log_softmax(dim=-1)
    said = logs.gather(1, rows.ids[:, 1:][chosen][:, None])[:, 0]
    spread = torch.zeros_like(said)
    if entropies:
        with torch.no_grad():
            spread = entropy(logs.detach()[None], torch.ones_like(spread, dtype=torch.bool)[None])[0]
    return TokenScores(_placed(said, rows), _placed(spread, rows))


class Critic(nn.Module):
    """A language model's trunk with a value head: what reward it expects before a token is sampled.

    It has weights of its own. With a trunk in common, the value's gradient would change what the policy writes. The
    head begins at 0, so that the first advantages are the rewards themselves.
    """

    def __init__(self, trunk: nn.Module, *, width: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: PpoRows) -> torch.Tensor:
        """Values of the policy tokens, [rows, length]: from what stands before each of them."""
        return _placed(self.head(_hidden(self.trunk, rows)[:, :-1][rows.mask[:, 1:]])[:, 0].float(), rows)


def _hidden(trunk: nn.Module, rows: PpoRows) -> torch.Tensor:
    """States of [rows, length, width]."""
    return trunk(input_ids=rows.ids, use_cache=False).last_hidden_state


def _placed(values: torch.Tensor, rows: PpoRows) -> torch.Tensor:
    """One value for each policy token, in the order of the mask, at its place."""
    return torch.zeros(rows.mask.shape, dtype=values.dtype, device=values.device).masked_scatter(rows.mask, values)
