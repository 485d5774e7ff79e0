"""One continuation on its way from a worker thread to an event loop. It knows nothing of any engine."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from agent.errors import PolicyError
from agent.policies.base import Sampling
from agent.policies.token_context import Sampled


@dataclass(eq=False)
class Request:
    """One continuation on its way. A worker thread writes to it, one coroutine reads."""

    prompt: tuple[int, ...]
    sampling: Sampling
    ends: frozenset[int]
    """It ends after one of these."""
    max_tokens: int
    loop: asyncio.AbstractEventLoop
    every: int = 1
    """Tokens after which the reader is woken; the last ones wake it always."""
    _sampled: deque[Sampled] = field(default_factory=deque[Sampled])
    count: int = 0
    """Tokens sampled so far."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _signalled: bool = False
    _finished: bool = False
    _cancelled: bool = False
    _error: str = ""

    async def take(self) -> list[Sampled]:
        """What was sampled since the last call, at least one token; nothing at the end.

        Raises:
            PolicyError: the engine failed.
        """
        while True:
            finished = self._finished  # looked at first: what the worker put last, it put before it said so
            if self._sampled:
                break
            if self._error:
                raise PolicyError(self._error)
            if finished:
                return []
            await self._news.wait()
            self._news.clear()
            self._signalled = False
        return [self._sampled.popleft() for _ in range(len(self._sampled))]

    def cancel(self) -> None:
        """Free the slot at the next token."""
        self._cancelled = True

    @property
    def over(self) -> bool:
        return self._finished or self._cancelled

    def put(self, token: int, logprob: float) -> bool:
        """Called by the worker for each token; true says that no more is wanted."""
        if self.over:
            return True
        self._sampled.append((token, logprob))
        self.count += 1
        self._finished = token in self.ends or self.count >= self.max_tokens
        if self._finished or self.count % self.every == 0:
            self._signal()
        return self._finished

    def finish(self, error: str = "") -> None:
        """Called by the worker when nothing more comes."""
        if not self._finished:
            self._error = error
            self._finished = True
            self._signal()

    def _signal(self) -> None:
        if self._signalled:
            return
        self._signalled = True
        try:
            self.loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:  # the loop was closed: no reader is left
            self._cancelled = True


async def sample_through(
    submit: Callable[[Request], None],
    ids: Sequence[int],
    sampling: Sampling,
    *,
    ends: frozenset[int],
    max_tokens: int,
    every: int = 1,
) -> AsyncGenerator[list[Sampled]]:
    """A `Sampler` over worker threads: `submit` hands them a request, whose tokens come `every` at a time.

    Closing it cancels the request.

    Raises:
        PolicyError: the engine failed, or was closed.
    """
    request = Request(
        prompt=tuple(ids),
        sampling=sampling,
        ends=ends,
        max_tokens=max_tokens,
        loop=asyncio.get_running_loop(),
        every=every,
    )
    submit(request)
    try:
        while sampled := await request.take():
            yield sampled
    finally:
        request.cancel()
