"""An event loop whose clock jumps to the next timer instead of waiting for it: hours pass in no time, and exactly.

Whatever takes its time from the loop follows: asyncio's sleeps and timeouts, aiolimiter, stamina. Threads do not: while
one works the clock may jump ahead of it.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START = 1000.0
STEP_SECONDS = 1e-9
"""What one turn of the loop takes: who sets timers until some time has passed would else set them for ever."""
PATIENCE_SECONDS = 10.0
"""Real ones, for a thread or a socket, once no timer is left."""


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = START
        super().__init__(JumpingSelector(self))

    def time(self) -> float:
        return self.now


class JumpingSelector(selectors.DefaultSelector):
    """Where a real one would wait for a timer, time passes."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.now += STEP_SECONDS
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None:
            self._loop.now += timeout
            return []
        ready = super().select(PATIENCE_SECONDS)
        assert ready, "everything waits for something that never comes"
        return ready


def run(main: Coroutine[Any, Any, T], *, seconds: float = 3600.0) -> T:
    """Like `asyncio.run`, in virtual time, for a number of virtual seconds at most; nothing may be left running."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            result = await main
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"still running: {left}"
        return result

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())


def now() -> float:
    """Virtual seconds since the start, to the microsecond."""
    return round(asyncio.get_running_loop().time() - START, 6)
