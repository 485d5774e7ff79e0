"""Checking claims against the passages that they cite: by rules alone, without a model. See docs/evidence.md."""

from agent.checks.judge import State
from agent.checks.verify import check_claim, check_claims, state_of

__all__ = ["State", "check_claim", "check_claims", "state_of"]
