"""Search for a question and give the evidence instead of the answer. One rollout, the same as for an answer."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from agent.errors import QuestionError
from agent.loop.budgets import Effort
from agent.rstool.budget import SizeBudget
from agent.rstool.bundle import EvidenceBundle
from agent.rstool.choosing import searching_agent
from agent.rstool.making import bundle_of

if TYPE_CHECKING:
    from agent.loop.agent import Agent
    from agent.loop.budgets import Control
    from agent.settings import CairnSettings


async def gather(
    question: str,
    *,
    agent: "Agent | Mapping[str, Agent] | None" = None,
    settings: "CairnSettings | None" = None,
    budget: SizeBudget | None = None,
    history: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    control: "Control | None" = None,
    sources: Collection[str] = (),
    libraries: Sequence[str] = (),
    effort: Effort = "medium",
    protocol: str = "",
) -> EvidenceBundle:
    """Search, and give what was found with the words of the sources.

    What fails in an engine or a source does not raise: the bundle's `outcome` and `ended` say so. Cancelling this
    cancels the searches and the engine, too.

    Args:
        question: the user's.
        agent: who searches, or several by the protocol that they speak; they stay open. Left out, one is built and
            closed again.
        settings: of the agent that is built; left out, those of the environment and of cairn.toml.
        budget: what the evidence may weigh as text.
        history: earlier turns as (question, answer), where the question leans on them.
        seed: for sampling.
        control: to end the search early.
        sources: names of those that may be searched; empty: all.
        libraries: ids of uploaded libraries, where the agent is one of a server: searched in the place of its sources,
            or beside those that are named.
        effort: low is half of every budget of the search, high is twice.
        protocol: that the agent speaks; empty: as usual.

    Raises:
        QuestionError: the question is empty or too long, or names a source or protocol that is not there.
        SetupError: the settings name something that cannot be used.
        ValueError: both `agent` and `settings` are given.
    """
    if agent is not None and settings is not None:
        raise ValueError("give an agent or settings to build one from, not both")
    searching = agent if agent is not None else _built(settings, protocol)
    try:
        chosen = await searching_agent(
            searching, protocol=protocol, sources=sources, libraries=libraries, effort=effort
        )
        trace = chosen.new_trace(question, history=history, seed=seed)
        return bundle_of(await chosen.run(trace, control=control), budget=budget)
    finally:
        if agent is None and not isinstance(searching, Mapping):
            await searching.aclose()


def _built(settings: "CairnSettings | None", protocol: str) -> "Agent":
    """An agent of these settings that speaks the protocol; its name is checked before anything is loaded."""
    from agent.build.agent import build_agent
    from agent.build.shipped import with_policy
    from agent.protocols import protocol_names
    from agent.settings import load_settings

    settings = with_policy(settings or load_settings())
    if not protocol:
        return build_agent(settings)
    there = dict.fromkeys([settings.protocol, *protocol_names()])
    if protocol not in there:
        raise QuestionError(f"there is no protocol {protocol!r}; choose from: {', '.join(there)}", about="protocol")
    return build_agent(settings.model_copy(update={"protocol": protocol}))
