"""Where searches for evidence are taken in: the same arguments and the same bundle, whichever form asked for it.

It knows no request and no frame; HTTP and MCP stand before it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace

from agent.errors import QuestionError
from agent.loop.agent import Agent
from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.rstool import EvidenceBundle, SizeBudget, ToolArguments, agent_for, bundle_of
from agent.sanitize.text import whole
from agent.trace import Event, Trace
from server.chat.service import Service

Slots = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True)
class Search:
    """One search on its way to a bundle. It runs once."""

    agent: Agent
    trace: Trace
    budget: SizeBudget
    keep: Callable[[Trace], None]
    slots: Slots

    async def run(self, emit: Emit) -> EvidenceBundle:
        """Search, and give the evidence. What fails in engine or sources is in the bundle, never raised.

        Raises:
            ApiError: there is no slot for it.
        """
        async with self.slots():
            await self.drive(emit)
        return bundle_of(self.trace, budget=self.budget)

    async def drive(self, emit: Emit, control: Control | None = None) -> Trace:
        """Search alone, for whoever holds a slot already."""
        try:
            return await self.agent.run(self.trace, emit=emit, control=control)
        finally:
            self.keep(self.trace)


@dataclass(frozen=True)
class Desk:
    """Takes searches in."""

    agents: Mapping[str, Agent]
    """By the protocol that they speak; the first one searches where none is named."""
    question_chars: int
    keep: Callable[[Trace], None]
    slots: Slots = nullcontext
    """Entered for as long as a search runs, where nobody did it before."""

    def open(self, asked: ToolArguments) -> Search:
        """Make a search that can start.

        Raises:
            QuestionError: what is asked cannot be searched for; nothing was started.
        """
        question = whole(asked.question)
        if len(question) > self.question_chars:
            raise QuestionError(
                f"the question has {len(question):,} characters; at most {self.question_chars:,} are read"
            )
        agent = agent_for(self.agents, **asked.choice)
        return Search(agent, agent.new_trace(question), asked.budget, self.keep, self.slots)


def desk_of(service: Service, *, slots: Slots = nullcontext) -> Desk:
    """The desk of a service: its agent first, and one for each other protocol that it speaks."""
    agent = service.agent
    agents = {agent.protocol.name: agent}
    for name, protocol in service.protocols.items():
        agents.setdefault(name, replace(agent, protocol=protocol))
    return Desk(agents, service.question_chars, service.keep, slots)


def tell_nobody(event: Event) -> None:
    """Nobody listens to the steps."""
