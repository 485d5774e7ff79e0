"""Dynamic sampling: how many questions each round of a step has, and when a run gives up.

DAPO (2503.14476, section 3.2) samples until the batch is full of groups whose rewards differ. Every process makes the
same decisions, because all of them see the same counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from train.rl.recipe import Learning
from train.safety.rules import Collapsed


class BatchNotFilled(Collapsed):
    """Round after round had no group whose rewards differ, so the batch cannot be filled."""


@dataclass
class DynamicSampling:
    """The rounds of one step. Without dynamic sampling there is one, and all its groups are kept."""

    learning: Learning
    wanted: int
    """Groups that a process contributes to the batch."""
    round: int = field(default=0, init=False)
    """Rounds that have ended."""
    _groups: int = field(default=0, init=False)
    _found: int = field(default=0, init=False)
    _idle: int = field(default=0, init=False)

    def sizes(self, kept: Sequence[int]) -> list[int]:
        """The number of questions that each process asks in the next round; all 0: the step has what it learns from.

        A process wants as many groups as it lacks; to fill the batch, for more where few groups teach something.

        Args:
            kept: groups that each process has so far.
        """
        missing = [max(0, self.wanted - have) for have in kept]
        resample = self.learning.resampling
        if self.round == 0:
            return missing
        if resample != "full":
            return missing if self.round <= resample else [0] * len(missing)
        return [min(self.wanted, ceil(lack * self._groups / max(1, self._found))) for lack in missing]

    def ended(self, step: int, *, groups: int, found: int, kept: Sequence[int]) -> None:
        """Count a round that has ended.

        Args:
            step: from 0.
            groups: of the round, over all processes.
            found: those of them whose rewards differ.
            kept: groups that each process has now.

        Raises:
            BatchNotFilled: the batch is to be full, and the last rounds brought it no nearer.
        """
        self.round += 1
        self._groups += groups
        self._found += found
        self._idle = 0 if found else self._idle + 1
        full = self.filled(kept) == 1
        if self.learning.resampling == "full" and not full and self._idle > self.learning.resample_patience:
            raise BatchNotFilled(
                f"the run stopped itself at step {step + 1}: {self._idle} rounds in a row had no group whose rewards "
                f"differ, and the batch has {sum(kept)} of {self.wanted * len(kept)} groups: choose harder or easier "
                "questions or another reward, or set `resample` to a number of rounds to learn from smaller batches"
            )

    def filled(self, kept: Sequence[int]) -> float:
        """The share of the batch that there is."""
        return sum(min(self.wanted, have) for have in kept) / (self.wanted * len(kept))
