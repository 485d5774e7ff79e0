"""RSTool: the evidence of a search for callers that answer from it themselves, from Python or as a function tool.

One schema in every form: `ToolArguments` in, `EvidenceBundle` out. A server or another kind of tool only wraps these.
"""

from agent.rstool.answering import Downstream, answer_with
from agent.rstool.budget import SizeBudget
from agent.rstool.bundle import EvidenceBundle
from agent.rstool.making import bundle_of
from agent.rstool.tool import (
    ToolArguments,
    agent_for,
    arguments_schema,
    call_tool,
    gather,
    read_arguments,
    searching_agent,
    tool_definition,
)

__all__ = [
    "Downstream",
    "EvidenceBundle",
    "SizeBudget",
    "ToolArguments",
    "agent_for",
    "answer_with",
    "arguments_schema",
    "bundle_of",
    "call_tool",
    "gather",
    "read_arguments",
    "searching_agent",
    "tool_definition",
]
