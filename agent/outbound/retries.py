"""When a request is tried again, and what the log says of it: after which kind of error, never its words.

An error of another server may repeat the question, and the log lines of `stamina` hold the error.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina
from stamina.instrumentation import RetryDetails

from agent.errors import PolicyError, PolicyErrorKind

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Retries:
    """How often and how patiently a request to a language model is tried again."""

    most: int = 2
    """Tries after the first one."""
    first_wait: float = 0.5
    """Seconds before the second try, twice as many before each further one; chance leaves out up to half of them."""
    longest_wait: float = 30.0
    """Seconds. A server that asks for a longer wait is not tried again, or with `repeats` after this time."""
    repeats: bool = False
    """Also try again where the server may have begun to answer: for batches, where a second sample does no harm."""
    kinds: frozenset[PolicyErrorKind] = frozenset({"timeout", "rate", "server", "connection"})
    """Failures that a later try may not have."""
    sleep: Sleep = asyncio.sleep

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the first try that succeeds.

        Raises:
            PolicyError: that of the last try.
        """
        tried = 0
        while True:
            try:
                return await attempt()
            except PolicyError as error:
                wait = self._wait(error, tried)
                if wait is None:
                    raise
                logger.debug("retry %d in %.1f s after %s", tried + 1, wait, type(error).__name__)
            tried += 1
            await self.sleep(wait)

    def _wait(self, error: PolicyError, tried: int) -> float | None:
        """Seconds before the next try; None where there is none."""
        if tried >= self.most or error.kind not in self.kinds or (error.begun and not self.repeats):
            return None
        if error.retry_after is None:
            return min(self.longest_wait, self.first_wait * 2**tried * random.uniform(0.5, 1))
        if error.retry_after > self.longest_wait and not self.repeats:
            return None
        return min(self.longest_wait, error.retry_after)


BATCH: Final = Retries(first_wait=1.0, longest_wait=60.0, repeats=True)
"""For runs over many questions."""


def log_retries_without_words() -> None:
    """Replace the log lines of `stamina`, which quote the error; for this process, and as often as it is called."""
    stamina.instrumentation.set_on_retry_hooks((_note,))


def _note(details: RetryDetails) -> None:
    logger.debug("retry %d in %.1f s after %s", details.retry_num, details.wait_for, type(details.caused_by).__name__)
