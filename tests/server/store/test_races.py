"""What happens twice, at the same time, or half: retries, several servers, and runs that no server holds any more."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from server.http.encoding import dumped
from server.store import NewRun, RunStore
from server.store.database import Database
from server.store.deleted import UnknownPlaceError, forget
from server.store.library_rows import LibraryRow, Page
from server.store.reading import RunQuery
from server.store.records import OpenBlock
from server.store.reports import NewReport
from server.store.writing import Ended, Gained
from tests.server.store.test_runs import answered, new_run, thought, with_stores


def test_steps_that_are_brought_twice_stand_there_once(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        run = new_run("a")
        await one.writes.begin(run)
        rows = [thought(seq) for seq in range(1, 4)]
        await one.writes.append({"a": Gained(rows[:2], OpenBlock())})
        assert await one.writes.append({"a": Gained(rows, OpenBlock())}) == set()
        for _ in range(2):
            await one.writes.finish([Ended(answered(run, "Frank Herbert"), rows, stored=1)])
        look = await other.reads.look("a")
        assert look is not None
        assert ([seq for seq, _ in look.steps], look.row.answer) == ([1, 2, 3], "Frank Herbert")

    with_stores(location, test)


def test_a_run_that_its_process_does_not_hold_any_more_is_taken(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        for id in ("held", "forgotten"):
            await one.writes.begin(new_run(id))
        holding = RunStore(one.database, owner="one", lease_seconds=60)
        assert await holding.writes.renew(["held"]) == {}
        assert await other.writes.claim() == ["forgotten"]

    with_stores(location, test, lease_seconds=-1)


def test_a_run_that_cannot_be_read_is_ended_by_the_server_that_took_it_alone(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.begin(new_run("a"))
        await other.writes.abandon("a")
        assert [row.state for row in await one.reads.list(RunQuery(), limit=9)] == ["running"]
        await one.writes.abandon("a")
        assert [row.state for row in await one.reads.list(RunQuery(), limit=9)] == ["interrupted"]

    with_stores(location, test)


def test_servers_that_prune_at_the_same_time_remove_the_same_runs(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.keep([(run, dumped(run.trace)) for run in (new_run(f"r{at}") for at in range(20))])
        removed = await asyncio.gather(*(store.writes.prune(days=None, runs=8) for store in (one, other)))
        assert sum(removed) == 12
        assert len(await other.reads.list(RunQuery(), limit=50)) == 8

    with_stores(location, test)


def test_a_share_is_removed_at_a_time_until_none_is_left(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        await one.writes.keep([(run, dumped(run.trace)) for run in (new_run(f"r{at}") for at in range(10))])
        removed = [await one.writes.prune(days=None, runs=3, most=4) for _ in range(3)]
        assert removed == [4, 3, 0]
        assert [await one.writes.prune(days=-1, runs=None, most=2) for _ in range(3)] == [2, 1, 0]

    with_stores(location, test)


def test_runs_that_end_while_leases_are_renewed_wait_for_no_deadlock(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        runs = [new_run(f"r{at:02}") for at in range(40)]
        for run in runs:
            await one.writes.begin(run)
        ended = [Ended(answered(run, "So."), [], stored=0) for run in reversed(runs)]
        ids = [run.trace.id for run in runs]
        gained = {id: Gained([thought(1)], OpenBlock()) for id in reversed(ids)}
        work = [one.writes.finish(ended), one.writes.append(gained), *(one.writes.renew(ids) for _ in range(4))]
        await asyncio.gather(*work)
        assert {row.state for row in await other.reads.list(RunQuery(), limit=50)} == {"answered"}

    with_stores(location, test)


def searching(id: str, library: str) -> NewRun:
    run = new_run(id)
    run.trace.libraries = (library,)
    return run


async def library(store: RunStore, id: str) -> None:
    await store.libraries.add_library(LibraryRow(id, "Films"))


def test_what_is_stored_while_its_library_is_deleted_with_its_runs_goes_along_or_is_not_kept(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        for at in range(20):
            await library(one, f"vs_{at}")
        run = searching("before", "vs_0")
        await one.writes.begin(run)
        kept = [searching(f"r{at:02}", f"vs_{at}") for at in range(20)]
        work = [one.writes.keep([(new, dumped(new.trace))]) for new in kept]
        work += [one.writes.finish([Ended(answered(run, "So."), [], stored=0)])]
        gone = [other.libraries.delete_library(f"vs_{at}", runs=True) for at in range(20)]
        await asyncio.gather(*work, *gone)
        assert await other.reads.list(RunQuery(), limit=50) == []

    with_stores(location, test)


def test_a_run_or_report_that_begins_as_its_library_is_deleted_is_not_kept_unless_the_runs_stay(location: str):
    async def test(one: RunStore, other: RunStore) -> None:
        for id, runs in (("vs_gone", True), ("vs_only", False)):
            await library(one, id)
            await other.libraries.delete_library(id, runs=runs)
            run = searching(f"run_of_{id}", id)
            await one.writes.begin(run)
            await one.writes.finish([Ended(answered(run, "So."), [], stored=0)])
            await one.reports.begin(NewReport(f"report_of_{id}", "Why?", "", "{}", (id,)))
            await one.reports.save(f"report_of_{id}", "{}", "{}", state="answered")
        assert [row.id for row in await other.reads.list(RunQuery(), limit=9)] == ["run_of_vs_only"]
        reports = await other.reports.list(key_id=None, before=None, limit=9)
        assert [row.id for row in reports] == ["report_of_vs_only"]

    with_stores(location, test)


def test_a_list_goes_on_behind_what_was_deleted_until_that_is_forgotten(location: str, monkeypatch: pytest.MonkeyPatch):
    async def test(one: RunStore, other: RunStore) -> None:
        for id in ("vs_a", "vs_b", "vs_c"):
            await library(one, id)
        await one.libraries.delete_library("vs_b")
        behind = Page(after="vs_b", oldest_first=True)
        await forget(other.database)
        assert [row.id for row in await other.libraries.libraries(behind, key_id=None)] == ["vs_c"]
        monkeypatch.setattr("server.store.deleted._DAYS", -1)
        await forget(other.database)
        with pytest.raises(UnknownPlaceError):
            await other.libraries.libraries(behind, key_id=None)

    with_stores(location, test)


def test_what_was_removed_is_given_back_to_the_file_system(tmp_path: Path):
    async def main() -> tuple[int, int]:
        database = Database(str(tmp_path / "runs.sqlite"))
        store = RunStore(database)
        runs = [new_run(f"r{at}", "a long question " * 500) for at in range(60)]
        await store.writes.keep([(run, dumped(run.trace)) for run in runs])
        before = await pages(database)
        await store.writes.prune(days=None, runs=1)
        after = await pages(database)
        await store.aclose()
        return before, after

    async def pages(database: Database) -> int:
        async with database.reading() as connection:
            return (await connection.execute(text("PRAGMA page_count"))).scalar_one()

    before, after = asyncio.run(main())
    assert after < before / 2
