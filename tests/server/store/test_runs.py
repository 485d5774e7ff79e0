import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from agent.trace import Answered, Segment, Stopped, Thought, Trace, Usage
from server.http.encoding import dumped
from server.runs.restore import WHY, Growth, restored
from server.store import NewRun, RunStore, StepRow
from server.store.database import Database
from server.store.reading import RunQuery
from server.store.records import OpenBlock
from server.store.writing import Ended, Gained


def new_run(id: str = "a", question: str = "Who wrote Dune?", *, conversation: str = "") -> NewRun:
    trace = Trace(id=id, question=question, conversation=conversation, protocol="cairn", policy="scripted")
    return NewRun(trace=trace, model="cairn")


def thought(seq: int) -> StepRow:
    return StepRow(seq, dumped(Thought(text=f"thought {seq}")), "{}")


def with_stores(
    location: str, test: Callable[[RunStore, RunStore], Awaitable[None]], *, lease_seconds: float = 60.0
) -> None:
    """Two processes on one database."""

    async def main() -> None:
        database = Database(location)
        one = RunStore(database, owner="one", lease_seconds=lease_seconds)
        other = RunStore(database if location == "memory" else Database(location), owner="other")
        async with asyncio.timeout(60):
            await test(one, other)
        await one.aclose()
        await other.aclose()

    asyncio.run(main())


def answered(run: NewRun, text: str) -> Trace:
    run.trace.steps += [Answered(text=text), Stopped(reason="answered")]
    return run.trace


def test_a_run_is_read_back_as_it_was_written(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run(conversation="talk")
        await one.writes.begin(run)
        block = OpenBlock((("answer", "Fra"), ("thought", "no")))
        assert await one.writes.append({"a": Gained([thought(1), thought(2)], block)}) == set()
        look = await other.reads.look("a", after=1)
        assert look is not None
        assert ([seq for seq, _ in look.steps], look.total, look.open_block) == ([2], 2, block)
        assert (look.row.state, look.row.conversation, look.row.mine) == ("running", "talk", False)
        run.trace.usage = Usage(searches=3, prompt_tokens=10, policy_tokens=5)
        rows = [thought(seq) for seq in range(1, 4)]
        await one.writes.finish([Ended(answered(run, "Frank Herbert"), rows, stored=2)])
        done = await other.reads.look("a")
        assert done is not None
        assert (done.row.state, done.row.answer, done.total, done.open_block.chars) == (
            "answered",
            "Frank Herbert",
            3,
            0,
        )
        assert (done.row.figures.searches, done.row.figures.tokens) == (3, 15)
        stored = await other.reads.trace("a")
        assert stored is not None
        assert Trace.model_validate_json(stored) == run.trace

    with_stores(location, test)


def test_many_runs_are_written_in_one_go_and_events_keep_their_order(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        ids = [f"run{at}" for at in range(40)]
        for id in ids:
            await one.writes.begin(new_run(id))
        for first in (1, 4, 7):
            rows = [thought(seq) for seq in range(first, first + 3)]
            await one.writes.append({id: Gained(rows, OpenBlock()) for id in ids})
        for id in ids:
            look = await other.reads.look(id)
            assert look is not None
            assert [json.loads(step)["text"] for _, step in look.steps] == [f"thought {seq}" for seq in range(1, 10)]

    with_stores(location, test)


def test_what_another_replica_commands_reaches_the_owner_and_a_cancel_stands(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.begin(new_run("a"))
        await one.writes.begin(new_run("b"))
        assert await other.writes.command("a", "answer_now")
        assert await one.writes.commands() == {"a": "answer_now"}
        assert await other.writes.command("a", "cancel")
        assert await other.writes.command("a", "answer_now")
        assert await one.writes.renew(["a", "b"]) == {"a": "cancel"}
        assert await other.writes.commands() == {}
        assert not await other.writes.command("nothing", "cancel")

    with_stores(location, test)


def test_a_run_without_word_of_its_owner_is_taken_once_and_reported_to_the_old_owner(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.begin(new_run("a"))
        await one.writes.begin(new_run("b"))
        taken = [*await other.writes.claim(), *await other.writes.claim()]
        assert sorted(taken) == ["a", "b"]
        assert await one.writes.append({"a": Gained([thought(1)], OpenBlock())}) == {"a"}
        look = await other.reads.look("a")
        assert look is not None
        assert (look.total, look.row.mine) == (0, True)

    with_stores(location, test, lease_seconds=-1)


def test_a_run_whose_lease_holds_is_not_taken(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.begin(new_run("a"))
        assert await other.writes.claim() == []

    with_stores(location, test)


def test_an_owner_that_lives_after_all_keeps_its_answer(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run("a")
        await one.writes.begin(run)
        await one.writes.append({"a": Gained([thought(1)], OpenBlock())})
        await other.writes.claim()
        begun = dumped(new_run("a").trace)
        trace, added = restored(begun, await other.reads.grown("a"), OpenBlock())
        rows = [thought(1), StepRow(2, dumped(added[0]), "{}")]
        claimed = Ended(trace, rows, stored=1, claimed=True)
        await other.writes.finish([claimed])
        assert (await other.reads.get("a")).state == "interrupted"  # pyright: ignore[reportOptionalMemberAccess]
        await one.writes.finish([Ended(answered(run, "Frank Herbert"), [thought(1), thought(2), thought(3)], stored=1)])
        await other.writes.finish([claimed])
        look = await other.reads.look("a")
        assert look is not None
        assert (look.row.state, look.row.answer, look.total) == ("answered", "Frank Herbert", 3)

    with_stores(location, test, lease_seconds=-1)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("dune", {"a"}),
        ("DUN", {"a"}),
        ("herbert", {"a"}),
        ("wrote herb", {"a"}),
        ("wrote", {"a", "b"}),
        ("une", set[str]()),
        ('wrote" OR *', set[str]()),
        ("%", {"a", "b", "c"}),
        ("straße", {"c"}),
    ],
)
def test_runs_are_found_by_beginnings_of_words_in_question_and_answer(location: str, words: str, found: set[str]):
    async def test(one: RunStore, other: RunStore) -> None:
        kept = [new_run("a"), new_run("b", "Who wrote Emma?"), new_run("c", "Which Straße is it?")]
        answers = ["Frank Herbert", "Jane Austen", "none \x00"]
        await one.writes.keep([(run, dumped(answered(run, text))) for run, text in zip(kept, answers, strict=True)])
        assert {row.id for row in await other.reads.list(RunQuery(words=words), limit=10)} == found

    with_stores(location, test)


def test_a_run_that_is_kept_twice_is_kept_once(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run("a")
        for _ in range(2):
            await one.writes.keep([(run, dumped(run.trace))])
        assert [row.state for row in await other.reads.list(RunQuery(), limit=10)] == ["interrupted"]

    with_stores(location, test)


def test_pages_hold_every_run_once(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.keep([(run, dumped(run.trace)) for run in (new_run(f"r{at:02}") for at in range(23))])
        seen: list[str] = []
        before: tuple[float, str] | None = None
        while page := await other.reads.list(RunQuery(before=before), limit=5):
            seen += [row.id for row in page]
            before = (page[-1].created, page[-1].id)
        assert len(seen) == 23
        assert set(seen) == {f"r{at:02}" for at in range(23)}

    with_stores(location, test)


def test_what_is_old_or_too_much_is_removed_but_nothing_that_runs(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.begin(new_run("running"))
        await one.writes.keep([(run, dumped(run.trace)) for run in (new_run(f"r{at}") for at in range(9))])
        assert await one.writes.prune(days=1, runs=None) == 0
        assert await one.writes.prune(days=None, runs=4) == 6
        assert len(await other.reads.list(RunQuery(), limit=50)) == 4
        assert await one.writes.prune(days=-1, runs=None) == 3
        assert [row.id for row in await other.reads.list(RunQuery(), limit=50)] == ["running"]

    with_stores(location, test)


def test_a_run_is_removed_with_its_events_but_not_while_it_runs(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run("a")
        await one.writes.begin(run)
        await one.writes.append({"a": Gained([thought(1)], OpenBlock())})
        assert not await other.writes.delete("a")
        await one.writes.finish([Ended(run.trace, [thought(1)], stored=1)])
        assert await other.writes.delete("a")
        assert await other.reads.grown("a") == []
        assert not await other.writes.delete("a")

    with_stores(location, test)


def test_text_that_no_database_takes_is_made_storable(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run("a", "NUL \x00 here")
        half = run.trace.model_copy(update={"question": "half \ud800 of a pair", "id": "b"})
        await one.writes.keep([(run, dumped(run.trace)), (NewRun(half, "m"), dumped(half))])
        questions = {row.question for row in await other.reads.list(RunQuery(), limit=9)}
        assert questions == {"NUL \ufffd here", "half ? of a pair"}

    with_stores(location, test)


def test_a_trace_is_restored_from_what_it_gained_with_each_step():
    trace = new_run().trace
    begun = dumped(trace)
    growth = Growth(trace)
    stored: list[tuple[str, str]] = []
    for at in range(3):
        trace.segments.append(Segment(by="policy", text=f"text {at}"))
        trace.usage = Usage(policy_tokens=at)
        step = Thought(text=f"thought {at}", segments=(at, at + 5), seconds=at)
        stored.append((dumped(step), dumped(growth.since())))
    found, added = restored(begun, stored, OpenBlock((("answer", "half an ans"),)))
    assert found.segments == trace.segments
    assert found.usage == trace.usage
    assert [step.segments for step in found.steps[:3]] == [(0,), (1,), (2,)]
    assert added == [Thought(text="half an ans", seconds=2), Stopped(reason="interrupted", detail=WHY, seconds=2)]
    assert Trace.model_validate_json(dumped(found)) == found
