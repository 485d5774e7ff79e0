"""Searches for evidence: the same arguments and the same bundle, whichever form requested it.

It knows no request and no frame; HTTP and MCP stand before it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from agent.errors import QuestionError
from agent.loop.agent import Agent
from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.rstool import EvidenceBundle, SizeBudget, ToolArguments, bundle_of, searching_agent
from agent.sanitize.text import whole
from agent.trace import Event, Trace
from server.auth.admission import Slot, no_slot
from server.chat.service import Service

Enter = Callable[[], Awaitable[Slot]]
"""Waits for a slot."""


@dataclass(frozen=True)
class Search:
    """One search on its way to a bundle. It runs once."""

    service: Service
    agent: Agent
    trace: Trace
    budget: SizeBudget
    enter: Enter

    async def run(self, emit: Emit) -> EvidenceBundle:
        """Search, and give the evidence. What fails in engine or sources is in the bundle, never raised.

        Raises:
            ApiError: there is no slot for it.
        """
        with await self.enter():
            await self.drive(emit)
        return bundle_of(self.trace, budget=self.budget)

    async def drive(self, emit: Emit, control: Control | None = None) -> Trace:
        """Search alone, for callers that hold a slot already."""
        return await self.service.run(self.agent, self.trace, emit, control)


@dataclass(frozen=True)
class EvidenceService:
    """Makes searches that can start."""

    service: Service
    agents: Mapping[str, Agent]
    """By the protocol that they speak; the first one searches where none is named."""
    enter: Enter = no_slot
    """Gives each search its slot, where its caller holds none."""

    @classmethod
    def of(cls, service: Service, *, enter: Enter = no_slot) -> "EvidenceService":
        """That of a service: its agent first, and one for each other protocol that it speaks."""
        libraries = service.libraries
        agent = replace(service.agent, find_libraries=libraries.chosen if libraries else None)
        agents = {agent.protocol.name: agent}
        for name, protocol in service.protocols.items():
            agents.setdefault(name, replace(agent, protocol=protocol))
        return cls(service, agents, enter)

    async def open(self, arguments: ToolArguments) -> Search:
        """Make a search that can start.

        Raises:
            QuestionError, ApiError: it cannot be searched for; nothing was started.
            StoreError: a library could not be looked for.
        """
        question, most = whole(arguments.question), self.service.question_chars
        if len(question) > most:
            raise QuestionError(f"the question has {len(question):,} characters; at most {most:,} are allowed")
        agent = await searching_agent(self.agents, **arguments.choice)
        return Search(self.service, agent, agent.new_trace(question), arguments.budget, self.enter)


def ignore_event(event: Event) -> None:
    """The steps are not shown."""
