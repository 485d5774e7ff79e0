"""The outcome alone, and if wanted a share for the protocol's format: the baseline that the papers compare with."""

from typing import ClassVar

from pydantic import Field

from agent.protocols.shapes import fits
from train.evaluation.abstention import abstains
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.blocks import shape
from train.rewards.support.scores import Metric, right, score
from train.rewards.support.searches import rejected, retrievals
from train.rewards.task import Task


class OutcomeSettings(RewardSettings):
    ours: ClassVar = {"answer": "mean"}

    answer: Metric = "f1"
    format_bonus: float = Field(default=0.0, ge=0)
    needs_search: bool = False
    """Whether an answer counts only where something was searched: it trains a policy to search every time."""
    unknown: float = Field(default=0.0, ge=0, lt=1)
    """What saying that one doesn't know gets where there is an answer. At 0 a guess always pays; at .3 it pays for a
    policy that is right more often than 3 times in 10."""

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
            "answer": counts * self._answer(rollout.answer, task),
            "format": self.settings.format_bonus * well_formed(rollout),
        }

    def _answer(self, answer: str | None, task: Task) -> float:
        if not task.unanswerable and answer is not None and abstains(answer) and not right(answer, task):
            return self.settings.unknown  # where "unknown" is the gold answer, it is an answer
        return score(answer, task, self.settings.answer)
