"""An engine under test: its policy, loaded once, and the event loop that it lives in. A new engine is one fixture:

class TestMine(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts, ConformanceOfFills):
    @pytest.fixture(scope="class")
    def case(self) -> Generator[EngineCase]:
        yield from engine_case(lambda: MyPolicy.load(...))
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from agent.policies.base import Chunk, Context, Policy, Sampling
from agent.protocols import protocol_named
from agent.sources.base import Source
from agent.trace import Segment
from agent.world import load_world
from tests.agent.policies.engine import collecting_here

T = TypeVar("T")
Dying = Callable[[], AbstractAsyncContextManager[Policy]]
"""A policy whose engine is there for the first tokens, or for none, and then never again."""

CAIRN = protocol_named("cairn")
ONE_HOP = "What is the country of Spulaven?"
TWO_HOPS = "Which nation is the city that Fisko Pornane comes from part of?"
FOUND = "\n<information>\n[1] A · kg · Spulaven | country | Lurnia\n</information>\n"
SECONDS = 60.0
"""For one scene; only a hang takes so long."""


@dataclass
class EngineCase:
    """A policy that decodes the shipped checkpoint, or speaks like it (`say`)."""

    policy: Policy
    runner: asyncio.Runner
    dying: Dying
    exact: bool = True
    """It gives ids and log-probabilities, and takes each text exactly as it is."""
    samples: bool = True
    """It has a temperature and seeds."""
    tolerance: float = 1e-3
    """By how much log-probabilities may differ between a turn alone and in company."""
    busy: Callable[[], int] | None = None
    """How many requests the engine works on, or has waiting."""
    seconds: float = SECONDS
    """For one scene, which may have to start another engine."""

    def run(self, scene: Coroutine[Any, Any, T]) -> T:
        """In the policy's own loop; nothing may be left running."""

        async def bounded() -> T:
            before = asyncio.all_tasks()
            with collecting_here():
                async with asyncio.timeout(self.seconds):
                    result = await scene
            async with asyncio.timeout(self.seconds):
                while self.busy is not None and self.busy():  # noqa: ASYNC110 - the engine's thread sends no event
                    await asyncio.sleep(0)
            for _ in range(5):  # generators that an HTTP library left are closed by the loop, in tasks of their own
                if left := asyncio.all_tasks() - before:
                    await asyncio.wait(left, timeout=1)
            assert asyncio.all_tasks() <= before, asyncio.all_tasks() - before
            return result

        return self.runner.run(bounded())

    def open(self, question: str = ONE_HOP) -> Context:
        return self.policy.open(CAIRN, question)


def engine_case(
    load: Callable[[], Policy],
    *,
    dying: Dying | None = None,
    exact: bool = True,
    samples: bool = True,
    tolerance: float = 1e-3,
    busy: Callable[[Any], int] | None = None,
    seconds: float = SECONDS,
) -> Generator[EngineCase]:
    """What a fixture yields from.

    Args:
        load: makes the policy; called in no event loop.
        dying: see `Dying`; without it another policy is loaded, and closed as soon as it has sampled something.
        exact: see `EngineCase`.
        samples: see `EngineCase`.
        tolerance: see `EngineCase`.
        busy: of a policy; see `EngineCase`.
        seconds: see `EngineCase`.
    """
    with asyncio.Runner() as runner:
        policy = load()
        case = EngineCase(
            policy,
            runner,
            dying or (lambda: closing(load)),
            exact=exact,
            samples=samples,
            tolerance=tolerance,
            busy=None if busy is None else lambda: busy(policy),
            seconds=seconds,
        )
        try:
            yield case
        finally:
            runner.run(policy.aclose())


@asynccontextmanager
async def closing(load: Callable[[], Policy]) -> AsyncGenerator[Policy]:
    """A policy that is closed under its rollouts at the first token."""
    policy = await asyncio.to_thread(load)
    try:
        yield cast(Policy, _Closing(policy))
    finally:
        await policy.aclose()


class _Closing:
    """Hands everything on; its contexts close the policy when the first text has come."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def open(self, *args: Any, **more: Any) -> Any:
        return _ClosingContext(self._policy, self._policy.open(*args, **more))


class _ClosingContext:
    def __init__(self, policy: Policy, context: Context) -> None:
        self._policy = policy
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        async for chunk in self._context.generate(sampling, stop=stop, max_tokens=max_tokens):
            yield chunk
            await self._policy.aclose()


async def ask_until_it_fails(context: Context) -> None:
    """What an engine had sampled when it died may still be a whole turn: ask on.

    Raises:
        PolicyError: the engine is dead.
    """
    for _ in range(5):
        await turn(context, max_tokens=600)


async def turn(
    context: Context, *, stop: Sequence[str] = (), max_tokens: int = 60, sampling: Sampling | None = None
) -> Segment:
    """What the policy says next."""
    async for _ in context.generate(sampling or Sampling(), stop=stop, max_tokens=max_tokens):
        pass
    return context.segments[-1]


def ids_of(segment: Segment) -> tuple[int, ...]:
    assert segment.ids is not None
    return segment.ids


def sources() -> dict[str, Source]:
    """Those of the world that the shipped checkpoint is made for."""
    return dict(load_world("test-v2").sources())


def say(context: str) -> str:
    """What a policy without a model says next: it plans once or twice, then answers."""
    said = context.rpartition(TWO_HOPS if TWO_HOPS in context else ONE_HOP)[2]
    if said.rstrip().endswith("<answer>") or (said.count("<answer>") > said.count("</answer>")):
        return "Lurnia</answer>"
    if said.count("<evidence>") > said.count("</evidence>"):
        return "\n- The country is Lurnia. [1]\n</evidence>"
    rounds = said.count("<information>")
    if rounds < (2 if TWO_HOPS in context else 1):
        return f"<think>Round {rounds + 1}.</think>\n<search>\nA: country {rounds} (kg)\nB: country {rounds} (web)\n</search>"
    return (
        "<merge>The country is Lurnia [1]. Nothing is missing.</merge>\n"
        "<evidence>\n- The country is Lurnia. [1]\n</evidence>\n<answer>Lurnia</answer>"
    )
