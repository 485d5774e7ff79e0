"""What goes into the store and comes out of it, as plain values."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from agent.trace import StopReason, Trace

State = Literal["running"] | StopReason
STATES: Final = frozenset(("running", *get_args(StopReason)))
Origin = Literal["api", "v1"]
ORIGINS: Final[Mapping[str, Origin]] = {"api": "api", "v1": "v1"}
RunCommand = Literal["", "cancel", "answer_now"]


_PIECES: Final = TypeAdapter(list[tuple[str, str]])


def _no_metadata() -> str:
    """The trace is all that is kept."""
    return ""


def _no_one_waits() -> None:
    """No one waits for it to be stored."""


@dataclass(frozen=True)
class NewRun:
    """A run that begins, or one that is kept when it has ended."""

    trace: Trace
    model: str
    key_id: str = ""
    metadata: Callable[[], str] = _no_metadata
    """What its API keeps beside the trace, to show it again; read when the run is stored, and again at its end."""
    then: Callable[[], object] = _no_one_waits
    """Called when a run that was kept is stored, or given up."""

    @property
    def waited_for(self) -> bool:
        return self.then is not _no_one_waits


@dataclass(frozen=True)
class StepRow:
    """One closed step of a run: its number from 1, itself as JSON, and what the trace gained with it as JSON."""

    seq: int
    step: str
    grown: str


@dataclass(frozen=True)
class RunFigures:
    """What lists show of the use of a run."""

    seconds: float = 0.0
    rounds: int = 0
    searches: int = 0
    passages: int = 0
    tokens: int = 0
    credits: float = 0.0
    usd: float = 0.0


@dataclass(frozen=True)
class RunRow:
    """A run as lists show it, without its trace."""

    id: str
    conversation: str
    question: str
    answer: str | None
    origin: Origin
    model: str
    protocol: str
    policy: str
    state: State
    key_id: str
    created: float
    """As it is stored, so that the next page goes on from there: perhaps no time that there is."""
    ended: float | None
    figures: RunFigures
    mine: bool = False
    """Whether the reading process owns it."""

    @property
    def running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True)
class OpenBlock:
    """Text that is being written, as (role, text): cleared by the step that closes it."""

    pieces: tuple[tuple[str, str], ...] = ()

    @property
    def chars(self) -> int:
        return sum(len(text) for _, text in self.pieces)

    def as_json(self) -> str:
        return json.dumps(self.pieces, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "OpenBlock":
        """Read what `as_json` wrote. What can't be read is empty: it is text that a step will repeat."""
        try:
            return cls(tuple(_PIECES.validate_json(text)))
        except ValidationError:
            return cls()


def state_of(trace: Trace) -> State:
    """How a run ended; one without an end was interrupted."""
    return trace.stopped.reason if trace.stopped else "interrupted"


def figures_of(trace: Trace) -> dict[str, Any]:
    """The columns that lists read, from the trace of a run that ended."""
    usage = trace.usage
    return {
        "answer": trace.answer,
        "state": state_of(trace),
        "seconds": trace.timings.total,
        "rounds": usage.rounds,
        "searches": usage.searches,
        "passages": usage.passages,
        "tokens": usage.prompt_tokens + usage.environment_tokens + usage.policy_tokens,
        "credits": usage.credits,
        "usd": usage.usd,
    }
