"""Examples as tensors: rows of one length, and a batch that teaches nothing."""

from dataclasses import dataclass

import torch

from train.sft.trajectories import Example


@dataclass(frozen=True)
class PaddedBatch:
    """Tensors of [rows, length]; padding has weight 0."""

    ids: torch.Tensor
    weights: torch.Tensor
    policy: torch.Tensor


def collate(examples: list[Example], device: torch.device) -> PaddedBatch:
    """Pad on the right. Attention is causal, so padding needs no mask: no real token sees it."""
    length = max(len(example.ids) for example in examples)
    ids = torch.zeros((len(examples), length), dtype=torch.long)
    weights = torch.zeros((len(examples), length))
    policy = torch.zeros((len(examples), length), dtype=torch.bool)
    for row, example in enumerate(examples):
        size = len(example.ids)
        ids[row, :size] = torch.tensor(example.ids)
        weights[row, :size] = torch.tensor(example.weights)
        policy[row, :size] = torch.tensor(example.policy)
    return PaddedBatch(ids.to(device), weights.to(device), policy.to(device))


def idle(like: Example) -> list[Example]:
    """A batch without a loss, for a process that has none of its own while the others go through theirs together."""
    ids = like.ids[:2]
    return [Example(ids, (0.0,) * len(ids), (False,) * len(ids))]
