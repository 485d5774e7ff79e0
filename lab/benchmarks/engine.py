"""What our loop costs over vLLM: whole rollouts beside AsyncLLM alone, which replays their very turns.

The environment answers at once from a recording, so that the engine and the loop are all that is measured. Both sides
read the same prompts and sample the same numbers of tokens, streamed token by token, from the same engine.
"""

import asyncio
import importlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.loop.agent import Agent
from agent.policies.vllm import VllmPolicy
from agent.protocols.base import TextProtocol
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Trace

BOUNDS: Final[Mapping[int, float]] = {1: 0.95, 8: 0.95, 32: 0.90}
"""Rollouts at once → the least share of AsyncLLM's tokens a second."""
TURNS: Final = 4
"""Rollouts, one after the other, in each of the places that run at once."""

Turn = tuple[tuple[int, ...], int]
"""The ids of a prompt, and how many tokens were sampled after it."""


def bound(rollouts: int) -> float:
    """What the ratio should be at least."""
    return next((least for most, least in BOUNDS.items() if rollouts <= most), min(BOUNDS.values()))


@dataclass(frozen=True)
class EngineRow:
    """Tokens a second at one number of rollouts at once: medians over the repeats."""

    rollouts: int
    ours: float
    alone: float
    ratio: float
    """The median of the repeats' own ratios."""
    worst: float
    ours_us: float
    """Microseconds of this process's CPU for each token: with our loop, and for AsyncLLM alone."""
    alone_us: float
    tokens: int
    """Sampled in one repeat, by each side."""
    repeats: int

    @property
    def holds(self) -> bool:
        return self.ratio >= bound(self.rollouts)


@dataclass(frozen=True)
class Took:
    """Wall time, and time of this process on all cores; vLLM's own processes are not in it."""

    seconds: float
    cpu_seconds: float


class _Clock:
    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    @property
    def took(self) -> Took:
        return Took(time.perf_counter() - self._began, time.process_time() - self._cpu)


class Recording:
    """A source that asks another one once for each query, and then answers at once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[str, SearchResult] = {}

    async def search(self, request: SearchRequest) -> SearchResult:
        key = f"{request.query}\n{request.limit}\n{[(each.name, each.value) for each in request.filters]}"
        if key not in self._found:
            self._found[key] = await self._source.search(request)
        return self._found[key]


async def measure(
    policy: VllmPolicy,
    *,
    protocol: TextProtocol,
    sources: Mapping[str, Source],
    questions: Sequence[str],
    rollouts: Sequence[int] = tuple(BOUNDS),
    repeats: int = 5,
    progress: Callable[[int], None] = lambda done: None,
) -> list[EngineRow]:
    """Run questions, and replay what was sampled, by turns.

    Args:
        policy: over one AsyncLLM, which both sides use.
        protocol: of the rollouts.
        sources: searched once for each query; afterwards they answer at once.
        questions: taken in order, again and again.
        rollouts: how many at once; a row each.
        repeats: of each pair of sides.
        progress: gets how many pairs are done.
    """
    recorded = {name: Recording(source) for name, source in sources.items()}
    agent = Agent(policy=policy, protocol=protocol, sources=recorded)
    rows: list[EngineRow] = []
    for at_once in rollouts:
        all_questions = [questions[place % len(questions)] for place in range(at_once * TURNS)]
        lanes = [all_questions[place::at_once] for place in range(at_once)]
        traces, _ = await _ours(policy, agent, lanes)  # records, and warms up
        await _alone(policy, traces)
        pairs: list[tuple[int, Took, Took]] = []
        for repeat in range(repeats):
            if repeat % 2:
                alone = await _alone(policy, traces)
                traces, ours = await _ours(policy, agent, lanes)
                pairs.append((_sampled(traces), ours, alone))
            else:
                traces, ours = await _ours(policy, agent, lanes)
                pairs.append((_sampled(traces), ours, await _alone(policy, traces)))
            progress(len(rows) * repeats + repeat + 1)
        rows.append(_row(at_once, pairs))
    return rows


def _row(at_once: int, pairs: Sequence[tuple[int, Took, Took]]) -> EngineRow:
    ratios = [alone.seconds / ours.seconds for _, ours, alone in pairs]
    return EngineRow(
        rollouts=at_once,
        ours=statistics.median(tokens / ours.seconds for tokens, ours, _ in pairs),
        alone=statistics.median(tokens / alone.seconds for tokens, _, alone in pairs),
        ratio=statistics.median(ratios),
        worst=min(ratios),
        ours_us=statistics.median(1e6 * ours.cpu_seconds / tokens for tokens, ours, _ in pairs),
        alone_us=statistics.median(1e6 * alone.cpu_seconds / tokens for tokens, _, alone in pairs),
        tokens=round(statistics.median(tokens for tokens, _, _ in pairs)),
        repeats=len(pairs),
    )


async def _ours(policy: VllmPolicy, agent: Agent, lanes: Sequence[Sequence[str]]) -> tuple[list[list[Trace]], Took]:
    """Whole rollouts: those of a lane one after the other, the lanes at the same time."""
    await _forget(policy)
    clock = _Clock()
    traces = await asyncio.gather(*(_lane(agent, lane) for lane in lanes))
    return list(traces), clock.took


async def _lane(agent: Agent, questions: Sequence[str]) -> list[Trace]:
    return [await agent.run(agent.new_trace(question)) for question in questions]


async def _alone(policy: VllmPolicy, traces: Sequence[Sequence[Trace]]) -> Took:
    """The same turns on AsyncLLM alone, in its own event loop."""
    await _forget(policy)
    lanes = [[turn for trace in lane for turn in turns(trace)] for lane in traces]
    return await asyncio.wrap_future(policy.engine.inside(lambda llm: _replay(llm, lanes)))


async def _replay(llm: Any, lanes: Sequence[Sequence[Turn]]) -> Took:
    sampling: Any = importlib.import_module("vllm.sampling_params")
    inputs: Any = importlib.import_module("vllm.inputs.engine")

    async def one(number: int, lane: Sequence[Turn]) -> None:
        for place, (prompt, tokens) in enumerate(lane):
            parameters = sampling.SamplingParams(
                temperature=0.0,
                max_tokens=tokens,
                ignore_eos=True,
                logprobs=0,
                detokenize=False,
                output_kind=sampling.RequestOutputKind.DELTA,
            )
            ids: list[int] = []
            async for output in llm.generate(inputs.tokens_input(list(prompt)), parameters, f"{number}-{place}"):
                ids += output.outputs[0].token_ids
            assert len(ids) == tokens

    clock = _Clock()
    await asyncio.gather(*(one(number, lane) for number, lane in enumerate(lanes)))
    return clock.took


async def _forget(policy: VllmPolicy) -> None:
    """Both sides begin with an empty prefix cache."""

    async def work(llm: Any) -> None:
        await llm.reset_prefix_cache()

    await asyncio.wrap_future(policy.engine.inside(work))


def turns(trace: Trace) -> list[Turn]:
    """What each turn of the policy read, and how many tokens it sampled."""
    found: list[Turn] = []
    before: list[int] = []
    for segment in trace.segments:
        ids = segment.ids or ()
        if segment.by == "policy":
            found.append((tuple(before), len(ids)))
        before += ids
    return found


def _sampled(traces: Sequence[Sequence[Trace]]) -> int:
    return sum(trace.usage.policy_tokens for lane in traces for trace in lane)
