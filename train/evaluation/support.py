"""The claims that carry a trace's answer, each with how what it cites supports it."""

from collections.abc import Collection
from typing import Literal

from agent.checks.claims import checked
from agent.trace import Claim, Trace

Support = Literal["verbatim", "close", "not_found", "contradicted", "uncited"]


def claims_of(trace: Trace) -> tuple[Claim, ...]:
    """The claims, checked: those of a trace from before claims were checked are checked now."""
    return tuple(claim if claim.check != "unchecked" else checked([claim], trace.steps)[0] for claim in trace.claims)


def support_of(claim: Claim, *, observed: Collection[int]) -> Support:
    """How the passages that a claim cites support it; `uncited` where it cites none that was observed."""
    if not any(number in observed for number in claim.cites):
        return "uncited"
    return "not_found" if claim.check == "unchecked" else claim.check
