"""How far the trainer's probabilities lie from the engine's, before anything is learned from a batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass
class Ratio:
    """Of the trainer's probabilities to the engine's, before the first update from a batch."""

    tokens: int = 0
    total: float = 0.0
    lowest: float = math.inf
    highest: float = 0.0
    difference: float = 0.0
    most: float = 0.0

    def add(self, differences: torch.Tensor) -> None:
        """Take differences of log-probabilities of policy tokens."""
        if differences.numel():
            ratios = differences.exp()
            self.tokens += ratios.numel()
            self.total += ratios.sum().item()
            self.lowest = min(self.lowest, ratios.min().item())
            self.highest = max(self.highest, ratios.max().item())
            self.difference += differences.abs().sum().item()
            self.most = max(self.most, differences.abs().max().item())

    @classmethod
    def joined(cls, parts: Sequence["Ratio"]) -> "Ratio":
        """Of all processes."""
        return cls(
            tokens=sum(part.tokens for part in parts),
            total=sum(part.total for part in parts),
            lowest=min(part.lowest for part in parts),
            highest=max(part.highest for part in parts),
            difference=sum(part.difference for part in parts),
            most=max(part.most for part in parts),
        )

    def figures(self) -> dict[str, float]:
        if not self.tokens:
            return {}
        return {
            "ratio_mean": self.total / self.tokens,
            "ratio_lowest": self.lowest,
            "ratio_highest": self.highest,
            "logprob_difference_mean": self.difference / self.tokens,
            "logprob_difference_most": self.most,
        }
