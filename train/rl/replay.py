"""A rollout from a recorded prefix: the loop runs it again, and the policy and its sources repeat what is recorded.

So nothing of a live rollout is copied: budgets, steps and context are those that the loop makes of the same turns.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from agent.plan import Filter, Node
from agent.policies.base import Chunk, Policy, Sampling, Spelled, WrappedPolicy
from agent.policies.token_context import TokenContext
from agent.protocols.base import TextProtocol
from agent.sources.base import SearchRequest, SearchResult, Source, credits_of
from agent.trace import Author, Gathered, Planned, Searched, Segment, Trace
from train.rl.turns import observations, turn_count


@dataclass(frozen=True)
class Prefix:
    """The first turns of a rollout, each with its observation."""

    sampled: tuple[Segment, ...] = ()
    """What the policy sampled, a segment for each turn."""
    searches: tuple[tuple[Node, Searched], ...] = ()
    """With the node of the plan that each is of."""

    @property
    def tokens(self) -> int:
        """That the policy sampled."""
        return sum(len(segment.ids or ()) for segment in self.sampled)

    @property
    def turns(self) -> int:
        return len(self.sampled)


def prefix_of(trace: Trace, turns: int) -> Prefix:
    """The first `turns` turns of a rollout; at most `whole_turns` of it."""
    end = observations(trace)[turns - 1] if turns else 0
    sampled = tuple(one for one in trace.segments[:end] if one.by == "policy")
    shown = (step for step in trace.steps if isinstance(step, Gathered) and step.segments)
    rounds = {step.round for step in shown if step.segments[0] <= end}
    plans = (step for step in trace.steps if isinstance(step, Planned))
    nodes = {(step.round, node.id): node for step in plans for node in step.plan.nodes}
    searches = (step for step in trace.steps if isinstance(step, Searched) and step.round in rounds)
    return Prefix(sampled, tuple((nodes[step.round, step.node], step) for step in searches))


def whole_turns(trace: Trace) -> int:
    """How many turns can be repeated: those with an observation that another turn follows, before any branch.

    What was sampled in a branch depends on which of several was done first, so nothing is repeated from there on.
    """
    ends = observations(trace)[: turn_count(trace) - 1]
    branched = min((at for at, one in enumerate(trace.segments) if one.branch != "main"), default=len(trace.segments))
    return sum(end < branched for end in ends)


@dataclass(frozen=True)
class RepeatingPolicy(WrappedPolicy[Policy]):
    """A policy whose contexts first say what a prefix holds, with its ids and log-probabilities."""

    prefix: Prefix

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The policy's own: they decide how passages are shown."""
        return self.policy.special_tokens if isinstance(self.policy, Spelled) else ()

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "RepeatingContext":
        context = self.policy.open(protocol, question, history=history, date=date)
        assert isinstance(context, TokenContext), "trained rollouts have tokens"
        return RepeatingContext(context, list(self.prefix.sampled))

    async def aclose(self) -> None:
        """The policy is another one's."""


@dataclass
class RepeatingContext:
    """One context; see `RepeatingPolicy`."""

    context: TokenContext
    left: list[Segment]
    """What is still to be repeated."""

    @property
    def segments(self) -> list[Segment]:
        return self.context.segments

    @property
    def tokens(self) -> int:
        return self.context.tokens

    @property
    def ended_turn(self) -> bool:
        return self.context.ended_turn

    def count(self, text: str) -> int:
        return self.context.count(text)

    def append(self, text: str, *, by: Author) -> Segment:
        return self.context.append(text, by=by)

    def fork(self) -> "RepeatingContext":
        return RepeatingContext(self.context.fork(), list(self.left))

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """The next recorded turn in one piece, or what the policy samples."""
        if self.left:
            said = self.left.pop(0)
            self.context.repeat(said)
            yield Chunk(said.text, said.ids or (), said.logprobs or ())
            return
        async with aclosing(self.context.generate(sampling, stop=stop, max_tokens=max_tokens)) as chunks:
            async for chunk in chunks:
                yield chunk


Query = tuple[str, tuple[Filter, ...], tuple[str, ...], tuple[str, ...]]
"""By what searches of a source differ: text, filters, entities, relations."""


@dataclass(frozen=True)
class RepeatingSource:
    """A source that answers a recorded search with what it found then, and searches for anything else."""

    source: Source
    found: dict[Query, list[Searched]] = field(default_factory=dict[Query, list[Searched]])
    """In the order of their rounds; the last one holds for any further search."""

    @property
    def credits_per_search(self) -> float:
        return credits_of(self.source)

    async def search(self, request: SearchRequest) -> SearchResult:
        recorded = self.found.get((request.query, request.filters, request.entities, request.relations))
        if not recorded:
            return await self.source.search(request)
        step = recorded.pop(0) if len(recorded) > 1 else recorded[0]
        return SearchResult(
            step.passages,
            backend=step.backend,
            notes=(step.note,) if step.note else (),
            cached=step.cached,
            credits=step.credits,
            usd=step.usd,
            failures=step.failures,
            lost=step.lost,
        )


def repeating(sources: Mapping[str, Source], prefix: Prefix) -> dict[str, Source]:
    """The sources with what a prefix found; names that meant one source still do."""
    made = {id(source): RepeatingSource(source) for source in sources.values()}
    searched: set[tuple[int, int, Query]] = set()
    for node, step in prefix.searches:
        source, query = id(sources[step.source]), (node.query, node.filters, node.entities, node.relations)
        if (step.round, source, query) not in searched:  # equal queries of a plan are one search
            searched.add((step.round, source, query))
            made[source].found.setdefault(query, []).append(step)
    return {name: made[id(source)] for name, source in sources.items()}
