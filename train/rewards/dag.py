"""Reasoning-Search's rewards (R-Search, arXiv 2506.08352, section 3.2): format, a plan that can run, the answer."""

from typing import ClassVar, Literal

from pydantic import Field

from agent.errors import PlanError
from agent.plan.text import read_lines
from agent.trace import Planned
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.blocks import has_shape
from train.rewards.support.scores import ChoiceMetric, Metric, choice_score, score
from train.rewards.support.searches import rejected, rounds_of, without_repeats
from train.rewards.task import Task

ONCE_EACH = "thought search information answer "
REASONED = "thought search information (text )?answer "
"""The same, with text in the policy's own words between result and answer."""


class DagSettings(RewardSettings):
    ours: ClassVar = {
        "answer": "mean",
        "choice": "exact",
        "strays": "behind_result",
        "blank": False,
        "repeats": False,
    }

    answer: Metric | Literal["judge"] = "judge"
    """Of everything but multiple choice."""
    choice: ChoiceMetric = "f1"
    """Of multiple choice: F1 between sets of options, which pays for naming all of them, or their equality."""
    format_weight: float = Field(default=0.25, ge=0)
    plan_weight: float = Field(default=0.25, ge=0)
    answer_weight: float = Field(default=0.5, ge=0)
    strays: Literal["anywhere", "behind_result", "nowhere"] = "anywhere"
    """Where text may stand outside of all blocks. Behind the result the policy may say what follows from it."""
    blank: bool = True
    """Whether a block may be empty."""
    repeats: bool = True
    """Whether a plan may ask the same twice."""

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        return 0.0, self.answer_weight + (self.format_weight + self.plan_weight if rounds else 0.0)


def format_part(rollout: RolloutView, settings: DagSettings) -> float:
    """1 if think, search, result and answer occur exactly once each, in this order."""
    blocks = [block for block in rollout.blocks if block.tagged or settings.strays != "anywhere"]
    if not settings.blank and any(block.blank for block in blocks):
        return 0.0
    wanted = REASONED if settings.strays == "behind_result" else ONCE_EACH
    return float(rollout.ended_well and has_shape(blocks, wanted))


def plan_part(rollout: RolloutView, settings: DagSettings) -> float:
    """1 if there is a plan without a circle of which every node has a query and a source that there is."""
    planned = any(isinstance(step, Planned) for step in rollout.trace.steps)
    if not planned or rejected(rollout.trace) or not _all_name_a_source(rollout):
        return 0.0
    if settings.repeats:
        return 1.0
    rounds = rounds_of(rollout.trace)
    return float(without_repeats(rounds) == rounds)


def _all_name_a_source(rollout: RolloutView) -> bool:
    """Whether each line of the written plans ends with a source; a plan itself gives one to those that do not."""
    if not rollout.protocol.sources or rollout.protocol.plan != "lines":
        return True
    plans = [step.plan for step in rollout.trace.steps if isinstance(step, Planned)]
    sources = {node.source for plan in plans for node in plan.nodes}
    try:
        drafts = [d for block in rollout.all("search") for d in read_lines(block.text, sources=sources).queries]
    except PlanError:
        return False
    return bool(drafts) and all(draft.source is not None for draft in drafts)


def answer_part(answer: str | None, task: Task, settings: DagSettings, *, judged: float = 0.0) -> float:
    """From 0 to 1; `judged` is what a judge says of it, where it is one who says."""
    if answer is None:
        return 0.0
    chosen = choice_score(answer, task, settings.choice)
    if chosen is not None:
        return chosen
    return judged if asks_judge(answer, task, settings) else score(answer, task, _metric(settings))


def asks_judge(answer: str | None, task: Task, settings: DagSettings) -> bool:
    """Whether a judge is needed: not for choices, for questions without an answer, or for an empty answer."""
    if settings.answer != "judge" or task.unanswerable or choice_score(answer, task, settings.choice) is not None:
        return False
    return answer is not None and any(c.isalnum() for c in answer)


def _metric(settings: DagSettings) -> Metric:
    return "f1" if settings.answer == "judge" else settings.answer


class DagReward(Reward[DagSettings]):
    name: ClassVar = "dag"
    parts: ClassVar = ("format", "plan", "answer")

    def needs(self) -> tuple[str, ...]:
        return ("judge",) if self.settings.answer == "judge" else ()

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        settings, said = self.settings, rollout.answer
        judged = await self.judged(task, said) if said and asks_judge(said, task, settings) else 0.0
        return {
            "format": settings.format_weight * format_part(rollout, settings),
            "plan": settings.plan_weight * plan_part(rollout, settings),
            "answer": settings.answer_weight * answer_part(said, task, settings, judged=judged),
        }
