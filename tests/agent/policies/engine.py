"""What the tests of the embedded engine share: a tiny checkpoint with random weights, and one turn of it."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from agent.policies.base import Chunk, Context, Sampling
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.token_context import TokenContext
from agent.protocols import protocol_named
from agent.trace import Segment

ENGINE = Path(__file__).parents[2] / "fixtures" / "engine"
CAIRN = protocol_named("cairn")
WARM = Sampling(temperature=1.0, seed=7)
T = TypeVar("T")


@contextmanager
def collecting_here() -> Generator[None]:
    """Cycles are collected at the end, in this thread, and nowhere before.

    An HTTP library leaves async generators in cycles. A server that shares the process runs in another thread; should
    the collector start there, it would close them outside of their event loop.
    """
    gc.disable()
    try:
        yield
        gc.collect(0)  # what came since is in the youngest generation; all of them would cost each test much
    finally:
        gc.enable()


def run(coroutine: Coroutine[Any, Any, T], *, seconds: float = 30) -> T:
    async def bounded() -> T:
        with collecting_here():
            async with asyncio.timeout(seconds):
                return await coroutine

    return asyncio.run(bounded())


@asynccontextmanager
async def engine(*, workers: int = 2, compute_type: str = "default") -> AsyncGenerator[EmbeddedPolicy]:
    policy = EmbeddedPolicy.load(ENGINE, workers=workers, compute_type=compute_type)
    try:
        yield policy
    finally:
        await policy.aclose()


async def turn(
    context: Context, *, sampling: Sampling | None = None, stop: Sequence[str] = (), max_tokens: int = 40
) -> list[Chunk]:
    return [chunk async for chunk in context.generate(sampling or Sampling(), stop=stop, max_tokens=max_tokens)]


def opened(policy: EmbeddedPolicy, question: str = "Who?") -> TokenContext:
    return policy.open(CAIRN, question)


async def sampled(policy: EmbeddedPolicy, question: str = "Who?", *, sampling: Sampling | None = None) -> Segment:
    context = opened(policy, question)
    await turn(context, sampling=sampling)
    return context.segments[-1]


def ids_of(segment: Segment) -> tuple[int, ...]:
    assert segment.ids is not None
    return segment.ids
