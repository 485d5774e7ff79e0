"""What a run manager does beside its own runs: those of dead servers, commands of others, and the end of its own."""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from server.http.encoding import dumped
from server.runs import manager
from server.runs.manager import Retention, RunManager
from server.shutdown import Grace
from server.store import NewRun, RunStore
from server.store.database import Database
from server.store.reading import RunQuery
from server.store.tables import RUNS
from tests.server.live import SEARCH, serving_as
from tests.server.runs.replicas import Folded, Held, all_events, client_of, events, keeping_service, start
from tests.server.store.test_runs import new_run

FORCED = (SEARCH, "- She comes from Trieste. [1]\n</evidence>", "Trieste</answer>")


def run(test: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())


async def states(store: RunStore) -> dict[str, str]:
    return {row.id: row.state for row in await store.reads.list(RunQuery(), limit=100)}


async def until_ended(store: RunStore) -> dict[str, str]:
    while "running" in (found := await states(store)).values():  # noqa: ASYNC110 - the run manager reports it nowhere
        await asyncio.sleep(0.01)
    return found


def test_a_run_of_the_dead_that_is_unreadable_keeps_no_other_from_its_end(
    location: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "_INTERRUPTED_AT_ONCE", 2)

    async def test() -> None:
        database = Database(location)
        dead = RunStore(database, owner="dead", lease_seconds=-1)
        for at in range(6):
            await dead.writes.begin(new_run(f"r{at}"))
        async with database.writing() as connection:
            await connection.execute(update(RUNS).where(RUNS.c.id == "r0").values(trace='{"version": 99}'))
        run_manager = RunManager(RunStore(database), command_seconds=0.01)
        await run_manager.open()
        assert await until_ended(run_manager.store) == {f"r{at}": "interrupted" for at in range(6)}
        await run_manager.aclose()

    with caplog.at_level(logging.ERROR, logger="server"):
        run(test())
    (message,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert "r0" in message
    assert "this Cairn cannot read" in message


def test_many_runs_that_are_too_many_do_not_keep_leases_from_being_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "PRUNED_AT_ONCE", 1)

    async def test() -> None:
        store = RunStore(Database("memory"), lease_seconds=0.04)
        did: list[str] = []
        honest_prune, honest_renew = store.writes.prune, store.writes.renew

        async def prune(**options: Any) -> int:
            did.append("prune")
            return min(await honest_prune(**options, most=1), 1)

        async def renew(runs: Any) -> Any:
            did.append("renew")
            return await honest_renew(runs)

        store.writes.prune, store.writes.renew = prune, renew
        await store.writes.keep([(one, dumped(one.trace)) for one in (new_run(f"r{at}") for at in range(20))])
        run_manager = RunManager(store, retention=Retention(runs=1), command_seconds=0.005)
        never = asyncio.Event()

        async def drive(emit: Emit, control: Control) -> None:
            await never.wait()

        await run_manager.start(NewRun(trace=new_run("mine").trace, model="cairn"), drive)
        while len(await states(store)) > 1:  # noqa: ASYNC110 - the run manager reports it nowhere
            await asyncio.sleep(0.005)
        first, last = did.index("prune"), len(did) - 1 - did[::-1].index("prune")
        assert "renew" in did[first:last]
        await run_manager.aclose()

    run(test())


def test_answer_now_at_another_replica_reaches_the_owner(location: str) -> None:
    async def test() -> None:
        held = Held()
        database = Database(location)
        elsewhere = keeping_service(database if location == "memory" else location)
        async with (
            client_of(keeping_service(database, turns=FORCED, held=held)) as owner,
            client_of(elsewhere) as other,
        ):
            id = await start(owner)
            await held.requested.wait()
            assert (await other.post(f"/api/runs/{id}/answer_now")).json()["state"] == "running"
            here = (await all_events(owner, id))[-1]
            assert (here.event, here.data["state"], here.data["answer"]) == ("end", "forced", "Trieste")
            there = (await all_events(other, id))[-1]
            assert (there.data["state"], there.data["answer"]) == ("forced", "Trieste")

    run(test())


def test_a_server_that_stops_lets_its_runs_answer_with_what_they_found_and_reports_it_to_followers() -> None:
    async def test() -> None:
        held = Held()
        service = keeping_service("memory", turns=FORCED, held=held)
        grace = Grace(seconds=0, answer_seconds=30)
        async with (
            serving_as(service, grace=grace) as (address, server),
            httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False) as client,
        ):
            id = await start(client)
            await held.requested.wait()
            async with aclosing(events(client, id)) as following:
                await anext(following)
                server.should_exit = True
                last = [seen async for seen in following][-1]
        assert (last.event, last.data["state"], last.data["answer"]) == ("end", "forced", "Trieste")

    run(test())


def test_a_server_that_stops_waits_for_no_run_of_another_one_and_its_readers_may_go_there(tmp_path: Path) -> None:
    async def test() -> None:
        held = Held()
        location = str(tmp_path / "runs.sqlite")
        stopping = keeping_service(location)
        async with AsyncExitStack() as stack:
            owner = await stack.enter_async_context(client_of(keeping_service(location, held=held)))
            address, server = await stack.enter_async_context(serving_as(stopping, grace=Grace(seconds=600)))
            id = await start(owner)
            await held.requested.wait()
            async with httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
                reader = Folded()
                async with aclosing(events(client, id)) as following:
                    async for seen in following:
                        reader.take(seen)
                        server.should_exit = True
            assert not reader.over
            held.go.set()
            async for seen in events(owner, id, after=reader.last):
                reader.take(seen)
            assert reader.over

    run(test())
