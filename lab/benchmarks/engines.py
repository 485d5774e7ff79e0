"""The same questions on several engines from one checkpoint: how often they say the same, how right, how fast."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.policies.base import Policy
from agent.protocols.base import TextProtocol
from agent.sources.base import Source
from agent.trace import Trace

PATIENT: Final = Budgets(seconds=3600, search_seconds=600, answer_seconds=3600)
"""A slow machine must not end a rollout otherwise than a fast one."""

Progress = Callable[[int], object]
Question = tuple[str, Sequence[str]]
"""A question, and the answers that are right."""


@dataclass(frozen=True)
class Difference:
    """Where a rollout first says something else than the reference does."""

    question: str
    said: str
    """From there on, in the segment in which they part."""
    reference: str


@dataclass(frozen=True)
class EngineFigures:
    """One engine over all questions."""

    engine: str
    n: int
    em: float
    """Share of answers that are a right one, as written."""
    equal: float
    """Share of rollouts whose every id is the reference's."""
    furthest: float
    """Largest distance of a log-probability from the reference's, over the equal rollouts."""
    tokens_per_s: float
    """Sampled, by all rollouts together, searches included."""
    first_difference: Difference | None


async def measure(
    engines: Mapping[str, Callable[[], Policy]],
    *,
    questions: Sequence[Question],
    protocol: TextProtocol,
    sources: Mapping[str, Source],
    at_once: int,
    progress: Progress,
) -> AsyncIterator[EngineFigures]:
    """Ask every engine every question, greedily, and yield its figures; the first engine is the reference.

    Args:
        engines: name → what loads it. One is loaded at a time.
        questions: in their order.
        protocol: that the checkpoint was trained on.
        sources: what is searched.
        at_once: rollouts that run at the same time.
        progress: gets how many rollouts are done, over all engines.
    """
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        progress(done)

    reference: list[Trace] = []
    for name, load in engines.items():
        agent = Agent(await asyncio.to_thread(load), protocol, sources, PATIENT)
        try:
            started = time.perf_counter()
            traces = await _ask(agent, questions, at_once=at_once, done=one_more)
            seconds = time.perf_counter() - started
        finally:
            await agent.policy.aclose()
        del agent  # with its weights, before the next engine is loaded
        reference = reference or traces
        yield _compare(name, traces, reference, questions, seconds=seconds)


async def _ask(agent: Agent, questions: Sequence[Question], *, at_once: int, done: Callable[[], None]) -> list[Trace]:
    places = asyncio.Semaphore(at_once)

    async def ask(question: str) -> Trace:
        async with places:
            trace = await agent.run(agent.new_trace(question))
            done()
            return trace

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(question)) for question, _ in questions]
    return [task.result() for task in tasks]


def _compare(
    name: str, traces: Sequence[Trace], reference: Sequence[Trace], questions: Sequence[Question], *, seconds: float
) -> EngineFigures:
    right = [trace.answer in answers for trace, (_, answers) in zip(traces, questions, strict=True)]
    parted = [first_difference(trace, other) for trace, other in zip(traces, reference, strict=True)]
    equal = [pair for pair, part in zip(zip(traces, reference, strict=True), parted, strict=True) if part is None]
    return EngineFigures(
        engine=name,
        n=len(traces),
        em=sum(right) / len(right),
        equal=len(equal) / len(traces),
        furthest=max((_distance(*pair) for pair in equal), default=0.0),
        tokens_per_s=sum(trace.usage.policy_tokens for trace in traces) / seconds,
        first_difference=next((part for part in parted if part is not None), None),
    )


def first_difference(trace: Trace, reference: Trace) -> Difference | None:
    """Where two rollouts of one question part; None where every segment has the same ids."""
    mine = [(segment.by, segment.ids, segment.text) for segment in trace.segments]
    yours = [(segment.by, segment.ids, segment.text) for segment in reference.segments]
    if [one[:2] for one in mine] == [other[:2] for other in yours]:
        return None
    said, other = next(
        ((one[2], other[2]) for one, other in zip(mine, yours, strict=False) if one[:2] != other[:2]), ("", "")
    )
    same = next((at for at, (a, b) in enumerate(zip(said, other, strict=False)) if a != b), min(len(said), len(other)))
    return Difference(trace.question, said[same:], other[same:])


def _distance(trace: Trace, reference: Trace) -> float:
    return max(
        (
            abs(ours - theirs)
            for one, other in zip(trace.segments, reference.segments, strict=True)
            for ours, theirs in zip(one.logprobs or (), other.logprobs or (), strict=True)
        ),
        default=0.0,
    )
