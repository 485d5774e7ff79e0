"""DynaSearcher's rewards (its equations 1 to 6): a correct answer in the right format, and what the searches gained."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agent.evidence import Passage
from agent.sources.questions import gold_found
from train.evaluation.gold import fold
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.blocks import has_shape
from train.rewards.support.masking import Masked
from train.rewards.support.scores import Metric, by_length, score
from train.rewards.support.searches import rejected, retrievals, retrieved
from train.rewards.support.vectors import Vectors, cosines
from train.rewards.task import Task

SHAPE = "(thought search information )*(thought )?answer "


class KgSettings(RewardSettings):
    ours: ClassVar = {
        "answer": "mean",
        "floor": 0.0,
        "early": "all_found",
        "blank": False,
        "rejected_plans": False,
    }

    answer: Metric | Literal["by_length"] = "by_length"
    """`by_length`: F1 for an answer of `times` as many words as the gold, cover for a shorter one (equation 2)."""
    times: float = Field(default=3.0, gt=0)
    floor: float = Field(default=0.1, ge=0, le=1)
    """Least that the right format gives, whatever the answer (equation 1)."""
    alpha: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=0.9, gt=0, le=1)
    least_penalty: float = Field(default=-0.2, le=0)
    early: Literal["always", "all_found"] = "always"
    """When fewer retrievals than hops are a gain: always, or where they found all that is relevant."""
    relevance: Literal["named", "similar"] = "named"
    """`named`: a passage has a gold passage's id or title. `similar`: their texts' vectors are close."""
    similar_from: float = Field(default=0.8, ge=-1, le=1)
    """Least cosine of what is similar."""
    boxed: bool = True
    """Whether the answer must be in a box, in a protocol that has one."""
    blank: bool = True
    """Whether a block may be empty."""
    rejected_plans: bool = True
    """Whether a search that could not run is one in the format's eyes."""

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        """With any number of hops."""
        high = 1.0 if rounds else 0.0
        bonus = -self.least_penalty if self.early == "always" or rounds else 0.0
        return -self.alpha * (1 - self.gamma**rounds), 1.0 + self.alpha * (high + bonus)


def format_is_right(rollout: RolloutView, settings: KgSettings) -> bool:
    """Whether it goes from think to search and back, and ends with an answer in its box."""
    if not (rollout.ended_well and has_shape(rollout.blocks, SHAPE)):
        return False
    if not settings.blank and any(block.blank for block in rollout.blocks):
        return False
    if not settings.rejected_plans and rejected(rollout.trace):
        return False
    boxed = settings.boxed and rollout.protocol.answer_in == "boxed"
    return not boxed or any("\\boxed{" in block.text for block in rollout.all("answer"))


def accuracy_part(answer: str | None, task: Task, settings: KgSettings, *, well_formed: bool) -> float:
    """r_acc (equations 1 and 2)."""
    if not well_formed:
        return 0.0
    if settings.answer == "by_length":
        return max(settings.floor, by_length(answer, task, times=settings.times))
    return max(settings.floor, score(answer, task, settings.answer))


def recall(found: list[Passage], task: Task, settings: KgSettings, *, vectors: Vectors) -> float:
    """r_recall (equation 3): the share of the relevant passages that were found; 0 where none are known."""
    if settings.relevance == "similar":
        return _similar(found, task, settings, vectors)
    wanted = max(len(task.gold), len(task.titles))
    ids, titles = gold_found(task.gold, (p.id for p in found)), {fold(p.title) for p in found}
    hits = sum(
        (at < len(task.gold) and task.gold[at] in ids) or (at < len(task.titles) and fold(task.titles[at]) in titles)
        for at in range(wanted)
    )
    return hits / wanted if wanted else 0.0


def _similar(found: list[Passage], task: Task, settings: KgSettings, vectors: Vectors) -> float:
    if (task.gold or task.titles) and not task.texts:
        raise Masked('the texts of the gold passages are not known, which `relevance = "similar"` compares with')
    if not task.texts or not found:
        return 0.0
    near = cosines(vectors(task.texts), vectors([passage.text for passage in found])) >= settings.similar_from
    return float(np.mean(near.any(axis=1)))


def penalty(count: int, hops: int | None, settings: KgSettings, *, all_found: bool) -> float:
    """r_penalty (equation 5), of `count` retrievals; 0 where the hops are not known."""
    if hops is None:
        return 0.0
    value = max(settings.least_penalty, 1 - settings.gamma ** (count - hops))
    return value if settings.early == "always" or all_found else max(value, 0.0)


class KgReward(Reward[KgSettings]):
    name: ClassVar = "kg"
    parts: ClassVar = ("accuracy", "gain")

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        settings, count = self.settings, retrievals(rollout.trace)
        share = recall(retrieved(rollout.trace), task, settings, vectors=self.tools.vectors)
        hops = task.hops if task.hops is not None else len(task.gold) or len(task.titles) or None
        taken = penalty(count, hops, settings, all_found=share == 1)
        return {
            "accuracy": accuracy_part(rollout.answer, task, settings, well_formed=format_is_right(rollout, settings)),
            "gain": settings.alpha * (share - taken),
        }
