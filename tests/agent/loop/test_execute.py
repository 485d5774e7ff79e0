import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.loop.execute import Found, execute
from agent.plan import Node, Plan, parse_plan
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Searched, SearchFailed

Step = Searched | SearchFailed


class Acting:
    """A source that acts as the test wants, then answers with the query."""

    def __init__(self, act: Callable[[str], Awaitable[None]]) -> None:
        self._act = act
        self.queries: list[str] = []

    async def search(self, request: SearchRequest) -> SearchResult:
        self.queries.append(request.query)
        await self._act(request.query)
        query, numbers = request.query, range(request.limit + 2)
        return SearchResult(
            tuple(Passage(id=f"{query}{n}", source="web", title=query, text=f"{query} {n}") for n in numbers)
        )


async def nothing(query: str) -> None:
    """Answer at once."""


def parsed(text: str) -> Plan:
    return parse_plan(text, protocol=protocol_named("cairn"), sources=["web"])


async def run(plan: str, source: Source, steps: list[Step], *, seconds: float = 5) -> Found:
    async with asyncio.timeout(5):  # a hang is a failure, not a wait
        return await execute(parsed(plan), {"web": source}, round=1, limit=2, seconds=seconds, emit=steps.append)


async def let_everything_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_independent_nodes_run_at_the_same_time():
    both = asyncio.Barrier(2)  # run one after the other, this would time out
    steps: list[Step] = []

    async def meet(query: str) -> None:
        await both.wait()

    asyncio.run(run("A: x\nB: y", Acting(meet), steps))
    assert sorted(step.node for step in steps) == ["A", "B"]


def test_a_child_waits_for_its_parent_even_when_a_stranger_ends_first():
    async def main() -> None:
        parent_may_end = asyncio.Event()

        async def act(query: str) -> None:
            if query == "parent":
                await parent_may_end.wait()

        source, steps = Acting(act), list[Step]()
        running = asyncio.create_task(run("P: parent\nS: stranger\nC: child\nP -> C", source, steps))
        await let_everything_run()
        assert source.queries == ["parent", "stranger"]
        assert [step.node for step in steps] == ["S"]  # the stranger is reported while the parent still runs
        parent_may_end.set()
        await running
        assert [step.node for step in steps] == ["S", "P", "C"]

    asyncio.run(main())


def test_a_child_does_not_wait_for_a_slow_node_of_its_parents_level():
    async def main() -> None:
        slow_may_end = asyncio.Event()

        async def act(query: str) -> None:
            if query == "slow":
                await slow_may_end.wait()

        source, steps = Acting(act), list[Step]()
        running = asyncio.create_task(run("P: parent\nS: slow\nC: child\nP -> C", source, steps))
        await let_everything_run()
        assert [step.node for step in steps] == ["P", "C"]
        slow_may_end.set()
        await running

    asyncio.run(main())


@settings(max_examples=50)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda e: e[0] < e[1])), st.randoms())
def test_whatever_the_edges_every_node_runs_once_and_after_its_parents(edges: set[tuple[int, int]], rng: object):
    ids = "ABCDEF"
    text = "\n".join([*(f"{name}: query {name}" for name in ids), *(f"{ids[a]} -> {ids[b]}" for a, b in edges)])
    steps: list[Step] = []
    ended: list[str] = []

    async def act(query: str) -> None:
        parents = {ids[a] for a, b in edges if ids[b] == query[-1]}
        assert parents <= {step.node for step in steps}
        for _ in range(ord(query[-1]) % 3):
            await asyncio.sleep(0)
        ended.append(query[-1])

    asyncio.run(run(text, Acting(act), steps))
    assert sorted(ended) == list(ids)


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (ConnectionError("no route"), "upstream", "ConnectionError: no route"),
        (SourceError("no key", kind="auth"), "auth", "no key"),
        (TimeoutError("theirs"), "timeout", "it timed out: theirs"),
        (asyncio.CancelledError(), "upstream", "the source gave up on itself"),
        (ExceptionGroup("several", [OSError("x")]), "upstream", "ExceptionGroup: several (1 sub-exception)"),
    ],
)
def test_whatever_a_source_raises_is_a_failed_step_and_its_children_run(error: BaseException, kind: str, why: str):
    async def act(query: str) -> None:
        if query == "parent":
            raise error

    steps: list[Step] = []
    found = asyncio.run(run("P: parent\nC: child\nP -> C", Acting(act), steps))
    failed = steps[0]
    assert isinstance(failed, SearchFailed)
    assert (failed.node, failed.error, failed.why) == ("P", kind, why)
    assert list(found) == ["C"]


def test_a_source_that_hangs_fails_after_its_time_and_holds_up_no_other():
    async def act(query: str) -> None:
        if query == "hangs":
            await asyncio.Event().wait()

    steps: list[Step] = []
    asyncio.run(run("A: hangs\nB: y", Acting(act), steps, seconds=0.01))
    assert [(step.node, step.kind) for step in steps] == [("B", "searched"), ("A", "search_failed")]
    assert isinstance(steps[1], SearchFailed)
    assert (steps[1].error, steps[1].why) == ("timeout", "no answer in 0.01 s")


def test_equal_queries_of_a_plan_share_one_call():
    async def main() -> None:
        source, steps = Acting(lambda query: asyncio.sleep(0)), list[Step]()
        found = await run("A: x\nB: x\nC: x (web, lang en)\nD: x\nA -> D", source, steps)
        assert source.queries == ["x", "x"]  # the one with a filter asks something else
        assert {node: [p.node for p in passages] for node, passages in found.items()} == {
            name: [name, name] for name in "ABCD"
        }

    asyncio.run(main())


def test_equal_queries_share_a_failure_too():
    async def act(query: str) -> None:
        raise OSError("down")

    steps: list[Step] = []
    source = Acting(act)
    asyncio.run(run("A: x\nB: x", source, steps))
    assert ([step.kind for step in steps], source.queries) == (["search_failed"] * 2, ["x"])


def test_results_are_cut_to_the_limit_ranked_and_in_the_order_of_the_plan():
    async def main() -> Found:
        fast_ended = asyncio.Event()

        async def act(query: str) -> None:
            if query == "slow":
                await fast_ended.wait()
            fast_ended.set()

        return await run("A: slow\nB: fast", Acting(act), [])

    found = asyncio.run(main())
    assert list(found) == ["A", "B"]
    assert [(p.text, p.rank, p.node) for p in found["A"]] == [("slow 0", 1, "A"), ("slow 1", 2, "A")]


def test_a_node_says_what_it_was_and_how_long_it_took():
    steps: list[Step] = []
    asyncio.run(run("A: x", Acting(nothing), steps))
    (step,) = steps
    assert (step.round, step.source, step.query) == (1, "web", "x")
    assert 0 <= step.took < 5


def test_searches_stop_when_the_run_is_cancelled():
    async def main() -> None:
        cancelled: list[str] = []

        async def act(query: str) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(query)
                raise

        steps: list[Step] = []
        running = asyncio.create_task(run("A: x\nB: x\nC: y", Acting(act), steps))
        await let_everything_run()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (sorted(cancelled), steps, running.cancelled()) == (["x", "y"], [], True)

    asyncio.run(main())


def test_what_a_source_says_of_its_answer_stands_in_the_step_and_a_shared_answer_is_paid_once():
    class Telling:
        async def search(self, request: SearchRequest) -> SearchResult:
            await asyncio.sleep(0)
            failure = Failure(backend="tavily", kind="rate", why="too many")
            passage = Passage(id="p", source="web", title="t", text="x")
            return SearchResult((passage,), backend="brave", notes=("n",), credits=2, usd=0.01, failures=(failure,))

    steps: list[Step] = []
    asyncio.run(run("A: same\nB: same", Telling(), steps))
    first, second = (step for step in steps if isinstance(step, Searched))
    assert (first.backend, first.note, first.credits, first.usd) == ("brave", "n", 2, 0.01)
    assert [failure.backend for failure in first.failures] == ["tavily"]
    assert (second.backend, second.credits, second.usd, second.failures) == ("brave", 0, 0, ())


def test_every_backend_that_failed_is_named_in_the_failed_step():
    failures = (Failure(backend="a", kind="timeout", why="slow"), Failure(backend="b", kind="auth", why="no key"))

    class Failing:
        async def search(self, request: SearchRequest) -> SearchResult:
            raise SourceError("both failed", kind="auth", failures=failures)

    steps: list[Step] = []
    asyncio.run(run("A: q", Failing(), steps))
    (step,) = steps
    assert isinstance(step, SearchFailed)
    assert step.failures == failures


def test_a_source_knows_what_a_structured_query_asks_a_graph_for():
    class Hearing:
        async def search(self, request: SearchRequest) -> SearchResult:
            heard.append((request.question, request.entities, request.relations))
            return SearchResult()

    heard: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    graph = Node(id="K", query="[Lina Orr] birthplace", source="kg", entities=("Lina Orr",), relations=("birthplace",))
    documents = Node(id="A", query="where was she born", source="web")

    question = "Where was Lina Orr born?"
    plan = Plan(nodes=(documents, graph))
    sources = {"web": Hearing(), "kg": Hearing()}
    asyncio.run(
        execute(plan, sources, round=1, limit=1, seconds=1, emit=lambda step: None, question=question),
    )
    assert heard == [(question, (), ()), (question, ("Lina Orr",), ("birthplace",))]
