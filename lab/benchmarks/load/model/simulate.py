"""The model itself: streams that ask again and again, one event loop, and an engine of a few workers. Nothing is run.

Streams, loop and workers are processes of simpy; the engine chooses its groups by the real engine's own rule.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import simpy

from agent.policies.base import Sampling
from agent.policies.batching import choose_group
from lab.benchmarks.load.model.cost import Cost, Member
from lab.benchmarks.load.model.runs import Run, Turn
from lab.benchmarks.load.streams import ramp_seconds
from lab.benchmarks.percentiles import percentiles

Steps = Generator[simpy.Event, Any, None]
_GREEDY: Final = Sampling(temperature=0)


@dataclass(frozen=True)
class Predicted:
    """What a load would see."""

    streams: int
    answers: int
    seconds: float
    """Until the last stream had ended."""
    answers_per_s: float
    answer_s_mean: float
    answer_s_p50: float
    answer_s_p95: float
    engine_busy: float
    """Workers that were at work, on average."""
    loop_busy: float
    """Share of the time in which the event loop was at work."""


@dataclass(frozen=True)
class Machine:
    """What the server runs on, in seconds of one core."""

    cost: Cost
    token_seconds: float
    """Of the event loop, for each token that it passes on while the engine goes on."""
    workers: int
    """Of the engine."""


class Shared:
    """Work that goes on at the same time, and slows itself down.

    Args:
        env: whose time it is.
        speed: of each piece of work, by how many there are; 1 is that of one alone.
    """

    def __init__(self, env: simpy.Environment, speed: Callable[[int], float]) -> None:
        self._env, self._speed = env, speed
        self._left: dict[simpy.Event, float] = {}
        self._since = 0.0
        self._round = 0
        self.busy = 0.0
        """Integral of the pieces that were at work over time."""

    def work(self, seconds: float) -> simpy.Event:
        """An event that happens when so much has been done."""
        self._advance()
        done = self._env.event()
        self._left[done] = seconds
        self._plan()
        return done

    def _advance(self) -> None:
        passed, self._since = self._env.now - self._since, self._env.now
        self.busy += passed * len(self._left)
        if self._left:
            did = passed * self._speed(len(self._left))
            self._left = {done: left - did for done, left in self._left.items()}

    def _plan(self) -> None:
        self._round += 1
        if self._left:
            least = max(0.0, min(self._left.values()))
            self._env.process(self._end_some(least / self._speed(len(self._left)), self._round))

    def _end_some(self, seconds: float, planned: int) -> Steps:
        yield self._env.timeout(seconds)
        if planned != self._round:
            return  # something came in between; another end was planned
        self._advance()
        for done in [done for done, left in self._left.items() if left <= 1e-9]:
            del self._left[done]
            done.succeed()
        self._plan()


@dataclass(frozen=True, eq=False)
class _Queued:
    """A turn in the engine's queue; what the rule of the groups reads of a request."""

    turn: Turn
    done: simpy.Event
    sampling: Sampling = _GREEDY

    @property
    def prompt(self) -> range:
        return range(self.turn.prompt)


class Engine:
    def __init__(self, env: simpy.Environment, machine: Machine) -> None:
        self._env, self._cost = env, machine.cost
        self._waiting: deque[_Queued] = deque()
        self._news = env.event()
        self.cores = Shared(env, lambda calls: 1.0 if calls < 2 else 1.0 / machine.cost.both)
        for _ in range(machine.workers):
            env.process(self._work())

    def sample(self, turn: Turn) -> simpy.Event:
        """An event that happens when the turn has its tokens."""
        queued = _Queued(turn, self._env.event())
        self._waiting.append(queued)
        if not self._news.triggered:
            self._news.succeed()
        return queued.done

    def _work(self) -> Steps:
        while True:
            while not self._waiting:
                if self._news.triggered:
                    self._news = self._env.event()
                yield self._news
            group = choose_group(self._waiting)
            for queued in group:
                self._waiting.remove(queued)
            members = [Member(queued.turn.prompt, queued.turn.tokens) for queued in group]
            for segment in self._cost.segments(members):
                yield self.cores.work(segment.seconds)
                for place in segment.done:
                    group[place].done.succeed()


class Loop:
    """The server's one thread beside the engine: first come, first served."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env, self._thread = env, simpy.Resource(env)
        self.busy = 0.0

    def work(self, seconds: float) -> Steps:
        with self._thread.request() as turn:  # pyright: ignore[reportUnknownVariableType]
            yield turn
            yield self._env.timeout(seconds)
            self.busy += seconds


def predict(runs: Sequence[Run], machine: Machine, *, streams: int, seconds: float) -> Predicted:
    """What `cairn bench load` would measure.

    Args:
        runs: of each question, in their order; a stream goes on with the first one at the end.
        machine: on which they run.
        streams: open at the same time; each one sends the next question when it has its answer.
        seconds: after which no new one begins; those that are open end.
    """
    env = simpy.Environment()
    engine, loop = Engine(env, machine), Loop(env)
    took: list[float] = []

    def answer(run: Run) -> Steps:
        for stage in run.stages:
            yield from loop.work(stage.gap_seconds)
            for turn in stage.turns:
                env.process(loop.work(machine.token_seconds * turn.tokens))
            yield env.all_of([engine.sample(turn) for turn in stage.turns])
        yield from loop.work(run.last_gap_seconds)

    def stream(number: int) -> Steps:
        yield env.timeout(ramp_seconds(seconds) * number / streams)
        turn = 0
        while env.now < seconds:
            began = env.now
            yield from answer(runs[(number + streams * turn) % len(runs)])
            took.append(env.now - began)
            turn += 1

    env.run(env.all_of([env.process(stream(number)) for number in range(streams)]))
    return predicted(took, streams=streams, seconds=env.now, engine=engine.cores.busy, loop=loop.busy)


def predicted(took: Sequence[float], *, streams: int, seconds: float, engine: float, loop: float) -> Predicted:
    """The figures of answers that took `took` seconds each, in `seconds` together."""
    cuts = percentiles(took)
    return Predicted(
        streams=streams,
        answers=len(took),
        seconds=seconds,
        answers_per_s=len(took) / seconds,
        answer_s_mean=sum(took) / max(1, len(took)),
        answer_s_p50=cuts[49],
        answer_s_p95=cuts[94],
        engine_busy=engine / seconds,
        loop_busy=loop / seconds,
    )
