"""How many runs go on at once: a slot for each, a short queue before them, and 429 at once where neither has room.

The access middleware takes a slot for the addresses of `/v1`; MCP takes one for each search.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from time import perf_counter
from typing import Final, Self

from server.auth.keys import Caller, caller
from server.http.errors import ApiError, server_stops

_FIRST_GUESS_SECONDS: Final = 1.0
_WEIGHT: Final = 0.1
_LONGEST_RETRY_SECONDS: Final = 60


@dataclass(frozen=True)
class AdmissionBounds:
    """How much goes on at once."""

    runs: int = 128
    queue: int = 256
    """Runs that may wait for a slot."""
    wait_seconds: float = 15.0
    """The longest wait; a run that would wait longer, by what runs took so far, is refused at once."""


class Slot:
    """One run's place. Given back once, when the run ends: as a context manager, or with `leave`."""

    def __init__(self, give_back: Callable[["Slot"], None], key: str) -> None:
        self._give_back = give_back
        self._left = False
        self.key = key
        self.began = perf_counter()
        self.handed_over = False
        """Whether the run outlives its request: then the run leaves the slot, and not the access middleware."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.leave()

    def hand_over(self) -> "Slot":
        """Take the slot from the request that got it; the caller must call `leave`."""
        self.handed_over = True
        return self

    def leave(self) -> None:
        """Give the place to the next one; a second time does nothing."""
        if not self._left:
            self._left = True
            self._give_back(self)


Limit = Callable[[Caller, int], None]
"""Raises `ApiError` where this caller, who has this number of runs here, may not start another one."""


async def no_slot() -> Slot:
    """The slot of a run that needs none."""
    return Slot(lambda _: None, "")


def no_limit(who: Caller, runs: int) -> None:
    """No key is limited."""


class Admission:
    """Slots for runs, first come, first served."""

    def __init__(self, bounds: AdmissionBounds | None = None) -> None:
        self.bounds = bounds or AdmissionBounds()
        self.closed = False
        """The server stops: no run begins any more."""
        self._running = 0
        self._by_key: Counter[str] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._run_seconds = _FIRST_GUESS_SECONDS

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def wait_seconds(self) -> float:
        """How long one that came now would wait, by what runs took so far."""
        if self._running < self.bounds.runs:
            return 0.0
        return self._run_seconds * (len(self._waiting) + 1) / max(1, self.bounds.runs)

    def check(self, limit: Limit = no_limit) -> None:
        """Refuse at once a run that could not begin now.

        Raises:
            ApiError: there is no room (429), or the server stops (503).
        """
        who = caller()
        if self.closed:
            raise server_stops()
        limit(who, self._by_key[who.key])
        full = self._running >= self.bounds.runs
        if full and (len(self._waiting) >= self.bounds.queue or self.wait_seconds > self.bounds.wait_seconds):
            raise self._busy()

    async def enter(self, limit: Limit = no_limit) -> Slot:
        """Wait for a slot.

        Raises:
            ApiError: there is no room, or none came free in time (429), or the server stops (503).
        """
        self.check(limit)
        slot = Slot(self._give_back, caller().key)
        self._by_key[slot.key] += 1
        try:
            if self._running < self.bounds.runs:
                self._running += 1
            else:
                await self._turn()
        except BaseException:
            self._by_key[slot.key] -= 1
            raise
        slot.began = perf_counter()
        return slot

    def close(self) -> None:
        """Let no run begin any more; those that wait are refused."""
        self.closed = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(server_stops())

    async def _turn(self) -> None:
        """Wait until a slot was given to us."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self.bounds.wait_seconds):
                await turn
        except BaseException as error:
            if turn in self._waiting:
                self._waiting.remove(turn)
            given = turn.done() and not turn.cancelled() and turn.exception() is None
            if given:  # it came free in the very moment in which we gave up
                self._pass_on()
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise

    def _give_back(self, slot: Slot) -> None:
        self._by_key[slot.key] -= 1
        self._run_seconds += _WEIGHT * (perf_counter() - slot.began - self._run_seconds)
        self._pass_on()

    def _pass_on(self) -> None:
        """Give a free slot to the first who waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1

    def _busy(self) -> ApiError:
        wait = min(_LONGEST_RETRY_SECONDS, max(1, math.ceil(self.wait_seconds)))
        return ApiError(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"{self._running:,} runs are active and {len(self._waiting):,} are waiting, which is the limit; "
            f"try again in {wait} s, or raise max_runs or max_queue if the machine can take more.",
            code="server_busy",
            headers={"retry-after": str(wait)},
        )
