"""The trace of a run whose process died: what it began with, every step that was stored, and how it ended."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final

from pydantic import Field, TypeAdapter, ValidationError

from agent.evidence import Frozen, Passage
from agent.trace import Branch, Segment, Step, Stopped, Thought, Timings, Trace, Usage
from server.store.errors import StoreError
from server.store.records import OpenBlock

WHY: Final = "the server that ran it ended"
STEP: Final[TypeAdapter[Step]] = TypeAdapter(Step)


class Grown(Frozen):
    """What a trace gained with one step."""

    segments: tuple[Segment, ...] = ()
    passages: tuple[Passage, ...] = ()
    branches: dict[str, Branch] = Field(default_factory=dict[str, Branch])
    usage: Usage = Usage()
    timings: Timings = Timings()


class Growth:
    """Sees what a trace gained since the last look."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._segments = len(trace.segments)
        self._passages = len(trace.passages)
        self._branches = set(trace.branches)

    def since(self) -> Grown:
        trace = self._trace
        grown = Grown.model_construct(
            segments=tuple(trace.segments[self._segments :]),
            passages=tuple(trace.passages[self._passages :]),
            branches={name: branch for name, branch in trace.branches.items() if name not in self._branches},
            usage=trace.usage,
            timings=trace.timings,
        )
        self._segments, self._passages = len(trace.segments), len(trace.passages)
        self._branches = set(trace.branches)
        return grown


def read_trace(stored: str) -> Trace:
    """The trace of a run from the store.

    Raises:
        StoreError: this Cairn cannot read it.
    """
    with _readable():
        return Trace.model_validate_json(stored)


@contextmanager
def _readable() -> Generator[None]:
    try:
        yield
    except ValidationError as error:  # without what it quotes, which are questions of users
        raise StoreError("unreadable", f"{error.error_count()} errors in {error.title}") from None


def restored(
    begun: str, stored: Sequence[tuple[str, str]], open_block: OpenBlock, *, ends: bool = True
) -> tuple[Trace, list[Step]]:
    """The trace with all that was stored, ended as interrupted; and the steps that were added to end it.

    Args:
        begun: the trace as the run began, as JSON.
        stored: of each step (the step, what the trace gained with it), as JSON.
        open_block: what was being written; it is kept as a thought.
        ends: whether it has ended; otherwise nothing is added.

    Raises:
        StoreError: this Cairn cannot read it.
    """
    trace = read_trace(begun)
    for step, grown in stored:
        with _readable():
            trace.steps.append(STEP.validate_json(step))
            gained = Grown.model_validate_json(grown)
        trace.segments += gained.segments
        trace.passages += gained.passages
        trace.branches |= gained.branches
        trace.usage, trace.timings = gained.usage, gained.timings
    if not ends:
        return trace.model_copy(update={"steps": list(_within(trace.steps, len(trace.segments)))}), []
    seconds = max((step.seconds for step in trace.steps), default=0.0)
    written = "\n".join(text for _, text in open_block.pieces).strip()
    added: list[Step] = [Thought(text=written, seconds=seconds)] if written else []
    if trace.stopped is None:
        added.append(Stopped(reason="interrupted", detail=WHY, seconds=seconds))
        trace.timings = trace.timings.model_copy(update={"total": seconds})
    trace.steps += added
    trace.steps = list(_within(trace.steps, len(trace.segments)))
    return trace, added


def _within(steps: Iterable[Step], segments: int) -> Iterable[Step]:
    """Steps that point only at segments that are there."""
    for step in steps:
        there = tuple(place for place in step.segments if place < segments)
        yield step if there == step.segments else step.model_copy(update={"segments": there})
