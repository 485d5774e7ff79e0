"""What each key used today: known in memory at once, added to the store behind the request's back."""

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Protocol

from agent.trace import Usage
from server.auth.ttl import TtlValue

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Used:
    """What one key used on one day."""

    tokens: int = 0
    searches: int = 0
    credits: float = 0.0

    def __add__(self, more: "Used") -> "Used":
        return Used(self.tokens + more.tokens, self.searches + more.searches, self.credits + more.credits)


def used_by(usage: Usage) -> Used:
    """What a rollout counts as: every token that the engine read or wrote for it."""
    tokens = usage.prompt_tokens + usage.environment_tokens + usage.policy_tokens
    return Used(tokens=tokens, searches=usage.searches, credits=usage.credits)


class UsageStore(Protocol):
    async def used(self, id: str, day: date) -> Used: ...

    async def add_usage(self, id: str, day: date, used: Used) -> None: ...


class Spent:
    """Usage by key and day. What the store does not have yet is kept and sent again."""

    def __init__(self, store: UsageStore | None, *, ttl_seconds: float) -> None:
        self._store = store
        self._ttl_seconds = ttl_seconds
        self._known: dict[str, TtlValue[tuple[date, Used]]] = {}
        """By key: the day, and what the store said of it."""
        self._unsent: defaultdict[tuple[str, date], Used] = defaultdict(Used)
        self._sending: asyncio.Task[None] | None = None

    def today(self, id: str) -> Used:
        """What the key used today, as far as this process knows."""
        day = datetime.now(UTC).date()
        known = self._known[id].value if id in self._known else None
        return (known[1] if known and known[0] == day else Used()) + self._unsent.get((id, day), Used())

    async def refresh(self, id: str) -> bool:
        """Read what the store says of the key, where what is known is old. False where it never could be read."""
        if self._store is None:
            return True
        if id not in self._known:
            self._known[id] = TtlValue(
                partial(_read, self._store, id), what=f"the usage of key {id}", seconds=self._ttl_seconds
            )
        return await self._known[id].refresh()

    def add(self, id: str, usage: Usage) -> None:
        """Count a run that has ended; to be called in an event loop. Runs without a key are counted nowhere."""
        if not id:
            return
        self._unsent[id, datetime.now(UTC).date()] += used_by(usage)
        if self._store is not None and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send(self._store))

    async def aclose(self) -> None:
        """Send what was not sent yet."""
        if self._sending is not None:
            await self._sending
        if self._store is not None and self._unsent:
            await self._send(self._store)

    async def _send(self, store: UsageStore) -> None:
        while self._unsent:
            (id, day), used = next(iter(self._unsent.items()))
            try:
                await store.add_usage(id, day, used)
            except Exception:  # whatever a database raises: the usage stays here and is sent with the next run's
                logger.warning("the usage of key %s could not be stored", id, exc_info=True)
                return
            rest = self._unsent.pop((id, day))
            self._sent(id, day, used)
            left = Used(rest.tokens - used.tokens, rest.searches - used.searches, rest.credits - used.credits)
            if left != Used():  # counted while we sent
                self._unsent[id, day] += left

    def _sent(self, id: str, day: date, used: Used) -> None:
        known = self._known[id].value if id in self._known else None
        if known and known[0] == day:
            self._known[id].change((day, known[1] + used))


async def _read(store: UsageStore, id: str) -> tuple[date, Used]:
    day = datetime.now(UTC).date()
    return day, await store.used(id, day)
