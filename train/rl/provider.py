"""What a trainer takes from the run around it: the rows of each step, and where its figures go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from train.rl.batch import WeightedRow

Figures = dict[str, float]


@dataclass(frozen=True)
class TrainingBatch:
    """The rows of one batch of rollouts, in this process."""

    micro_batches: Sequence[Sequence[WeightedRow]]
    """`minibatches * micro_batches` of the recipe."""
    whole: float
    """What the loss of the whole batch is divided by: policy tokens or rollouts, over all processes."""
    exact: bool
    """Whether the engine's log-probabilities are those of the weights that are trained, up to rounding."""


class BatchProvider(Protocol):
    """Makes training batches and takes the figures of each step; see `train.rl.run`."""

    def training_batch(self, step: int, model: Any) -> TrainingBatch:
        """Run the rollouts of a step (from 0) with the model's weights."""
        ...

    def learned(self, step: int, figures: Figures) -> None:
        """Take the trainer's figures of a step, before its state is saved."""
        ...

    @property
    def interrupted(self) -> bool:
        """Whether the run is to end after this step."""
        ...
