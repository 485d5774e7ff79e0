"""Rows for the learner: samples of rollouts, padded to tensors and cut into parts. No model is here."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from agent.trace.samples import Sample
from train.common.advantages import rewards_of


@dataclass(frozen=True)
class PpoRows:
    """Contexts, one a row, padded on the right. Attention is causal, so that no real token sees the padding.

    The loss mask is not the attention mask: the policy reads what the environment wrote.
    """

    ids: torch.Tensor
    """[rows, length]"""
    mask: torch.Tensor
    """[rows, length]: the policy sampled the token of this place. Never true in the first column."""
    sampled: torch.Tensor
    """[rows, length]: the sampler's log-probabilities; 0 where the mask is false."""
    rewards: torch.Tensor
    """[rows], of the rollout that a row belongs to."""
    lengths: tuple[int, ...]
    """Tokens of each row without padding."""

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """Of the policy."""
        return int(self.mask.sum().item())

    def part(self, places: Sequence[int]) -> "PpoRows":
        """Some of the rows, cut to the longest of them."""
        longest = max((self.lengths[place] for place in places), default=0)
        chosen = torch.tensor(list(places), dtype=torch.long, device=self.ids.device)
        return PpoRows(
            ids=self.ids[chosen, :longest],
            mask=self.mask[chosen, :longest],
            sampled=self.sampled[chosen, :longest],
            rewards=self.rewards[chosen],
            lengths=tuple(self.lengths[place] for place in places),
        )

    def micro_batches(self, places: Sequence[int], *, number: int) -> list[list[int]]:
        """Cut a choice of rows into at most `number` parts, rows of like length together; the longest come first."""
        order = sorted(places, key=lambda at: (-self.lengths[at], at))
        size = max(1, -(-len(order) // number))
        return [order[first : first + size] for first in range(0, len(order), size)]


def rows_of(
    samples: Sequence[Sequence[Sample]], rewards: Sequence[float | None], *, device: torch.device | None = None
) -> PpoRows:
    """Every context of every rollout that is not masked and in which the policy wrote anything.

    Args:
        samples: of each rollout, its own context and its branches; each gets the reward of the rollout.
        rewards: of each rollout, None where it is masked: then it gives no row at all.
        device: where the tensors go.
    """
    kept = [
        (sample, reward)
        for own, reward in zip(samples, rewards, strict=True)
        if reward is not None
        for sample in own
        if any(sample.mask[1:])
    ]
    longest = max((len(sample.ids) for sample, _ in kept), default=0)
    ids = torch.zeros((len(kept), longest), dtype=torch.long)
    mask = torch.zeros((len(kept), longest), dtype=torch.bool)
    sampled = torch.zeros((len(kept), longest))
    for row, (sample, _) in enumerate(kept):
        size = len(sample.ids)
        ids[row, :size] = torch.tensor(sample.ids)
        mask[row, 1:size] = torch.tensor(sample.mask[1:])
        sampled[row, :size] = torch.tensor(sample.logprobs)
    where = device or torch.device("cpu")
    return PpoRows(
        ids=ids.to(where),
        mask=mask.to(where),
        sampled=sampled.to(where),
        rewards=rewards_of([reward for _, reward in kept]).to(where),
        lengths=tuple(len(sample.ids) for sample, _ in kept),
    )
