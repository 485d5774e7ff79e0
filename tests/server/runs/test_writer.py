import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from agent.trace import Answered, Delta, Stopped, Thought, Trace
from server.runs.live import LiveRun
from server.runs.writer import Writer
from server.store import NewRun, RunStore, StoreError
from server.store.database import Database
from server.store.reading import RunQuery
from server.store.writing import Gained, RunWrites


class Moody(RunWrites):
    """Writes that can be counted, held up, made to fail, and that refuse one run."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, owner="one", lease_seconds=60)
        self.appends = 0
        self.fails = False
        self.refused = ""
        self.requested = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    async def append(self, gained: Mapping[str, Gained]) -> set[str]:
        self.appends += 1
        self.requested.set()
        await self.go.wait()
        if self.fails:
            raise StoreError("locked")
        if self.refused in gained:
            raise StoreError("refused")
        return await super().append(gained)

    async def keep(self, traces: Sequence[tuple[NewRun, str]]) -> None:
        if self.fails:
            raise StoreError("full")
        if any(run.trace.id == "bad" for run, _ in traces):
            raise StoreError("refused")
        await super().keep(traces)


class Bench:
    """A writer on a store whose writes are moody, and one run."""

    def __init__(self, *, patience_seconds: float = 60) -> None:
        self.store = RunStore(Database("memory"), owner="one")
        self.writes = Moody(self.store.database)
        self.store.writes = self.writes
        self.writer = Writer(self.store, patience_seconds=patience_seconds)
        self.trace = Trace(id="a", question="Why?", protocol="cairn", policy="scripted")
        self.run = LiveRun(NewRun(trace=self.trace, model="cairn"), created=0)
        self.stored = asyncio.Event()

    def say(self, event: Thought | Answered | Stopped | Delta) -> None:
        if not isinstance(event, Delta):
            self.trace.steps.append(event)
        self.run.emit(event)
        self.writer.changed(self.run)

    def end(self) -> None:
        self.say(Answered(text="So."))
        self.say(Stopped(reason="answered"))
        self.writer.ended(self.run, self.stored.set)


def on_a_bench(test: Callable[[Bench], Awaitable[None]], *, patience_seconds: float = 60) -> None:
    async def main() -> None:
        bench = Bench(patience_seconds=patience_seconds)
        async with asyncio.timeout(60):
            await bench.writes.begin(bench.run.new)
            await test(bench)
            await bench.writer.aclose(seconds=5)
            await bench.store.aclose()

    asyncio.run(main())


def test_much_text_is_few_writes():
    async def test(bench: Bench) -> None:
        for at in range(600):
            bench.say(Delta(role="thought", text=f"{at} "))
            await asyncio.sleep(0)
        bench.end()
        await bench.stored.wait()
        assert bench.writes.appends <= 3

    on_a_bench(test)


def test_steps_that_come_while_the_store_writes_are_written_together():
    async def test(bench: Bench) -> None:
        bench.writes.go.clear()
        bench.say(Thought(text="first"))
        await bench.writes.requested.wait()
        for at in range(50):
            bench.say(Thought(text=str(at)))
        bench.writes.go.set()
        bench.end()
        await bench.stored.wait()
        assert bench.writes.appends <= 3
        look = await bench.store.reads.look("a")
        assert look is not None
        assert [seq for seq, _ in look.steps] == list(range(1, 54))

    on_a_bench(test)


def test_a_step_is_shown_when_it_is_stored_and_text_behind_it_with_it():
    async def test(bench: Bench) -> None:
        bench.writes.go.clear()
        bench.say(Delta(role="thought", text="at once"))
        assert bench.run.open_block.pieces == (("thought", "at once"),)
        bench.say(Thought(text="step"))
        bench.say(Delta(role="answer", text="behind"))
        await bench.writes.requested.wait()
        assert (bench.run.shown, bench.run.open_block.pieces) == (0, (("thought", "at once"),))
        bench.writes.go.set()
        await bench.run.changed()
        assert (bench.run.shown, bench.run.open_block.pieces) == (1, (("answer", "behind"),))
        assert len(await bench.store.reads.grown("a")) == 1
        bench.end()
        await bench.stored.wait()

    on_a_bench(test)


def test_a_store_that_fails_holds_a_step_up_for_a_moment_and_gets_it_when_it_works_again(
    caplog: pytest.LogCaptureFixture,
):
    async def test(bench: Bench) -> None:
        bench.writes.fails = True
        bench.say(Thought(text="step"))
        await bench.run.changed()
        assert (bench.run.shown, bench.run.stored) == (1, 0)
        bench.say(Thought(text="another"))
        bench.writes.fails = False
        bench.end()
        await bench.stored.wait()
        look = await bench.store.reads.look("a")
        assert look is not None
        assert (look.total, look.row.answer) == (4, "So.")

    with caplog.at_level(logging.WARNING, logger="server"):
        on_a_bench(test, patience_seconds=0)
    said = [record.message for record in caplog.records]
    assert len([sentence for sentence in said if "runs continue" in sentence]) == 1
    assert "the store takes runs again" in said


def test_a_run_that_the_store_refuses_holds_up_no_other(caplog: pytest.LogCaptureFixture):
    async def test(bench: Bench) -> None:
        for id in ("good", "bad", "better"):
            bench.writer.keep(NewRun(trace=bench.trace.model_copy(update={"id": id}), model="cairn"))
        bench.end()
        await bench.stored.wait()
        await bench.writer.aclose(seconds=5)
        assert {row.id for row in await bench.store.reads.list(RunQuery(), limit=9)} == {"a", "good", "better"}

    on_a_bench(test)
    assert [record.message for record in caplog.records if "bad" in record.message]


def test_runs_that_no_one_waits_for_are_written_together_and_one_that_is_waited_for_at_once():
    async def test(bench: Bench) -> None:
        written: list[list[str]] = []
        once = asyncio.Event()
        keep = bench.writes.keep

        async def counted(traces: Sequence[tuple[NewRun, str]]) -> None:
            written.append([run.trace.id for run, _ in traces])
            await keep(traces)
            once.set()

        def run_of(id: str) -> NewRun:
            return NewRun(trace=bench.trace.model_copy(update={"id": id}), model="cairn")

        bench.writes.keep = counted
        bench.writer.keep(run_of("first"))
        await once.wait()
        for number in range(5):
            bench.writer.keep(run_of(f"k{number}"))
            await asyncio.sleep(0)
        stored = asyncio.Event()
        bench.writer.keep(replace(run_of("waited for"), then=stored.set))
        await stored.wait()
        assert written == [["first"], [*(f"k{number}" for number in range(5)), "waited for"]]
        bench.writer.keep(run_of("last"))
        await bench.writer.aclose(seconds=5)
        assert written[2:] == [["last"]]

    on_a_bench(test)


def test_what_could_not_be_stored_is_named_when_the_server_ends(caplog: pytest.LogCaptureFixture):
    async def test(bench: Bench) -> None:
        bench.writes.fails = True
        bench.writer.keep(NewRun(trace=bench.trace.model_copy(update={"id": "lost"}), model="cairn"))
        await bench.writer.aclose(seconds=0.2)

    on_a_bench(test)
    assert any("lost" in record.message and record.levelname == "ERROR" for record in caplog.records)


def test_a_store_that_never_answers_holds_a_step_up_no_longer_than_one_that_fails():
    async def test(bench: Bench) -> None:
        bench.writes.go.clear()
        bench.say(Thought(text="step"))
        await bench.run.changed()
        assert (bench.run.shown, bench.run.stored) == (1, 0)
        bench.say(Thought(text="another"))
        assert bench.run.shown == 2
        bench.end()
        while not bench.run.over:
            await bench.run.changed()
        bench.writes.go.set()
        await bench.stored.wait()
        look = await bench.store.reads.look("a")
        assert look is not None
        assert (look.total, look.row.answer) == (4, "So.")

    on_a_bench(test, patience_seconds=0.05)


def test_steps_that_the_store_refuses_hold_up_no_other_run(caplog: pytest.LogCaptureFixture):
    async def test(bench: Bench) -> None:
        trace = bench.trace.model_copy(update={"id": "bad", "steps": []})
        bad = LiveRun(NewRun(trace=trace, model="cairn"), created=0)
        await bench.writes.begin(bad.new)
        bench.writes.refused = "bad"
        bad.emit(Thought(text="no one takes this"))
        bench.writer.changed(bad)
        bench.say(Thought(text="step"))
        for run in (bad, bench.run):
            if not run.shown:
                await run.changed()
        assert (bad.stored, bench.run.stored) == (0, 1)
        bench.end()
        await bench.stored.wait()

    on_a_bench(test)
    assert [record.message for record in caplog.records if "the steps of the run bad" in record.message]


def test_steps_do_not_wait_until_everything_else_is_written():
    async def test(bench: Bench) -> None:
        written: list[str] = []
        began = asyncio.Event()

        async def keep(traces: Sequence[tuple[NewRun, str]]) -> None:
            written.append("kept")
            began.set()
            if len(written) < 20:  # as many come as go
                kept(len(written))

        def kept(number: int) -> None:
            bench.writer.keep(NewRun(trace=bench.trace.model_copy(update={"id": f"k{number}"}), model="cairn"))

        bench.writes.keep = keep
        kept(0)
        await began.wait()
        bench.say(Thought(text="step"))
        await bench.run.changed()
        assert len(written) < 10
        bench.end()
        await bench.stored.wait()

    on_a_bench(test)


def test_a_slow_store_is_no_news_where_no_one_waits_for_it(caplog: pytest.LogCaptureFixture):
    async def test(bench: Bench) -> None:
        keep = bench.writes.keep

        async def slowly(traces: Sequence[tuple[NewRun, str]]) -> None:
            await asyncio.sleep(0.2)
            await keep(traces)

        bench.writes.keep = slowly
        bench.writer.keep(NewRun(trace=bench.trace.model_copy(update={"id": "kept"}), model="cairn"))

    with caplog.at_level(logging.WARNING, logger="server"):
        on_a_bench(test, patience_seconds=0.02)
    assert not caplog.records
