"""How reports end, and how long they are kept."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Literal

import pytest

from agent.report import Report, Research
from agent.report.report import ReportState
from server.auth.admission import AdmissionBounds
from server.chat.service import Service
from server.runs.manager import Retention, RunManager
from server.store import RunStore, StoreError
from server.store.database import Database
from server.store.reports import NewReport, ReportRow, StoredReports
from tests.server.reports.test_routes import REQUEST, HeldLibrary, begun, client_of, events, run, service_of


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


class Flaky(StoredReports):
    """Fails at its first `get` or its first `save` of a report that runs, and counts what begins."""

    def __init__(self, database: Database, fails: Literal["get", "save"]) -> None:
        super().__init__(database, owner="ours", lease_seconds=60)
        self._fails: str = fails
        self.begun = 0
        self.failed = asyncio.Event()
        self.saved = asyncio.Event()
        """While it runs."""

    async def begin(self, new: NewReport) -> ReportRow:
        self.begun += 1
        return await super().begin(new)

    async def get(self, id: str, *, key_id: str | None) -> ReportRow | None:
        self._fail("get")
        return await super().get(id, key_id=key_id)

    async def save(self, id: str, report: str, figures: str, *, state: str = "running") -> None:
        self._fail("save")
        await super().save(id, report, figures, state=state)
        self.saved.set()

    def _fail(self, where: str) -> None:
        if where == self._fails:
            self._fails = ""
            self.failed.set()
            raise StoreError("locked")


def flaky_service(fails: Literal["get", "save"], library: HeldLibrary) -> tuple[Service, Flaky]:
    service = service_of(library=library, bounds=AdmissionBounds(runs=1))
    assert service.run_manager
    store = service.run_manager.store
    store.reports = reports = Flaky(store.database, fails)
    return service, reports


def test_a_report_that_began_is_answered_with_its_card_where_the_store_cannot_be_read():
    async def test() -> None:
        library = HeldLibrary()
        service, reports = flaky_service("get", library)
        async with client_of(service) as client:
            started = await client.post("/api/reports", json=REQUEST)
            assert (started.status_code, reports.begun) == (201, 1)
            card = started.json()
            with pytest.raises(StoreError):  # the one failure, which would have met the start
                await reports.get(card["id"], key_id=None)
            assert card == (await client.get("/api/reports")).json()["reports"][0]
            library.go.set()
            assert (await events(client, card["id"]))[-1][2]["state"] == "done"

    run(test())


def test_a_section_whose_save_failed_is_stored_before_the_next_one_ends():
    async def test() -> None:
        library = HeldLibrary(held_from=2)
        service, reports = flaky_service("save", library)
        async with client_of(service) as client:
            id = await begun(client, sections=["The harbour", "Lina Orr"])
            await reports.failed.wait()
            await reports.saved.wait()
            stored = Report.model_validate_json(await reports.report(id))
            assert [section.state for section in stored.sections].count("researched") == 1
            library.go.set()
            assert (await events(client, id))[-1][2]["state"] == "done"

    run(test())


class Slow(StoredReports):
    """Stores a report that runs only after it was let go, and knows whether that was cancelled meanwhile."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, owner="ours", lease_seconds=60)
        self.saving = asyncio.Event()
        self.cancelled = False

    async def save(self, id: str, report: str, figures: str, *, state: str = "running") -> None:
        if state == "running":
            self.saving.set()
            try:
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        await super().save(id, report, figures, state=state)


def test_a_report_that_ends_while_it_is_stored_lets_that_end_first():
    async def test() -> None:
        library = HeldLibrary(held_from=2)
        service = service_of(library=library, bounds=AdmissionBounds(runs=1))
        assert service.run_manager
        store = service.run_manager.store
        store.reports = reports = Slow(store.database)
        async with client_of(service) as client:
            id = await begun(client, sections=["The harbour", "Lina Orr"])
            await reports.saving.wait()
            library.go.set()
            assert (await events(client, id))[-1][2]["state"] == "done"
        assert not reports.cancelled

    run(test())
