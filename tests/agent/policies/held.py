"""Requests that stop the engine's thread at a token, so that what it samples in vain can be counted, not timed."""

import threading
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from agent.policies.requests import Request


@dataclass
class Hold:
    """All requests of a test. The thread stops at a token of each until `released` is set.

    Inside of the policy, `async with hold` releases it at the end, also where an assertion fails: to close a policy
    means to wait for its thread.
    """

    at: int = 1
    """Which token."""
    released: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    """Set when the thread stops for the first time."""
    counts: list[int] = field(default_factory=list[int])
    """Tokens that the engine offered, by request."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.released.set()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every turn that is requested from now on be held."""
        hold = self

        class Held(Request):
            def __init__(self, *args: Any, **more: Any) -> None:
                super().__init__(*args, **more)
                self.number = len(hold.counts)
                hold.counts.append(0)

            def put(self, token: int, logprob: float) -> bool:
                hold.counts[self.number] += 1
                enough = super().put(token, logprob)
                if hold.counts[self.number] == hold.at:
                    hold.reached.set()
                    assert hold.released.wait(20), "no one released the thread"
                return enough

        monkeypatch.setattr("agent.policies.requests.Request", Held)
