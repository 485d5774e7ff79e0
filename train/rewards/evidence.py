"""R-Search's rewards (with RSTool; its equations 5 to 8): answer, what another model makes of the evidence, format."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from agent.evidence import Passage
from agent.trace import Evidenced
from train.evaluation.words import size
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.grounds import evidence_lines, supported, words_in
from train.rewards.support.scores import Metric, holds_answer, score
from train.rewards.support.searches import retrievals
from train.rewards.task import Task


class EvidenceSettings(RewardSettings):
    ours: ClassVar = {"answer": "mean", "grounded": True, "evidence_share": 0.7}

    answer: Metric = "f1"
    """Of the policy's answer, and of the reader's."""
    reader: Literal["model", "cover"] = "model"
    """Who answers from the evidence: a frozen model of another family; or no reader, and 1 if the gold answer is in
    it as whole words."""
    grounded: bool = False
    """Whether only those lines of the evidence go to the reader that the observations say, and that say more than the
    policy's answer. The paper's evidence may be paraphrased and inferred."""
    evidence_share: float | None = Field(default=None, gt=0, le=1)
    """Most words of the evidence, as a share of those of all observations; what is longer is worth nothing."""
    gamma_evidence: float = Field(default=0.2, ge=0)
    gamma_answer: float = Field(default=0.2, ge=0)

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        return 0.0, 1.0 + self.gamma_evidence + self.gamma_answer + (1.0 if rounds else 0.0)


def format_part(rollout: RolloutView, settings: EvidenceSettings) -> float:
    """Equation 5. Without a search, no evidence is wanted, and its share is given."""
    answered = float(_exactly_one(rollout, "answer") and rollout.ended_well)
    evidenced = float(_exactly_one(rollout, "evidence")) if retrievals(rollout.trace) else 1.0
    return settings.gamma_evidence * evidenced + settings.gamma_answer * answered


def _exactly_one(rollout: RolloutView, role: str) -> bool:
    """Whether there is one block of this role, whole and not empty."""
    blocks = rollout.all(role)
    return len(blocks) == 1 and blocks[0].whole and not blocks[0].blank


def evidence_for_reader(rollout: RolloutView, settings: EvidenceSettings) -> str:
    """What of the last evidence block the reader gets; empty where there is nothing, or nothing was searched."""
    blocks = [step.text for step in rollout.trace.steps if isinstance(step, Evidenced)]
    if not blocks or not retrievals(rollout.trace):
        return ""
    text, passages = blocks[-1].strip(), rollout.trace.passages
    if settings.evidence_share is not None and size(text) > settings.evidence_share * words_in(passages):
        return ""
    return grounded(text, passages, answer=rollout.answer or "") if settings.grounded else text


def grounded(text: str, passages: Sequence[Passage], *, answer: str) -> str:
    """The lines of an evidence block that count, in their order."""
    return "\n".join(supported(evidence_lines(text), passages, answer=answer))


def evidence_part(read: str | None, task: Task, settings: EvidenceSettings) -> float:
    """r_e, of what the reader answered; None where there was no reader."""
    return score(read, task, settings.answer)


class EvidenceReward(Reward[EvidenceSettings]):
    name: ClassVar = "evidence"
    parts: ClassVar = ("answer", "evidence", "format")

    def needs(self) -> tuple[str, ...]:
        return ("reader",) if self.settings.reader == "model" else ()

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        return {
            "answer": score(rollout.answer, task, self.settings.answer),
            "evidence": await self._evidence(rollout, task),
            "format": format_part(rollout, self.settings),
        }

    async def _evidence(self, rollout: RolloutView, task: Task) -> float:
        given = evidence_for_reader(rollout, self.settings)
        if not given:
            return 0.0
        if self.settings.reader == "cover":
            return float(holds_answer(given, task.answers))
        return evidence_part(await self.read(task.question, given), task, self.settings)
