"""Who searches, where, and how hard: the agent that fits a tool call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.errors import QuestionError
from agent.loop.budgets import Effort
from agent.sources.select import choose

if TYPE_CHECKING:
    from agent.loop.agent import Agent


async def searching_agent(
    agents: "Agent | Mapping[str, Agent]",
    *,
    libraries: Sequence[str] = (),
    sources: Collection[str] = (),
    **choice: Any,
) -> "Agent":
    """What `agent_for` gives, which searches libraries: in the place of its sources, or beside those that are named.

    Raises:
        QuestionError: as `agent_for` does, or there are no libraries. Whatever finds libraries may raise its own.
    """
    agent = agent_for(agents, sources=sources, **choice)
    return await agent.with_libraries(libraries, beside_sources=bool(sources))


def agent_for(
    agents: "Agent | Mapping[str, Agent]",
    *,
    protocol: str = "",
    sources: Collection[str] = (),
    effort: Effort = "medium",
) -> "Agent":
    """An agent that speaks this protocol, searches only these sources, and uses half or twice of its budgets.

    Args:
        agents: one, or several by the name of the protocol that they speak; the first one is who searches as usual.
        protocol: its name; empty: as usual.
        sources: their names; empty: all.
        effort: low is half of every budget, high is twice; as `Budgets.for_effort` says.

    Raises:
        QuestionError: a protocol that no agent speaks, or a source that is not there; the sentence names what is.
    """
    there = agents if isinstance(agents, Mapping) else {agents.protocol.name: agents}
    agent = there.get(protocol or next(iter(there)))
    if agent is None:
        raise QuestionError(f"there is no protocol {protocol!r}; choose from: {', '.join(there)}", about="protocol")
    only = tuple(dict.fromkeys(name.strip().lower() for name in sources))
    choose(agent.sources, only)  # refuses what is not there
    return replace(
        agent,
        only=only or agent.only,
        budgets=agent.budgets.for_effort(effort, rounds=agent.protocol.max_rounds),
    )
