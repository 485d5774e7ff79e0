"""A trace as rows for a trainer: ids, loss mask, log-probabilities. It makes no tokens, it puts them together."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.trace import Segment, Trace


@dataclass(frozen=True)
class Sample:
    """One context from its prompt to its end. The three tuples have one entry for each token."""

    branch: str
    """`main`, or a key of `Trace.branches`."""
    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """Whether the token is trained: the policy sampled it, in this branch."""
    logprobs: tuple[float, ...]
    """The sampler's natural logarithms; 0 where the mask is false."""


def to_samples(trace: Trace) -> list[Sample]:
    """The rollout's own context, then each branch in the order of the trace.

    A branch's row begins with what it shares with its parent; there the mask is false, so that no token is trained
    twice.

    Raises:
        ValueError: a segment has no ids, or one of the policy's no log-probabilities: the engine gives none.
    """
    return [_sample(trace, branch) for branch in ("main", *trace.branches) if any(_own(trace, branch))]


def _sample(trace: Trace, branch: str) -> Sample:
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    for at in context_of(trace, branch):
        segment = trace.segments[at]
        numbers, sampled = _tokens(segment, at)
        trained = segment.by == "policy" and segment.branch == branch
        ids += numbers
        mask += [trained] * len(numbers)
        logprobs += sampled if trained else [0.0] * len(numbers)
    return Sample(branch, tuple(ids), tuple(mask), tuple(logprobs))


def context_of(trace: Trace, branch: str = "main") -> list[int]:
    """Places of the segments that a context holds, in their order.

    Raises:
        KeyError: the trace has no such branch.
    """
    own = list(_own(trace, branch))
    if branch == "main":
        return own
    fork = trace.branches[branch]
    return [at for at in context_of(trace, fork.parent) if at <= fork.segment] + own


def _own(trace: Trace, branch: str) -> Iterator[int]:
    return (at for at, segment in enumerate(trace.segments) if segment.branch == branch)


def _tokens(segment: Segment, at: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Ids and log-probabilities of a segment."""
    if segment.ids is None:
        raise ValueError(f"segment {at} has no token ids; rows can only be made of an engine's that gives them")
    if segment.by != "policy":
        return segment.ids, ()
    if segment.logprobs is None or len(segment.logprobs) != len(segment.ids):
        raise ValueError(f"segment {at} was sampled, and has not one log-probability for each token")
    return segment.ids, segment.logprobs
