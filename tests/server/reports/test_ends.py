"""How reports end, and how long they are kept."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from agent.report import Report, Research
from agent.report.report import ReportState
from server.runs.manager import Retention, RunManager
from server.store import RunStore
from server.store.database import Database
from server.store.reports import NewReport, StoredReports
from tests.server.reports.test_routes import HeldLibrary, begun, client_of, events, run, service_of


def test_a_report_that_is_cancelled_twice_has_one_end(monkeypatch: pytest.MonkeyPatch):
    whole = Research.report

    def slow(self: Research, state: ReportState = "running") -> Report:
        sleep(0.2 if state == "cancelled" else 0)
        return whole(self, state)

    monkeypatch.setattr(Research, "report", slow)

    async def test() -> None:
        library = HeldLibrary()
        async with client_of(service_of(library=library)) as client:
            id = await begun(client)
            await library.requested.wait()
            following = asyncio.create_task(events(client, id))
            for _ in range(2):
                assert (await client.post(f"/api/reports/{id}/cancel")).status_code == 202
                await asyncio.sleep(0.05)
            assert (await following)[-1][2]["state"] == "cancelled"
            assert (await client.get(f"/api/reports/{id}")).json()["state"] == "cancelled"

    run(test())


@pytest.mark.parametrize("renewed", [True, False])
def test_a_report_that_was_given_up_while_the_store_was_away_is_kept_whole(tmp_path: Path, renewed: bool):
    database = Database(str(tmp_path / "runs.sqlite"))

    def reports(owner: str, lease: float = 60) -> StoredReports:
        return StoredReports(database, owner=owner, lease_seconds=lease)

    async def state() -> str:
        row = await reports("other").get("rep", key_id=None)
        return row.state if row else ""

    async def test() -> None:
        await reports("ours", lease=0.01).begin(NewReport("rep", "Who?", "", "{}"))
        await asyncio.sleep(0.05)
        assert await state() == "interrupted"
        await reports("other").save("rep", "of others", "{}", state="done")
        if renewed:
            await reports("ours").renew(["rep"])
            assert await state() == "running"
        await reports("ours").save("rep", "whole", "{}", state="done")
        await reports("ours").renew(["rep"])
        assert (await state(), await reports("other").report("rep")) == ("done", "whole")
        await database.aclose()

    run(test())


def test_old_reports_go_without_a_new_one(tmp_path: Path):
    async def test() -> None:
        store = str(tmp_path / "runs.sqlite")
        async with client_of(service_of(store)) as client:
            for _ in range(3):
                await events(client, await begun(client))
        manager = RunManager(RunStore(Database(store)), retention=Retention(runs=1), command_seconds=0.01)
        async with client_of(replace(service_of(), run_manager=manager, keep=manager.keep)) as client:
            while len((await client.get("/api/reports")).json()["reports"]) > 1:
                pass

    run(test())
