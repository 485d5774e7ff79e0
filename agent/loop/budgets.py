"""What one rollout may use, and the user's word that it is enough."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

Effort = Literal["low", "medium", "high"]
_FACTORS: Final[Mapping[Effort, float]] = {"low": 0.5, "medium": 1.0, "high": 2.0}


@dataclass(frozen=True)
class Budgets:
    """What one rollout may use. When one of these ends, the loop requests the answer."""

    rounds: int | None = None
    """Rounds of searches; None: what the protocol says."""
    searches: int = 32
    """Queries, over all rounds."""
    passages: int = 96
    """Passages that the policy is shown."""
    policy_tokens: int = 4096
    """Tokens that the policy samples, its answer included."""
    context_tokens: int | None = None
    """Length of the whole context; None: what the policy takes. Never more than that."""
    seconds: float = 120.0
    """From the question to the end of the last round; the answer that is then forced may take `answer_seconds` more."""
    credits: float = 100.0
    """What paid sources may cost."""
    search_seconds: float = 10.0
    """One search of one source."""
    answer_tokens: int = 256
    """Held back for evidence and answer: no round may use them."""
    answer_seconds: float = 30.0

    def for_effort(self, effort: Effort, *, rounds: int) -> "Budgets":
        """Half of what a search may use for a low effort, twice of it for a high one; see `times`."""
        return self.times(_FACTORS[effort], rounds=rounds)

    def times(self, factor: float, *, rounds: int) -> "Budgets":
        """All of what a search may use times `factor`; `rounds` hold where this says none.

        What was allowed at all stays allowed once. The answer's own part and the time of one search stay, and so do
        credits, which cost money.
        """
        tokens = _times(self.policy_tokens, factor)
        return replace(
            self,
            rounds=_times(rounds if self.rounds is None else self.rounds, factor),
            searches=_times(self.searches, factor),
            passages=_times(self.passages, factor),
            seconds=self.seconds * factor,
            policy_tokens=tokens,
            answer_tokens=min(self.answer_tokens, tokens),
        )


def _times(count: int, factor: float) -> int:
    return min(count, max(1, int(count * factor))) if factor < 1 else int(count * factor)


class Control:
    """The user's hand on a rollout that runs."""

    def __init__(self) -> None:
        self._answer_requested = False
        self._scope: asyncio.Timeout | None = None

    @property
    def answer_requested(self) -> bool:
        """Whether the user wants the answer now."""
        return self._answer_requested

    def answer_now(self) -> None:
        """Stop searching; answer with what there is. To be called in the rollout's event loop."""
        self._answer_requested = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def cutting(self, scope: asyncio.Timeout) -> Generator[None]:
        """While this is open, `answer_now` ends `scope` at once."""
        self._scope = scope
        if self._answer_requested:
            self.answer_now()
        try:
            yield
        finally:
            self._scope = None
