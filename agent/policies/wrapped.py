"""A base for policies that change what another policy samples and describe themselves as it does."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from agent.policies.base import Policy

P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class WrappedPolicy(Generic[P]):
    """Has the name and the properties of `policy`; a subclass defines `open` and `aclose`."""

    policy: P

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def context_tokens(self) -> int:
        return self.policy.context_tokens

    @property
    def continues(self) -> bool:
        return self.policy.continues

    @property
    def instructed(self) -> bool:
        return self.policy.instructed
