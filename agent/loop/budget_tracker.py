"""What one rollout still may use. It counts nothing itself: what was used is in the trace."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from agent.loop.budgets import Budgets, Control
from agent.protocols.base import TextProtocol
from agent.trace import BudgetName, Trace

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
