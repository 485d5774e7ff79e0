"""The same loop under streams that are paced: tokens are due at a rate, and late where the loop has no time."""

from dataclasses import dataclass
from typing import Final

import simpy

from server.load.model.simulate import Loop, Predicted, Steps, predicted
from server.load.streams import ramp_seconds

_TOGETHER: Final = 4
"""Tokens that are followed as one, due with the last of them."""


@dataclass(frozen=True)
class Pace:
    """One answer of the paced policy, and what it costs the event loop."""

    turns: tuple[int, ...]
    """Tokens of each turn; a search stands between two."""
    tokens_per_s: float
    search_seconds: float
    token_seconds: float
    """Of the loop, for a token."""
    loop_share: float
    """Of its time, that the loop needs for itself."""
    rest_seconds: float
    """Of an answer beside its tokens and its search."""


def predict_paced(pace: Pace, *, streams: int, seconds: float) -> Predicted:
    """What `cairn bench load` would measure; see `simulate.predict`."""
    env = simpy.Environment()
    loop = Loop(env, pace.loop_share)
    took: list[float] = []

    def turn(tokens: int) -> Steps:
        began = env.now
        for first in range(0, tokens, _TOGETHER):
            last = min(tokens, first + _TOGETHER) - 1
            yield env.timeout(max(0.0, began + last / pace.tokens_per_s - env.now))
            yield from loop.work((last - first + 1) * pace.token_seconds)

    def stream(number: int) -> Steps:
        yield env.timeout(ramp_seconds(seconds) * number / streams)
        while env.now < seconds:
            began = env.now
            yield env.timeout(pace.rest_seconds)
            for place, tokens in enumerate(pace.turns):
                yield env.timeout(pace.search_seconds if place else 0.0)
                yield from turn(tokens)
            took.append(env.now - began)

    env.run(env.all_of([env.process(stream(number)) for number in range(streams)]))
    return predicted(took, streams=streams, seconds=env.now, engine=0.0, loop=loop.busy)
