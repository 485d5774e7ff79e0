"""A search plan: its form, and the ways in which policies write one."""

from agent.plan.plan import (
    DOCUMENTS,
    EVERY_SOURCE,
    UNNAMED,
    Filter,
    Node,
    Plan,
    parse_plan,
)

__all__ = ["DOCUMENTS", "EVERY_SOURCE", "UNNAMED", "Filter", "Node", "Plan", "parse_plan"]
