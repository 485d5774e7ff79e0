"""A whole rollout in words: the passages that it cites, how it ended, what it used."""

import re
from collections.abc import Iterable

from agent.evidence import Passage
from agent.trace import Evidenced, Gathered, Merged, Reflected, Trace

_CITE = re.compile(r"\[(\d+)\]")

_BUDGETS = {
    "rounds": "no more rounds were allowed",
    "searches": "no more searches were allowed",
    "passages": "no more passages were allowed",
    "policy_tokens": "it had used up its tokens",
    "context": "its context was full",
    "seconds": "its time was over",
    "credits": "the paid searches were used up",
    "user": "you requested the answer",
}
_ENDS = {
    "bad_format": "no answer: the policy did not keep to its format",
    "cancelled": "cancelled",
    "engine": "no answer: the engine failed",
    "interrupted": "interrupted",
}


def cited_passages(trace: Trace) -> list[Passage]:
    """The passages behind the answer: what the evidence cites, or, without evidence, what merges and reflections do.

    A number means the passage that carried it last when it was cited; protocols may start again in each round.
    """
    shown: dict[int, Passage] = {}
    by_evidence: list[Passage] = []
    by_merges: list[Passage] = []
    for step in trace.steps:
        match step:
            case Gathered():
                shown |= {passage.number: passage for passage in step.passages}
            case Evidenced():
                by_evidence += [shown[n] for claim in step.claims for n in claim.cites if n in shown]
            case Merged() | Reflected():
                by_merges += [shown[n] for n in map(int, _CITE.findall(step.text)) if n in shown]
            case _:
                pass
    return _once(by_evidence or by_merges)


def _once(passages: Iterable[Passage]) -> list[Passage]:
    return list({passage.identity: passage for passage in passages}.values())


def closing_line(trace: Trace) -> str:
    """How it ended and what it used, in one line."""
    usage = trace.usage
    parts = [
        ending(trace),
        _count(usage.rounds, "round"),
        _count(usage.searches, "search"),
        _count(usage.policy_tokens, "token"),
        *([f"${usage.usd:.3f}"] if usage.usd else []),
        f"{trace.timings.total:.2f} s",
    ]
    return " · ".join(parts)


def rung_line(trace: Trace) -> str:
    """How the model was spoken to and why, in a sentence; empty for one that speaks the protocol."""
    used = [f"{each.rung} ({each.why})" if each.why else each.rung for each in trace.rungs]
    return f"The model was spoken to on the rung {', then '.join(used)}." if used else ""


def ending(trace: Trace) -> str:
    """Why the rollout stopped, in words."""
    stopped = trace.stopped
    if stopped is None:
        return "not finished"
    if stopped.reason == "answered":
        return stopped.detail or "answered"
    if stopped.reason == "forced" and stopped.budget:
        if trace.answer is None:
            return f"ended without an answer because {_BUDGETS[stopped.budget]}"
        return f"answered because {_BUDGETS[stopped.budget]}"
    said = _ENDS.get(stopped.reason, stopped.reason)
    return f"{said} ({stopped.detail})" if stopped.detail else said


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
