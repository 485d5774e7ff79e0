"""Cairn's agent. These names are the public ones; each is loaded at its first use: commands start fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.build.agent import build_agent
    from agent.errors import AgentError
    from agent.evidence import Passage
    from agent.loop.agent import Agent, Budgets, Control
    from agent.settings import CairnSettings, load_settings
    from agent.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentError",
    "Budgets",
    "CairnSettings",
    "Control",
    "Passage",
    "Trace",
    "build_agent",
    "load_settings",
]

_HOMES = {
    "Agent": "agent.loop.agent",
    "AgentError": "agent.errors",
    "Budgets": "agent.loop.agent",
    "CairnSettings": "agent.settings",
    "Control": "agent.loop.agent",
    "Passage": "agent.evidence",
    "Trace": "agent.trace",
    "build_agent": "agent.build.agent",
    "load_settings": "agent.settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
