"""A value that is kept elsewhere: read again where it is old, once for all readers of that time, and never for long.

Where it cannot be read, the last one that was read holds on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PATIENCE: Final = 5
"""How many times as long a reader waits where no value is known: it has nothing else, and a machine may be busy."""


class TtlValue(Generic[T]):
    """One value."""

    def __init__(
        self, read: Callable[[], Awaitable[T]], *, what: str, seconds: float, patience_seconds: float = 2.0
    ) -> None:
        """Nothing is read before it is needed.

        Args:
            read: gives the value; whatever it raises is logged.
            what: the name of the value, for the log.
            seconds: how old it may be, or the failure to read it.
            patience_seconds: how long a reader waits for it; five times that where there is no value yet.
        """
        self._read = read
        self._what = what
        self._seconds = seconds
        self._patience_seconds = patience_seconds
        self._reading = asyncio.Lock()
        self._at: float | None = None
        self._changes = 0
        self.value: T | None = None
        """What was read last; None: it never was."""

    @property
    def _is_fresh(self) -> bool:
        return self._at is not None and monotonic() - self._at < self._seconds

    async def refresh(self) -> bool:
        """Read it where it is old. Gives whether there is a value."""
        if self._is_fresh:
            return self.value is not None
        async with self._reading:
            if not self._is_fresh:
                await self._read_now()
        return self.value is not None

    def change(self, value: T) -> None:
        """It is known to be this now; that is checked when it is needed again."""
        self.value = value
        self._at = None
        self._changes += 1

    async def _read_now(self) -> None:
        changes = self._changes
        patience = self._patience_seconds * (_FIRST_PATIENCE if self.value is None else 1)
        try:
            async with asyncio.timeout(patience):
                self.value = await self._read()
        except Exception:  # whatever a database raises, or nothing in time: the value that is known holds on
            logger.warning("%s could not be read from the store", self._what, exc_info=True)
        if changes == self._changes:
            self._at = monotonic()
