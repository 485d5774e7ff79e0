"""Hundreds of plans against faulty backends on a clock that jumps: which got what request and when, and what the traces say.

The backends keep their own books, so that nothing is checked against what the code under test believes.
"""

import asyncio
import random
from dataclasses import dataclass, field, replace

from agent.errors import SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.loop.execute import execute
from agent.plan import Node, Plan
from agent.sources.base import SearchRequest, SearchResult, close_sources
from agent.sources.limits import Limits
from agent.sources.resilience.cached import Cached
from agent.sources.resilience.limiter import RateLimiters
from agent.sources.resilience.resilient import resilient
from agent.sources.resilience.store import open_store
from agent.trace import Searched, SearchFailed
from tests.agent.sources.resilience.backends import HANG
from tests.virtual_clock import now

Step = Searched | SearchFailed

SECONDS = 10.0
"""What a node has."""
LIMIT = 6
FAULTS = 0.3
POOL = 25
"""Queries that many plans ask."""
KEEP = Limits(keep_seconds=20.0, stale_seconds=200.0)
BACKENDS = {
    "web": {
        "tavily": replace(KEEP, requests=5, per_seconds=1, concurrency=4),
        "searxng": replace(KEEP, requests=1, per_seconds=1, concurrency=1),
        "brave": replace(KEEP, requests=3, per_seconds=1, concurrency=2, tries=2),
    },
    "news": {
        "gnews": replace(KEEP, requests=2, per_seconds=1, concurrency=2),
        "serper": replace(KEEP, requests=10, per_seconds=2, concurrency=5, timeout_seconds=3),
    },
    "arxiv": {"arxiv": replace(KEEP, requests=1, per_seconds=3, concurrency=1)},
    "wiki": {"wiki": replace(KEEP, requests=8, per_seconds=1, concurrency=8)},
}
ENOUGH = {"news": 3}
SAYS_WHEN = {"rate", "upstream", "quota"}
"""Kinds that may come with a Retry-After."""
DEAD = "searxng"
"""It never answers anybody."""


@dataclass
class Call:
    """One line of a backend's books."""

    number: int
    backend: str
    query: str
    at: float
    until: float = 0.0
    end: str = ""
    """answered, failed, or cut."""
    kind: str = ""
    retry_after: float = 0.0
    urls: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        return f"[{self.backend} {self.number}]"


class Faulty:
    """A backend that fails at random, in one kind; or always."""

    def __init__(self, name: str, limits: Limits, *, kind: SourceErrorKind, books: list[Call], chance: random.Random):
        self.name = name
        self.limits = limits
        self.credits_per_search = 1.0
        self._kind: SourceErrorKind = kind
        self._books = books
        self._chance = chance

    async def search(self, request: SearchRequest) -> SearchResult:
        call = Call(len(self._books), self.name, request.query, at=now())
        self._books.append(call)
        try:
            return await self._answer(call)
        except SourceError as error:
            call.end, call.kind, call.retry_after = "failed", error.kind, error.retry_after or 0.0
            raise
        except asyncio.CancelledError:
            call.end = "cut"
            raise
        finally:
            call.until = now()

    async def _answer(self, call: Call) -> SearchResult:
        chance = self._chance
        if self.name == DEAD:
            await asyncio.sleep(HANG)
        if chance.random() < FAULTS:
            if self._kind == "timeout" and chance.random() < 0.5:
                await asyncio.sleep(HANG)
            await asyncio.sleep(chance.uniform(0, 0.5))
            wait = chance.choices([None, 0.5, 3.0, 45.0], [60, 30, 9, 1])[0] if self._kind in SAYS_WHEN else None
            raise SourceError(f"{call.mark} fails", kind=self._kind, retry_after=wait)
        await asyncio.sleep(chance.uniform(0.05, 1.5))
        found = [Passage(id=f"{call.mark}{n}", source="", title="", text=f"{call.mark}{n}") for n in range(4)]
        # Each answer has its own pages, and one that every backend knows; some are short, some are empty.
        urls = [f"https://{self.name}.org/{call.number}/{n}" for n in range(3)] + [
            f"https://all.org/{call.query.replace(' ', '-')}"
        ]
        kept = chance.sample(range(4), chance.choice([0, 1, 2, 4, 4, 4]))
        call.end, call.urls = "answered", tuple(urls[n] for n in kept)
        passages = tuple(found[n].model_copy(update={"url": urls[n]}) for n in kept)
        return SearchResult(passages, backend=self.name, credits=1.0)


@dataclass
class Run:
    """One plan, and what its trace would say."""

    plan: Plan
    steps: list[Step] = field(default_factory=list[Step])
    ended: dict[str, float] = field(default_factory=dict[str, float])
    """When each node's step was emitted."""
    found: dict[str, list[Passage]] = field(default_factory=dict[str, list[Passage]])
    took: float = 0.0

    @property
    def longest_path(self) -> int:
        """Nodes that wait for each other, at most."""
        depth: dict[str, int] = {}
        for node in self.plan.nodes:
            depth[node.id] = 1 + max((depth[parent] for parent in node.parents), default=0)
        return max(depth.values())

    def emit(self, step: Step) -> None:
        self.steps.append(step)
        self.ended[step.node] = now()


def random_plan(number: int, chance: random.Random) -> Plan:
    """One to five nodes; each may wait for those before it. Some queries are its own, some are shared."""
    nodes: list[Node] = []
    for at in range(chance.randint(1, 5)):
        own = chance.random() < 0.6
        nodes.append(
            Node(
                id="ABCDE"[at],
                query=f"own {number} {at}" if own else f"shared {chance.randrange(POOL)}",
                source=chance.choice(list(BACKENDS)),
                parents=tuple(node.id for node in nodes if chance.random() < 0.3),
            )
        )
    return Plan(nodes=tuple(nodes))


async def run_plans(kind: SourceErrorKind, *, plans: int, every_seconds: float) -> tuple[list[Run], list[Call]]:
    """Start a plan every so often, wait for all."""
    chance = random.Random(kind)
    random.seed(kind)  # the jitter of the guards
    books: list[Call] = []
    limiters, store = RateLimiters(), open_store("memory:")
    sources: dict[str, Cached] = {}
    for name, limits in BACKENDS.items():
        backends = [Faulty(b, bound, kind=kind, books=books, chance=chance) for b, bound in limits.items()]
        enough = ENOUGH.get(name, 1)
        sources[name] = resilient(name, backends, store=store, enough=enough, limiters=limiters, now=now)
    runs = [Run(random_plan(number, chance)) for number in range(plans)]

    async def one(run: Run) -> None:
        began = now()
        found = await execute(run.plan, sources, round=1, limit=LIMIT, seconds=SECONDS, emit=run.emit)
        run.found, run.took = found, now() - began

    async with asyncio.TaskGroup() as group:
        for run in runs:
            group.create_task(one(run))
            await asyncio.sleep(chance.expovariate(1 / every_seconds))
    await close_sources(sources.values())
    return runs, books
