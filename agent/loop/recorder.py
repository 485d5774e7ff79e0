"""Writes what happens in a rollout into its trace, and emits it as it happens."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agent.checks.claims import checked, derived_claims, read_claims
from agent.plan import Plan
from agent.protocols.base import Role
from agent.protocols.parse import Block
from agent.trace import (
    Answered,
    Branch,
    Claim,
    Delta,
    Event,
    Evidenced,
    Filled,
    Merged,
    Reflected,
    Restated,
    Segment,
    Skipped,
    Step,
    Stopped,
    Thought,
    Trace,
)

Emit = Callable[[Event], None]

_PLAIN: Final[Mapping[Role, type[Thought] | type[Restated]]] = {
    "thought": Thought,
    "restated": Restated,
    "fill": Thought,
}


class Recorder:
    """The only writer of a trace."""

    def __init__(self, trace: Trace, emit: Emit, *, numbered: bool = True) -> None:
        """Write into `trace`; `numbered` says whether its protocol shows passages with numbers to cite."""
        self.trace = trace
        self._numbered = numbered
        self._emit = emit
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()

    @property
    def seconds(self) -> float:
        """Since the rollout began."""
        return self._clock() - self._began

    def delta(self, role: Role, text: str) -> None:
        self._emit(Delta(role=role, text=text))

    def step(self, step: Step, *, segments: Sequence[int] = ()) -> None:
        stamped = step.model_copy(update={"segments": tuple(segments), "seconds": self.seconds})
        self.trace.steps.append(stamped)
        self._emit(stamped)

    def block(self, block: Block, *, segments: Sequence[int]) -> None:
        """The step of a block that ends nothing: a thought, a merge, a reflection, evidence. Claims are checked."""
        text = block.text.strip()
        if block.role == "evidence":
            self.step(Evidenced(text=text, claims=self._checked(read_claims(text))), segments=segments)
        elif block.role in ("merge", "reflect"):
            step = Merged if block.role == "merge" else Reflected
            self.step(step(text=text, claims=self._checked(derived_claims(text))), segments=segments)
        elif step := _PLAIN.get(block.role):
            self.step(step(text=text), segments=segments)

    def _checked(self, claims: Sequence[Claim]) -> tuple[Claim, ...]:
        return checked(claims, self.trace.steps, numbered=self._numbered)

    def answer(self, text: str, *, segments: Sequence[int] = (), by_loop: bool = False) -> None:
        self.step(Answered(text=text, by="loop" if by_loop else "policy"), segments=segments)
        self.trace.timings = self.trace.timings.model_copy(update={"answer": self.seconds})

    def in_plan_order(self, plan: Plan, *, since: int) -> None:
        """Put the steps of nodes, which were emitted as they ended, into the plan's order: a trace does not race."""
        place = {node.id: at for at, node in enumerate(plan.nodes)}
        self.trace.steps[since:] = sorted(self.trace.steps[since:], key=lambda step: place[getattr(step, "node", "")])

    def keep(self, segments: Sequence[Segment], *, branch: str = "main") -> range:
        """Append segments of one context to the trace; gives their places."""
        first = len(self.trace.segments)
        own = branch == "main"
        self.trace.segments += segments if own else (s.model_copy(update={"branch": branch}) for s in segments)
        return range(first, len(self.trace.segments))

    def fork(self, name: str, branch: Branch, places: Sequence[int], *, since: int) -> None:
        """Record a branch whose segments were kept, and let the steps of its node since step `since` point at them."""
        self.trace.branches[name] = branch
        for at, step in enumerate(self.trace.steps[since:], start=since):
            if isinstance(step, Filled | Skipped) and step.node == branch.node:
                self.trace.steps[at] = step.model_copy(update={"segments": tuple(places)})

    def count(self, **amounts: float) -> None:
        """Add to the trace's usage."""
        usage = self.trace.usage
        self.trace.usage = usage.model_copy(update={name: getattr(usage, name) + n for name, n in amounts.items()})

    def spent(self, **seconds: float) -> None:
        """Add to the trace's timings."""
        timings = self.trace.timings
        self.trace.timings = timings.model_copy(
            update={name: getattr(timings, name) + s for name, s in seconds.items()}
        )

    def first_token(self) -> None:
        if self.trace.timings.first_token is None:
            self.trace.timings = self.trace.timings.model_copy(update={"first_token": self.seconds})

    def stop(self, stopped: Stopped) -> None:
        self.trace.timings = self.trace.timings.model_copy(update={"total": self.seconds})
        self.step(stopped)
