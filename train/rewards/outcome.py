"""The outcome alone, and if wanted a share for the protocol's format: the baseline that the papers compare with."""

from typing import ClassVar

from agent.protocols.shapes import fits
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.blocks import shape
from train.rewards.support.scores import Metric, score
from train.rewards.support.searches import rejected, retrievals
from train.rewards.task import Task


class OutcomeSettings(RewardSettings):
    ours: ClassVar = {"answer": "mean"}

    answer: Metric = "f1"
    format_bonus: float = 0.0
    needs_search: bool = False
    """Whether an answer counts only where something was searched: it trains a policy to search every time."""

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        return 0.0, 1.0 + self.format_bonus


def well_formed(rollout: RolloutView) -> bool:
    """Whether the policy's blocks come as the protocol wants them, none of them empty, and every plan could run."""
    fine = rollout.ended_well and not rejected(rollout.trace) and not any(b.blank for b in rollout.blocks)
    wanted = rollout.protocol.well_formed
    return fine and bool(wanted) and fits(wanted, shape(rollout.blocks, untagged="thought").split())


class OutcomeReward(Reward[OutcomeSettings]):
    name: ClassVar = "outcome"
    parts: ClassVar = ("answer", "format")

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        counts = not self.settings.needs_search or retrievals(rollout.trace) > 0
        return {
            "answer": counts * score(rollout.answer, task, self.settings.answer),
            "format": self.settings.format_bonus * well_formed(rollout),
        }
