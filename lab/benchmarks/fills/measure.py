"""Chains in one round with fills beside one round for each hop: answers, tokens, wall time. All rollouts are real."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent.loop.agent import Agent
from agent.policies.base import Policy
from agent.policies.tokens import Codec
from agent.protocols import TextProtocol, protocol_named
from agent.sources.base import Source
from agent.trace import Trace
from agent.trace.attempts import UNKNOWN
from agent.world import Question, World
from lab.benchmarks.fills.policies import Begun, OraclePolicy, Slowed, script
from train.evaluation.normalisations import squad
from train.sft.episodes import Episode, episode
from train.sft.oracle import NotShown, Unreachable, can_fill


@dataclass(frozen=True)
class OraclePace:
    """What things take: the oracle's tokens and every search."""

    token_seconds: float
    search_seconds: float


@dataclass(frozen=True)
class FillsWay:
    """One way of searching, over the questions of one number of hops. Means are of those that both ways plan."""

    hops: int
    fills: bool
    n: int
    """Questions; each counts in `em`."""
    planned: int
    """Of these, the ones for which the oracle has the right turns in both ways."""
    em: float
    """Exact match after SQuAD's normalisation."""
    rounds: float
    searches: float
    policy_tokens: float
    """Sampled by the policy, its fills included."""
    context_tokens: float
    """Of the rollout's own context at its end."""
    seconds_p50: float
    seconds_p95: float


def chains(world: World, protocol: TextProtocol, *, hops: Sequence[int]) -> Iterator[Question]:
    """The questions with one of these numbers of hops that one round with fills can answer."""
    for question in world.questions:
        if question.hops in hops and len(question.plan) == question.hops and can_fill(question.plan, protocol):
            yield question


async def measure(
    world: World,
    *,
    codec: Codec,
    pace: OraclePace,
    policy: Policy | None = None,
    hops: Sequence[int] = (2, 3, 4),
    limit: int = 0,
    at_once: int = 8,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[FillsWay]:
    """Answer every question in both ways.

    Args:
        world: with questions.
        codec: whose tokens the oracle spells and counts.
        pace: of the oracle and of the searches.
        policy: a model that goes on after the oracle's first turn; None: the oracle writes it all.
        hops: of the questions.
        limit: questions of each number of hops; 0: all.
        at_once: rollouts at the same time.
        progress: gets how many of all rollouts are done.
    """
    protocol = protocol_named("cairn")
    by_hops = {n: list(chains(world, protocol, hops=[n]))[: limit or None] for n in hops}
    sources: dict[str, Source] = {name: Slowed(source, pace.search_seconds) for name, source in world.sources().items()}
    total, done = 2 * sum(map(len, by_hops.values())), 0
    free = asyncio.Semaphore(at_once)

    async def run(question: Question, expert: Episode | None) -> tuple[Trace, float]:
        nonlocal done
        async with free:
            started = time.perf_counter()
            agent = Agent(_policy_of(expert, codec, pace, policy), protocol, sources)
            trace = await agent.run(agent.new_trace(question.question, history=question.history))
            done += 1
            progress(done, total)
            return trace, time.perf_counter() - started

    ways: list[FillsWay] = []
    for number, questions in by_hops.items():
        # An episode runs an event loop of its own.
        episodes = {
            fill: [await asyncio.to_thread(_episode, world, q, protocol, fill=fill) for q in questions]
            for fill in (False, True)
        }
        planned = [one is not None and other is not None for one, other in zip(*episodes.values(), strict=True)]
        pairs = [(q, one) for at, q in enumerate(questions) for one in (episodes[False][at], episodes[True][at])]
        ran = await asyncio.gather(*(run(q, one) for q, one in pairs))  # side by side: both ways meet the same load
        if ran:
            ways += [_way(number, fill, questions, ran[fill::2], planned) for fill in (False, True)]
    return ways


def _episode(world: World, question: Question, protocol: TextProtocol, *, fill: bool) -> Episode | None:
    try:
        return episode(world, question, protocol, fill=fill)
    except (NotShown, Unreachable):
        return None


def _policy_of(expert: Episode | None, codec: Codec, pace: OraclePace, policy: Policy | None) -> Policy:
    if policy is None:
        return OraclePolicy(script(expert, codec), codec, pace.token_seconds)
    first = next((piece.text for piece in expert.pieces if piece.by == "policy"), "") if expert else ""
    return Begun(policy, first)


def _way(
    hops: int, fill: bool, questions: Sequence[Question], ran: Sequence[tuple[Trace, float]], planned: Sequence[bool]
) -> FillsWay:
    right = [_right(trace, question) for question, (trace, _) in zip(questions, ran, strict=True)]
    kept = [one for one, counts in zip(ran, planned, strict=True) if counts] or list(ran)
    traces, seconds = [trace for trace, _ in kept], sorted(took for _, took in kept)
    main = [[s for s in trace.segments if s.branch == "main"] for trace in traces]
    return FillsWay(
        hops=hops,
        fills=fill,
        n=len(questions),
        planned=sum(planned),
        em=fmean(right),
        rounds=fmean(trace.usage.rounds for trace in traces),
        searches=fmean(trace.usage.searches for trace in traces),
        policy_tokens=fmean(trace.usage.policy_tokens for trace in traces),
        context_tokens=fmean(sum(len(s.ids or ()) for s in segments) for segments in main),
        seconds_p50=_quantile(seconds, 0.5),
        seconds_p95=_quantile(seconds, 0.95),
    )


def _right(trace: Trace, question: Question) -> bool:
    """Exact match; where nothing answers the question, to say so is right and anything else is wrong."""
    said = squad(trace.answer or "")
    return bool(said) and said in {squad(answer) for answer in question.answers or (UNKNOWN,)}


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]
