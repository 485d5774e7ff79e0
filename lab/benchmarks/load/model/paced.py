"""The same loop under streams that are paced: tokens are due at a rate, and late where the loop has no time."""

import math
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Final

from lab.benchmarks.load.model.loop import LoopWork, wake_and_token
from lab.benchmarks.load.model.simulate import Predicted, predicted
from lab.benchmarks.load.streams import ramp_seconds

TICK: Final = 0.001
"""The loop sleeps for whole milliseconds, as the system's poll counts them; what is due by then is done together."""

_ROUNDS: Final = 3
"""Of counting wakes and fitting what they cost, each with the other. More do not settle it: the two trade off."""


@dataclass(frozen=True)
class PacedCost:
    """One answer of the paced policy, and what it costs the event loop."""

    turns: tuple[int, ...]
    """Tokens of each turn; a search stands between two."""
    tokens_per_s: float
    search_seconds: float
    rest_seconds: float
    """Of an answer beside its tokens and its search."""
    wake_seconds: float = 0.0
    """Of the loop, each time that it has slept."""
    token_seconds: float = 0.0
    """Of the loop, for a token."""


@dataclass(frozen=True)
class Paced:
    """What a paced load would see."""

    load: Predicted
    wakes: int
    tokens: int


@dataclass(frozen=True)
class PacedLoad:
    """A load that was measured."""

    streams: int
    seconds: float
    """After which no new answer began."""
    cpu_seconds: float
    """Of the loop."""


def predict_paced(pace: PacedCost, *, streams: int, seconds: float) -> Paced:
    """What `cairn bench load` would measure; see `simulate.predict`.

    The loop sleeps until the first token that is due, takes all that are due by then, and hands them on; a stream's
    next token is due by the clock, not by when the last one was taken.
    """
    answers = [_Answer(number, ramp_seconds(seconds) * number / streams) for number in range(streams)]
    due = [(answer.began + pace.rest_seconds, answer.stream) for answer in answers]
    now = 0.0
    wakes = tokens = 0
    took: list[float] = []
    while due:
        slept = due[0][0] > now
        now = _woken(now, due[0][0]) if slept else now
        taken: list[int] = []
        while due and due[0][0] <= now:
            taken.append(heappop(due)[1])
        wakes, tokens = wakes + slept, tokens + len(taken)
        now += slept * pace.wake_seconds
        for stream in taken:
            now += pace.token_seconds
            answer = answers[stream]
            if (then := answer.step(pace, now)) is None:
                took.append(now - answer.began)
                if now >= seconds:
                    continue
                answer.again(now)
                then = now + pace.rest_seconds
            heappush(due, (then, stream))
    busy = wakes * pace.wake_seconds + tokens * pace.token_seconds
    return Paced(predicted(took, streams=streams, seconds=now, engine=0.0, loop=busy), wakes, tokens)


def _woken(now: float, due: float) -> float:
    """When a loop that falls asleep now is awake, for what is due then."""
    return max(due, now + math.ceil((due - now) / TICK - 1e-9) * TICK)


@dataclass
class _Answer:
    """Where a stream is in its answer."""

    stream: int
    began: float
    turn: int = 0
    token: int = 0
    turn_began: float | None = None
    """None until its first token was taken."""

    def step(self, pace: PacedCost, now: float) -> float | None:
        """A token was taken: when the next one is due; None where that was the last of the answer."""
        if self.turn_began is None:
            self.turn_began = now
        self.token += 1
        if self.token < pace.turns[self.turn]:
            return self.turn_began + self.token / pace.tokens_per_s
        self.turn, self.token, self.turn_began = self.turn + 1, 0, None
        return now + pace.search_seconds if self.turn < len(pace.turns) else None

    def again(self, now: float) -> None:
        self.began, self.turn, self.token, self.turn_began = now, 0, 0, None


def fit_wakes(pace: PacedCost, few: PacedLoad, many: PacedLoad) -> PacedCost:
    """What a wake and a token cost, from the loop's CPU time in two loads; how often it woke is the model's own count.

    The dearer a wake, the more tokens are due when it is over, and the fewer wakes there are: the count is made again
    with what was found.
    """
    for _ in range(_ROUNDS):
        wake, token = wake_and_token(_work(pace, few), _work(pace, many))
        pace = replace(pace, wake_seconds=wake, token_seconds=token)
    return pace


def _work(pace: PacedCost, one: PacedLoad) -> LoopWork:
    found = predict_paced(pace, streams=one.streams, seconds=one.seconds)
    return LoopWork(found.wakes, found.tokens, one.cpu_seconds)
