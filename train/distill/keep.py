"""Which rollouts are worth learning from, and why the others are not. It looks at traces and gold alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.protocols import TextProtocol, protocol_named
from agent.sources.questions import GoldQuestion
from agent.trace import DOUBTED, Planned, PlanRejected, Trace
from train.rewards import Reward, Task, reward_of
from train.rewards.base import RolloutView
from train.rewards.outcome import well_formed
from train.rewards.support.masking import why_masked

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, kw_only=True)
class KeepRules:
    """What a rollout must be, to be kept."""

    right: bool = True
    """Its answer is right (exact match, SQuAD normalisation; where nothing answers the question, saying so)."""
    supported: bool = True
    """Each of its claims is found in what it cites."""
    protocol: TextProtocol | None = None
    """Of the rollouts, where it is not a built-in one."""
    reward: Reward[Any] | None = None
    """Its parts are computed, too."""
    least: Mapping[str, float] = field(default_factory=dict[str, float])
    """Part of that reward, or `total` → what it must reach."""
    each: int = 1
    """Rollouts that are kept of one question under one protocol: the best ones."""


@dataclass(frozen=True)
class KeepVerdict:
    """What the check says of one rollout."""

    trace: Trace
    question: GoldQuestion | None
    why_not: str
    """Empty where it is kept."""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def rank(self) -> tuple[float, int, int]:
        """The best first: most reward, then fewest searches, then fewest tokens."""
        return (-sum(self.parts.values()), self.trace.usage.searches, self.trace.usage.policy_tokens)


def key_of(question: str, history: Iterable[tuple[str, str]]) -> Key:
    """What makes a rollout's question one of the list."""
    return (" ".join(question.split()), tuple(history))


async def judge(traces: Iterable[Trace], questions: Sequence[GoldQuestion], check: KeepRules) -> list[KeepVerdict]:
    """Hold every rollout against the check.

    Args:
        traces: ended, in any order; of one question there may be several.
        questions: with their gold.
        check: what is kept.
    """
    known = {key_of(question.question, question.history): question for question in questions}
    exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
    seen: set[str] = set()
    verdicts: list[KeepVerdict] = []
    for trace in traces:
        question = known.get(key_of(trace.question, trace.history))
        verdict = await _verdict(trace, question, check, exact)
        same = f"{trace.protocol}\n{''.join(segment.text for segment in trace.segments if segment.by != 'prompt')}"
        if not verdict.why_not and f"{trace.question}\n{same}" in seen:
            verdict = KeepVerdict(trace, question, "the same was kept already", verdict.parts)
        elif not verdict.why_not:
            seen.add(f"{trace.question}\n{same}")
        verdicts.append(verdict)
    return _best(verdicts, check.each)


async def _verdict(trace: Trace, question: GoldQuestion | None, check: KeepRules, exact: Reward[Any]) -> KeepVerdict:
    if why := _broken(trace, check.protocol or protocol_named(trace.protocol)):
        return KeepVerdict(trace, question, why)
    needs_gold = check.right or check.reward is not None
    if question is None:
        return KeepVerdict(trace, None, "its question is not in the list" if needs_gold else _unsupported(trace, check))
    task = Task.of(question)
    right = await exact.score(trace, task, protocol=check.protocol) if check.right else None
    if check.right and (right is None or right.parts["answer"] < 1):
        return KeepVerdict(trace, question, "the answer is wrong")
    if why := _unsupported(trace, check):
        return KeepVerdict(trace, question, why)
    if check.reward is None:
        return KeepVerdict(trace, question, "", right.parts if right else {})
    rewarded = await check.reward.score(trace, task, protocol=check.protocol)
    if rewarded is None:
        return KeepVerdict(trace, question, "its reward could not be computed")
    parts = {**rewarded.parts, "total": rewarded.total}
    low = next((part for part, least in check.least.items() if parts[part] < least), None)
    why = f"{low} of the reward is below {check.least[low]:g}" if low else ""
    return KeepVerdict(trace, question, why, rewarded.parts)


def _broken(trace: Trace, protocol: TextProtocol) -> str:
    """Why a rollout is no example to learn from, whatever it answers."""
    if why := why_masked(trace):
        return why
    if trace.stopped is None or trace.stopped.reason != "answered":
        return "it did not end with an answer of its own"
    if any(isinstance(s, PlanRejected) or (isinstance(s, Planned) and s.plan.dropped) for s in trace.steps):
        return "a plan of it could not run"
    if not well_formed(RolloutView(trace, protocol)):
        return "it is not in the form of its protocol"
    own = [segment for segment in trace.segments if segment.branch == "main"]
    if any(segment.by == "loop" for segment in own) and any(segment.ids is None for segment in own):
        return "the loop spoke in it, in words for a chat"
    return ""


def _unsupported(trace: Trace, check: KeepRules) -> str:
    found = check.supported and any(claim.check in DOUBTED | {"unchecked"} for claim in trace.claims)
    return "a claim is not found in what it cites" if found else ""


def _best(verdicts: Sequence[KeepVerdict], each: int) -> list[KeepVerdict]:
    """The same with what is too many of one question left out."""
    alike: dict[tuple[Key, str], list[KeepVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if not verdict.why_not:
            alike[key_of(verdict.trace.question, verdict.trace.history), verdict.trace.protocol].append(verdict)
    kept = {id(verdict) for group in alike.values() for verdict in sorted(group, key=lambda v: v.rank)[:each]}
    return [
        verdict
        if verdict.why_not or id(verdict) in kept
        else KeepVerdict(verdict.trace, verdict.question, "others of its question are better", verdict.parts)
        for verdict in verdicts
    ]
