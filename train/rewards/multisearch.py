"""MultiSearch's rewards (arXiv 2605.13534, section 2.2 and appendix A.3): answer, number of queries, merging."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from agent.evidence import Passage
from agent.trace import Gathered, Merged, Planned, Trace
from train.evaluation.words import size
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.grounds import merge_lines, supported, words_in
from train.rewards.support.scores import Metric, holds_answer, right, score
from train.rewards.support.searches import RewardedRound, rounds_of, without_repeats
from train.rewards.task import Task


class MultisearchSettings(RewardSettings):
    """As printed; the three variants of table 7 are `condition`, `level` and `answer`."""

    ours: ClassVar = {
        "answer": "mean",
        "condition": "correct",
        "repeats": False,
        "merge": "supported",
        "merge_share": 0.7,
    }

    answer: Metric = "f1"
    condition: Literal["positive", "correct", "none"] = "positive"
    """When the other two count: r_ans > 0 (equation 4), an exactly right answer (its text), or always."""
    level: Literal["rollout", "turn"] = "rollout"
    """`turn`: the other two are taken round by round, and averaged."""
    more_than: float = Field(default=2.0, ge=0)
    """Queries a round."""
    query_bonus: float = Field(default=0.1, ge=0)
    merge_bonus: float = Field(default=0.1, ge=0)
    repeats: bool = True
    """Whether a repeated query counts."""
    merge: Literal["anywhere", "supported"] = "anywhere"
    """Where the gold answer must stand: in a merge, or in a sentence of it that the passages say."""
    merge_share: float | None = Field(default=None, gt=0, le=1)
    """Most words of a merge, as a share of those that its round showed."""

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        unsearched = self.merge_bonus if self.merge == "anywhere" and self.level == "rollout" else 0.0
        return 0.0, 1.0 + (self.query_bonus + self.merge_bonus if rounds else unsearched)


@dataclass(frozen=True)
class Merge:
    """A merge, the round that it follows (0: before any search), and the passages until then."""

    round: int
    text: str
    passages: tuple[Passage, ...]
    new_passages: tuple[Passage, ...]


def merges_of(trace: Trace) -> list[Merge]:
    found: list[Merge] = []
    number, passages, now = 0, tuple[Passage, ...](), tuple[Passage, ...]()
    for step in trace.steps:
        match step:
            case Planned():
                number, now = step.round, ()
            case Gathered():
                now, passages = step.passages, passages + step.passages
            case Merged():
                found.append(Merge(number, step.text, passages, now))
            case _:
                pass
    return found


def query_part(rounds: Sequence[RewardedRound], settings: MultisearchSettings) -> float:
    """r_query (equation 2): the bonus if rounds hold more than `more_than` queries on average; 0 without a search."""
    counted = rounds if settings.repeats else without_repeats(rounds)
    queries = [len(one.queries) for one in counted]
    if not queries:
        return 0.0
    if settings.level == "turn":
        return settings.query_bonus * sum(n > settings.more_than for n in queries) / len(queries)
    return settings.query_bonus * (sum(queries) / len(queries) > settings.more_than)


def merge_part(
    merges: Sequence[Merge], rounds: Sequence[RewardedRound], task: Task, settings: MultisearchSettings
) -> float:
    """r_merge (equation 3): the bonus if a gold answer is in some merge; by turns, the share of rounds."""
    good = [merge.round for merge in merges if _good(merge, task, settings)]
    if settings.level == "turn":
        numbers = {one.number for one in rounds}
        return settings.merge_bonus * len(numbers & set(good)) / len(numbers) if numbers else 0.0
    return settings.merge_bonus * bool(good)


def _good(merge: Merge, task: Task, settings: MultisearchSettings) -> bool:
    if not holds_answer(merge.text, task.answers):
        return False
    if settings.merge_share is not None and size(merge.text) > settings.merge_share * words_in(merge.new_passages):
        return False
    if settings.merge == "anywhere":
        return True
    lines = [line for line in merge_lines(merge.text) if holds_answer(line, task.answers)]
    # Beside the answer's words, which are the gold's here, a sentence must say something.
    return any(supported(lines, merge.passages, answer=gold) for gold in task.answers)


def counts(answer: str | None, task: Task, settings: MultisearchSettings) -> bool:
    """Whether the rewards beside the answer's count (equation 4)."""
    match settings.condition:
        case "positive":
            return score(answer, task, settings.answer) > 0
        case "correct":
            return right(answer, task)
        case "none":
            return True


class MultisearchReward(Reward[MultisearchSettings]):
    name: ClassVar = "multisearch"
    parts: ClassVar = ("answer", "query", "merge")

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        settings, rounds = self.settings, rounds_of(rollout.trace)
        also = counts(rollout.answer, task, settings)
        return {
            "answer": score(rollout.answer, task, settings.answer),
            "query": query_part(rounds, settings) if also else 0.0,
            "merge": merge_part(merges_of(rollout.trace), rounds, task, settings) if also else 0.0,
        }
