"""One question's rollout as the model replays it: turns of the policy, and what the event loop does before each."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lab.benchmarks.load.model.calls import Call

_TOGETHER: Final = 0.5
"""Calls that overlap by more than this share of the shorter one were requested at the same time."""


@dataclass(frozen=True)
class Turn:
    prompt: int
    """Tokens of the context that is continued."""
    tokens: int
    """Sampled."""


@dataclass(frozen=True)
class RunStage:
    """Turns that go on at the same time: one, or a fill for each of several nodes."""

    gap_seconds: float
    """Of the event loop before it: HTTP and the prompt, or plan, searches and what they found."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Run:
    stages: tuple[RunStage, ...]
    last_gap_seconds: float
    """From the last token to the last byte."""

    @property
    def turns(self) -> int:
        return sum(len(stage.turns) for stage in self.stages)

    @property
    def tokens(self) -> int:
        return sum(turn.tokens for stage in self.stages for turn in stage.turns)

    @property
    def gap_seconds(self) -> float:
        return self.last_gap_seconds + sum(stage.gap_seconds for stage in self.stages)


@dataclass(frozen=True)
class TimedQuestion:
    """A question that was sent alone, and when, by `time.perf_counter_ns`."""

    question: int
    began: int
    ended: int


def runs_of(timed: Sequence[TimedQuestion], calls: Sequence[Call]) -> dict[int, Run]:
    """Question → its run, from the engine's calls between its beginning and its end; without calls there is none."""
    begins = [call.began for call in calls]
    runs: dict[int, Run] = {}
    for one in timed:
        own = calls[bisect_left(begins, one.began) : bisect_left(begins, one.ended)]
        if own:
            runs[one.question] = _run(one, own)
    return runs


def _run(one: TimedQuestion, calls: Sequence[Call]) -> Run:
    stages: list[RunStage] = []
    at = one.began
    for group in _together(calls):
        turns = (Turn(prompt, count) for call in group for prompt, count in zip(call.prompts, call.tokens, strict=True))
        stages.append(RunStage(max(0, group[0].began - at) / 1e9, tuple(turns)))
        at = max(call.ended for call in group)
    return Run(tuple(stages), max(0, one.ended - at) / 1e9)


def _together(calls: Sequence[Call]) -> list[list[Call]]:
    """Calls of one run in stages. The next turn may begin a moment before the call of the last one has returned."""
    stages: list[list[Call]] = []
    for call in calls:
        last = stages[-1][-1] if stages else None
        if last and last.ended - call.began > _TOGETHER * min(last.ended - last.began, call.ended - call.began):
            stages[-1].append(call)
        else:
            stages.append([call])
    return stages
