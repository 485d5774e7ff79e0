"""What all parts of one rollout use. It is passed as one value, whose members stay the same until the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.loop.budgets import BudgetTracker
from agent.loop.context import ContextWriter
from agent.loop.recorder import Recorder
from agent.protocols.base import TextProtocol
from agent.sources.base import Source
from agent.trace import Trace


@dataclass(frozen=True)
class RolloutState:
    """One rollout on one context."""

    writer: ContextWriter
    """Of the rollout's own context, the main branch."""
    protocol: TextProtocol
    sources: Mapping[str, Source]
    budget: BudgetTracker
    recorder: Recorder
    continues: bool
    """Whether the policy can go on inside its own turn."""
    instructed: bool
    """Whether the policy is a general model."""
    tokens: Sequence[str] = ()
    """Tokens of the policy's tokenizer, which passages must not spell (`agent.sanitize.sanitize.unusual_tokens`)."""

    @property
    def trace(self) -> Trace:
        return self.recorder.trace
