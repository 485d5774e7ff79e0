"""What one rollout may use, and the user's word that it is enough."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.protocols.base import TextProtocol
from agent.trace import BudgetName, Trace

Effort = Literal["low", "medium", "high"]
FACTORS: Final[Mapping[Effort, float]] = {"low": 0.5, "medium": 1.0, "high": 2.0}


@dataclass(frozen=True)
class Budgets:
    """What one rollout may use. When one of these ends, the loop requests the answer."""

    rounds: int | None = None
    """Rounds of searches; None: what the protocol says."""
    searches: int = 32
    """Queries, over all rounds."""
    passages: int = 96
    """Passages that the policy is shown."""
    policy_tokens: int = 4096
    """Tokens that the policy samples, its answer included; 600 for `small-v1`, where no setting says otherwise."""
    context_tokens: int | None = None
    """Length of the whole context; None: what the policy takes. Never more than that."""
    seconds: float = 120.0
    """From the question to the end of the last round; the answer that is then forced may take 30 more."""
    credits: float = 100.0
    """What paid sources may cost."""
    search_seconds: float = 10.0
    """One search of one source; 30 with live sources or MCP servers, or the longest `seconds` of one of these."""
    answer_tokens: int = 256
    """Held back for evidence and answer: no round may use them."""
    answer_seconds: float = 30.0

    def for_effort(self, effort: Effort, *, rounds: int) -> "Budgets":
        """Half of what a search may use for a low effort, twice of it for a high one; see `times`."""
        return self.times(FACTORS[effort], rounds=rounds)

    def times(self, factor: float, *, rounds: int) -> "Budgets":
        """All of what a search may use times `factor`; `rounds` hold where this says none.

        What was allowed at all stays allowed once. The answer's own part, where it is no more than half of the tokens,
        and the time of one search stay, and so do credits, which cost money.
        """
        return replace(
            self.with_tokens(_times(self.policy_tokens, factor)),
            rounds=_times(rounds if self.rounds is None else self.rounds, factor),
            searches=_times(self.searches, factor),
            passages=_times(self.passages, factor),
            seconds=self.seconds * factor,
        )

    def with_tokens(self, tokens: int) -> "Budgets":
        """The same with these tokens for the policy. At most half are held back for the answer: a turn can search."""
        return replace(self, policy_tokens=tokens, answer_tokens=min(self.answer_tokens, max(1, tokens // 2)))


def _times(count: int, factor: float) -> int:
    return min(count, max(1, int(count * factor))) if factor < 1 else int(count * factor)


class Control:
    """The user's hand on a rollout that runs."""

    def __init__(self) -> None:
        self._answer_requested = False
        self._scope: asyncio.Timeout | None = None

    @property
    def answer_requested(self) -> bool:
        """Whether the user wants the answer now."""
        return self._answer_requested

    def answer_now(self) -> None:
        """Stop searching; answer with what there is. To be called in the rollout's event loop."""
        self._answer_requested = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def cutting(self, scope: asyncio.Timeout) -> Generator[None]:
        """While this is open, `answer_now` ends `scope` at once."""
        self._scope = scope
        if self._answer_requested:
            self.answer_now()
        try:
            yield
        finally:
            self._scope = None


_CAUTION: Final = 0.8
"""Share of the context's room that passages may fill; the rest is for what the policy makes of them."""


class BudgetEnded(Exception):
    """A budget has ended."""

    def __init__(self, budget: BudgetName) -> None:
        super().__init__(budget)
        self.budget: BudgetName = budget


class BudgetTracker:
    """The budgets of one rollout beside what its trace says was used."""

    def __init__(
        self, budgets: Budgets, *, protocol: TextProtocol, trace: Trace, context_tokens: int, control: Control
    ) -> None:
        """Start the clock.

        Args:
            budgets: what may be used.
            protocol: may allow fewer rounds and shorter turns.
            trace: what was used.
            context_tokens: the longest context that the engine takes.
            control: of the user, who may want the answer at once.
        """
        self.budgets = budgets
        self.limit = min(context_tokens, budgets.context_tokens or context_tokens)
        """Tokens of the whole context."""
        self.held = min(budgets.answer_tokens, budgets.policy_tokens, self.limit // 4)
        """Tokens that are held back for evidence and answer."""
        self._protocol = protocol
        self._trace = trace
        self._control = control
        self._deadline = asyncio.get_running_loop().time() + budgets.seconds

    @property
    def policy_tokens(self) -> int:
        """Tokens that the policy may sample before the answer."""
        return self.budgets.policy_tokens - self.held - self._trace.usage.policy_tokens

    @property
    def searches(self) -> int:
        return self.budgets.searches - self._trace.usage.searches

    @property
    def passages(self) -> int:
        return self.budgets.passages - self._trace.usage.passages

    @property
    def credits(self) -> float:
        return self.budgets.credits - self._trace.usage.credits

    def turn(self, context: int) -> tuple[int, BudgetName | None]:
        """Tokens that one turn may have after `context` tokens, and the budget that ends with them.

        No budget ends where it is the protocol that keeps a turn short.

        Raises:
            BudgetEnded: there are none left.
        """
        room = self.limit - self.held - context
        tokens = min(self.policy_tokens, room)
        budget: BudgetName = "policy_tokens" if self.policy_tokens <= room else "context"
        if tokens <= 0:
            raise BudgetEnded(budget)
        own = self._protocol.turn_tokens
        return (own, None) if own and own < tokens else (tokens, budget)

    def may_go_on(self) -> None:
        """Raise `BudgetEnded` where no other round is allowed."""
        rounds = self._protocol.max_rounds if self.budgets.rounds is None else self.budgets.rounds
        if self._trace.usage.rounds >= min(rounds, self._protocol.plans or rounds):
            raise BudgetEnded("rounds")

    def may_search(self) -> None:
        """Raise `BudgetEnded` where no other round of searches is allowed."""
        self.may_go_on()
        if self.searches <= 0:
            raise BudgetEnded("searches")
        if self.passages <= 0:
            raise BudgetEnded("passages")

    def observation_room(self, context: int) -> int:
        """Tokens that an observation may have after `context` tokens."""
        return int(_CAUTION * (self.limit - self.held - context))

    @asynccontextmanager
    async def until_the_deadline(self) -> AsyncGenerator[None]:
        """Cut what runs inside when the time ends or the user wants the answer.

        Raises:
            BudgetEnded: that came.
        """
        scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                with self._control.cutting(scope):
                    yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise BudgetEnded("user" if self._control.answer_requested else "seconds") from None
