"""What a call of the engine costs, and how that is fitted: a line for one context alone, two numbers for several.

Alone, a call costs a constant, its prompt's tokens, its steps, and at each step the tokens of its context. A member
more costs a share of a step; two calls at the same time are slowed by the caches, the memory and the interpreter that
they share.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.errors import SetupError
from lab.benchmarks.load.model.calls import Call

Floats = NDArray[np.float64]

LEAST_CALLS: Final = 20
_OUTLIER: Final = 5.0
"""Residuals over this many times the median one are left out, once: something else took the core."""
_MOSTLY: Final = 0.9
"""A call during so much of which another one was on its way was not alone."""


@dataclass(frozen=True)
class Member:
    """One context of a call."""

    prompt: int
    tokens: int


@dataclass(frozen=True)
class Segment:
    """A part of a call in which its members stay the same; behind it some of them have all their tokens."""

    seconds: float
    done: tuple[int, ...]
    """Places of those, in the call."""


@dataclass(frozen=True)
class Cost:
    """Seconds. The first four are of one context alone, the last two of several."""

    call: float
    prompt: float
    """A token that is read."""
    step: float
    """A token that is sampled."""
    attend: float
    """A token of the context, at each step."""
    member: float = 1.0
    """Share of a step that each member more costs."""
    both: float = 1.0
    """By how much calls at the same time slow each other down."""

    def segments(self, members: Sequence[Member]) -> list[Segment]:
        """A call whose members begin together; a longer prompt steps through what it has more than the shortest."""
        least = min(member.prompt for member in members)
        steps = [member.prompt - least + member.tokens for member in members]
        parts = [Segment(self.call + self.prompt * least * len(members), ())]
        for before, after in pairwise(sorted({0, *steps})):
            live = sum(count > before for count in steps)
            context = live * (least + (before + after) / 2)
            seconds = (after - before) * (self.step * (1 + self.member * (live - 1)) + self.attend * context)
            parts.append(Segment(seconds, tuple(place for place, count in enumerate(steps) if count == after)))
        return parts

    def seconds(self, members: Sequence[Member]) -> float:
        """Of a call that has the machine for itself."""
        return sum(part.seconds for part in self.segments(members))


def fit_alone(calls: Iterable[Call]) -> Cost:
    """The cost of one context, by least squares over the calls of a single stream.

    Raises:
        SetupError: there are too few calls.
    """
    alone = [(Member(c.prompts[0], c.tokens[0]), c.seconds) for c in calls if len(c.prompts) == 1 and c.tokens[0]]
    if len(alone) < LEAST_CALLS:
        raise SetupError(f"{len(alone)} calls of the engine are too few to fit its cost; ask alone for longer")
    units = (Cost(1, 0, 0, 0), Cost(0, 1, 0, 0), Cost(0, 0, 1, 0), Cost(0, 0, 0, 1))
    columns = np.array([[unit.seconds([member]) for unit in units] for member, _ in alone])
    call, prompt, step, attend = _trimmed(columns, np.array([seconds for _, seconds in alone])).tolist()
    return Cost(call, prompt, step, attend)


def fit_together(alone: Cost, calls: Iterable[Call]) -> Cost:
    """What a member more costs and how two calls slow each other down, over the calls of one load.

    Calls that had the engine for themselves say nothing of the second, and are left out.
    """
    kept = [call for call in _never_alone(sorted(calls, key=lambda call: call.began)) if all(call.tokens)]
    if len(kept) < LEAST_CALLS:
        return alone
    base, more = _with(alone, member=0.0), _with(alone, member=1.0)
    rows: list[tuple[float, float]] = []
    for call in kept:
        members = [Member(*pair) for pair in zip(call.prompts, call.tokens, strict=True)]
        rows.append((base.seconds(members), more.seconds(members) - base.seconds(members)))
    both, shared = _positive(np.array(rows), np.array([call.seconds for call in kept])).tolist()
    return _with(alone, member=shared / both if both else 1.0, both=max(1.0, both))


def _with(cost: Cost, *, member: float, both: float = 1.0) -> Cost:
    return Cost(cost.call, cost.prompt, cost.step, cost.attend, member, both)


def _never_alone(calls: Sequence[Call]) -> list[Call]:
    """Those during most of which another one was on its way."""
    return [
        call
        for place, call in enumerate(calls)
        if _overlap(call, [*calls[max(0, place - 4) : place], *calls[place + 1 : place + 12]]) > _MOSTLY
    ]


def _overlap(call: Call, others: Sequence[Call]) -> float:
    """The share of a call during which one of the others was on its way, too."""
    covered, at = 0, call.began
    for other in others:
        begins, ends = max(at, other.began), min(call.ended, other.ended)
        if ends > begins:
            covered, at = covered + ends - begins, ends
    return covered / max(1, call.ended - call.began)


def _trimmed(columns: Floats, seconds: Floats) -> Floats:
    """As `_positive`, a second time without what was far off the first time."""
    off = np.abs(columns @ _positive(columns, seconds) / seconds - 1)
    kept = off <= _OUTLIER * max(float(np.median(off)), 0.01)
    return _positive(columns[kept], seconds[kept])


def _positive(columns: Floats, seconds: Floats) -> Floats:
    """Least squares, the error of a call growing with the root of its time; no answer is negative.

    Columns whose answer would be are left out, the worst first.
    """
    used = [place for place in range(columns.shape[1]) if columns[:, place].any()]
    found = np.zeros(columns.shape[1])
    while used:
        weight = 1 / np.sqrt(seconds)
        answer = np.linalg.lstsq(columns[:, used] * weight[:, None], seconds * weight, rcond=None)[0]
        if answer.min() >= 0:
            found[used] = answer
            break
        used.pop(int(np.argmin(answer * columns[:, used].mean(axis=0))))
    return found
