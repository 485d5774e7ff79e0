"""Reports over HTTP: waited for at `/v1/reports`, and those under `/api/reports` that outlive their clients."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pypdf
import pytest
from docx import Document
from pydantic import SecretStr

from agent.policies.scripted import Script
from agent.report import Report, unsupported
from agent.sources.base import SearchRequest, SearchResult
from server.auth.admission import Admission, AdmissionBounds
from server.auth.keys import KeyLimits, new_key
from server.auth.middleware import Rules
from server.chat.service import Service
from server.runs.manager import RunManager
from server.shutdown import Grace
from server.store import RunStore
from server.store.database import Database
from tests.agent.report.library import QUESTION, Library, agent_of, researcher
from tests.server.live import HangingPolicy, make_service, serving

RIGHT = "Lina Orr was born in Trieste in 1931. [1][2][3]"
REQUEST = {"question": QUESTION, "most_sections": 3}


@dataclass
class HeldLibrary(Library):
    """Gives the outline its pages, and the sections theirs when the test says so."""

    held_from: int = 1
    """Searches that end before one is held."""
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(self, request: SearchRequest) -> SearchResult:
        if self.searches >= self.held_from:
            self.requested.set()
            await self.go.wait()
        return await super().search(request)


def service_of(
    store: str | Database = "memory", *, library: Library | None = None, turns: Script | None = None, lease: float = 60.0,
    bounds: AdmissionBounds | None = None,
) -> Service:  # fmt: skip
    database = store if isinstance(store, Database) else Database(store)
    manager = RunManager(RunStore(database, lease_seconds=lease), command_seconds=0.05, close_seconds=1.0)
    agent = agent_of(turns or researcher(RIGHT), source=library)
    return make_service(agent=agent, run_manager=manager, keep=manager.keep, admission=Admission(bounds))


@asynccontextmanager
async def client_of(
    service: Service, rules: Rules | None = None, *, key: str = "", grace: Grace | None = None
) -> AsyncGenerator[httpx2.AsyncClient]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        serving(service, rules, grace=grace) as address,
        httpx2.AsyncClient(base_url=address, trust_env=False, timeout=20, headers=headers) as client,
    ):
        yield client


def run(test: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())


async def events(
    client: httpx2.AsyncClient, id: str, *, first: asyncio.Event | None = None, **params: str
) -> list[tuple[str, str, Any]]:
    """Each event of a report down to its end, as (id, name, data); `first` is set when the first one came."""
    found: list[tuple[str, str, Any]] = []
    fields: dict[str, str] = {}
    async with client.stream("GET", f"/api/reports/{id}/events", params=params) as response:
        async for line in response.aiter_lines():
            name, colon, value = line.partition(": ")
            if name and colon:
                fields[name] = value
            elif "event" in fields:
                found.append((fields["id"], fields["event"], json.loads(fields["data"])))
                fields = {}
                if first:
                    first.set()
    return found


async def begun(client: httpx2.AsyncClient, **body: Any) -> str:
    response = await client.post("/api/reports", json=REQUEST | body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


def test_a_report_that_is_waited_for_comes_whole_and_can_be_checked_again():
    async def test() -> None:
        async with client_of(service_of()) as client:
            reply = (await client.post("/v1/reports", json=REQUEST)).json()
            report = Report.model_validate(reply["report"])
            assert (reply["object"], reply["id"], report.state) == ("report", report.id, "done")
            assert report.sentences
            assert unsupported(report) == []

    run(test())


def test_a_stream_sends_events_then_the_report_then_done():
    async def test() -> None:
        async with client_of(service_of()) as client:
            response = await client.post("/v1/reports", json=REQUEST | {"stream": True})
            frames = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
            assert frames[-1] == "[DONE]"
            bodies = [json.loads(frame) for frame in frames[:-1]]
            assert bodies[-1]["object"] == "report"
            kinds = [body["event"]["kind"] for body in bodies[:-1]]
            assert kinds[0] == "outline"
            assert {"section_started", "section_ended", "ended"} <= set(kinds)
            assert all(body["id"] == bodies[-1]["id"] for body in bodies)

    run(test())


def test_a_report_goes_on_without_its_client_and_is_kept(location: str):
    async def test() -> None:
        library = HeldLibrary()
        async with client_of(service_of(location, library=library)) as client:
            id = await begun(client)
            await library.requested.wait()
            going = (await client.get(f"/api/reports/{id}")).json()
            assert (going["state"], going["report"]["state"]) == ("running", "running")
            assert (await client.delete(f"/api/reports/{id}")).status_code == 409
            first = asyncio.Event()
            reading = asyncio.create_task(events(client, id, first=first))
            await first.wait()
            library.go.set()
            seen = await reading
            assert [seen[0][1], seen[-1][1]] == ["outline", "end"]
            assert seen[-1][2]["state"] == "done"
            done = (await client.get(f"/api/reports/{id}")).json()
            assert done["figures"]["sentences"] == len(Report.model_validate(done["report"]).sentences) > 0
            assert (await client.get("/api/reports")).json()["reports"][0]["id"] == id
            assert (await client.delete(f"/api/reports/{id}")).status_code == 204
            assert (await client.get(f"/api/reports/{id}")).status_code == 404

    run(test())


def test_the_runs_of_its_sections_are_ordinary_runs_whose_traces_can_be_opened():
    async def test() -> None:
        async with client_of(service_of()) as client:
            id = await begun(client)
            await events(client, id)
            report = Report.model_validate((await client.get(f"/api/reports/{id}")).json()["report"])
            runs = [section.run for section in report.sections]
            while len((await client.get("/api/runs", params={"conversation": id})).json()["runs"]) < len(runs):
                pass  # they are kept behind the report's back
            for section in report.sections:
                trace = (await client.get(f"/api/runs/{section.run}")).json()["trace"]
                assert trace["question"] == section.question

    run(test())


def test_a_reader_goes_on_after_the_last_event_that_it_saw():
    async def test() -> None:
        async with client_of(service_of(library=(library := HeldLibrary()))) as client:
            id = await begun(client)
            await library.requested.wait()
            one, other = asyncio.Event(), asyncio.Event()
            reading = asyncio.create_task(events(client, id, first=one))
            later = asyncio.create_task(events(client, id, first=other, after="1"))
            await one.wait()
            await other.wait()
            library.go.set()
            whole, rest = await reading, await later
            assert whole[0][:2] == ("1", "outline")
            assert "outline" not in [name for _, name, _ in rest]
            assert rest[-1] == whole[-1]
            assert (await client.get(f"/api/reports/{id}/events", params={"after": "end"})).status_code == 204
            assert (await client.get(f"/api/reports/{id}/events", params={"after": "x"})).status_code == 400

    run(test())


def test_cancel_ends_it_and_answer_now_writes_it(location: str):
    async def test() -> None:
        for command, state in (("cancel", "cancelled"), ("answer_now", "cut")):
            library = HeldLibrary()
            async with client_of(service_of(location, library=library)) as client:
                id = await begun(client, most_sections=6)
                await library.requested.wait()
                assert (await client.post(f"/api/reports/{id}/{command}")).status_code == 202
                end = (await events(client, id))[-1]
                assert end[1] == "end"
                assert end[2]["state"] in (state, "done")
                detail = (await client.get(f"/api/reports/{id}")).json()
                assert detail["report"]["state"] == end[2]["state"]
                assert "running" not in {section["state"] for section in detail["report"]["sections"]}

    run(test())


def test_a_command_reaches_the_replica_that_researches_it(tmp_path: Any):
    async def test() -> None:
        store = str(tmp_path / "runs.sqlite")
        library = HeldLibrary()
        async with client_of(service_of(store, library=library)) as one, client_of(service_of(store)) as other:
            id = await begun(one)
            await library.requested.wait()
            assert (await other.get(f"/api/reports/{id}")).json()["state"] == "running"
            following = asyncio.create_task(events(other, id))
            assert (await other.post(f"/api/reports/{id}/cancel")).status_code == 202
            seen = await following
            assert seen[-1][1:2] == ("end",)
            assert seen[-1][2]["state"] == "cancelled"

    run(test())


def test_a_report_whose_server_ended_is_interrupted_and_never_done(tmp_path: Any):
    async def test() -> None:
        store, policy = str(tmp_path / "runs.sqlite"), HangingPolicy()
        service = service_of(store)
        service = replace(service, agent=replace(service.agent, policy=policy))
        async with client_of(service, grace=Grace(0.1, 0.1)) as client:
            id = await begun(client)
            await policy.requested.wait()
        async with client_of(service_of(store)) as client:
            detail = (await client.get(f"/api/reports/{id}")).json()
            assert (detail["state"], detail["report"]["state"]) == ("interrupted", "interrupted")
            assert {section["state"] for section in detail["report"]["sections"]} == {"cancelled"}

    run(test())


def test_a_report_whose_server_was_killed_is_interrupted_when_its_lease_has_ended(tmp_path: Any):
    async def test() -> None:
        store = str(tmp_path / "runs.sqlite")
        library = HeldLibrary()
        service = service_of(store, library=library, lease=0.4)
        async with client_of(service, grace=Grace(0.1, 0.1)) as client:
            id = await begun(client)
            await library.requested.wait()
            database = Database(store)
            async with database.writing() as connection:  # as a process that is dead leaves it
                await connection.exec_driver_sql("UPDATE reports SET owner = 'dead', lease_until = 1")
            assert (await client.get("/api/reports")).json()["reports"][0]["state"] == "interrupted"
            assert (await client.get(f"/api/reports/{id}")).json()["state"] == "interrupted"
            await database.aclose()

    run(test())


@pytest.mark.parametrize("format", ["md", "html", "docx", "pdf", "json"])
def test_a_report_is_exported_in_each_format(format: str):
    async def test() -> None:
        async with client_of(service_of()) as client:
            id = await begun(client)
            await events(client, id)
            response = await client.get(f"/api/reports/{id}/export", params={"format": format})
            assert response.status_code == 200
            assert response.headers["content-disposition"].endswith(f'.{format}"')
            match format:
                case "docx":
                    assert Document(io.BytesIO(response.content)).paragraphs
                case "pdf":
                    assert "Trieste" in pypdf.PdfReader(io.BytesIO(response.content)).pages[0].extract_text()
                case "json":
                    assert unsupported(Report.model_validate(response.json())) == []
                case _:
                    assert "Trieste" in response.text

    run(test())


def test_keys_see_only_their_own_reports():
    async def test() -> None:
        database = Database("memory")
        service = service_of(database)
        assert service.run_manager is not None
        keys = service.run_manager.store.keys
        (mine, one), (yours, other) = new_key("mine"), new_key("yours")
        for key in (one, other):
            await keys.add_key(key)
        rules = Rules(key=SecretStr("all"))
        async with client_of(service, rules, key=mine.get_secret_value()) as client:
            id = await begun(client)
            await events(client, id)
            you = {"authorization": f"Bearer {yours.get_secret_value()}"}
            for method, path in (
                ("GET", ""), ("GET", "/events"), ("GET", "/export"), ("POST", "/cancel"), ("DELETE", ""),
            ):  # fmt: skip
                response = await client.request(method, f"/api/reports/{id}{path}", headers=you)
                assert response.status_code == 404, (method, path)
            assert (await client.get("/api/reports", headers=you)).json()["reports"] == []
            assert len((await client.get("/api/reports")).json()["reports"]) == 1
            every = await client.get("/api/reports", headers={"authorization": "Bearer all"})
            assert len(every.json()["reports"]) == 1

    run(test())


def test_what_a_report_uses_counts_for_its_key_and_its_limits_hold():
    async def test() -> None:
        service = service_of()
        assert service.run_manager is not None
        secret, key = new_key("mine", KeyLimits(searches_per_day=3))
        await service.run_manager.store.keys.add_key(key)
        async with client_of(service, key=secret.get_secret_value()) as client:
            reply = (await client.post("/v1/reports", json={"question": QUESTION, "most_sections": 2})).json()
            assert reply["report"]["used"]["searches"] == 3
            refused = await client.post("/v1/reports", json=REQUEST)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")

    run(test())


def test_sections_queue_for_slots_and_take_no_more_than_there_are():
    async def test() -> None:
        service = service_of(bounds=AdmissionBounds(runs=1, queue=0))
        async with client_of(service) as client:
            reply = (await client.post("/v1/reports", json=REQUEST)).json()
            assert {section["state"] for section in reply["report"]["sections"]} == {"researched"}
            assert service.admission.running == 0

    run(test())


def test_a_busy_server_refuses_a_report_at_once():
    async def test() -> None:
        service = service_of(bounds=AdmissionBounds(runs=1, queue=0))
        with await service.admission.enter():
            async with client_of(service) as client:
                for path in ("/v1/reports", "/api/reports"):
                    refused = await client.post(path, json=REQUEST)
                    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "server_busy")

    run(test())


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"question": ""}, "question"),
        ({"question": "  "}, "question"),
        ({}, "question"),
        ({"question": "q", "sections": ["x"] * 13}, "sections"),
        ({"question": "q", "sections": [" "]}, "sections"),
        ({"question": "q", "most_sections": 0}, "most_sections"),
        ({"question": "q", "budget": {"seconds": 0}}, "budget.seconds"),
        ({"question": "q", "budget": {"hours": 1}}, "budget.hours"),
        ({"question": "q", "sources": ["nowhere"]}, "sources"),
        ({"question": "x" * 20_001}, "question"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/reports", "/api/reports"])
def test_a_request_that_cannot_be_researched_is_refused_before_anything_starts(
    path: str, body: dict[str, Any], param: str
):
    async def test() -> None:
        library = Library()
        async with client_of(service_of(library=library)) as client:
            response = await client.post(path, json=body)
            assert response.status_code == 400
            assert response.json()["error"]["param"] == param
            assert library.searches == 0

    run(test())


def test_a_server_without_a_store_has_no_reports_that_outlive_their_clients():
    async def test() -> None:
        async with client_of(make_service(agent=agent_of(researcher(RIGHT)))) as client:
            assert (await client.post("/api/reports", json=REQUEST)).status_code == 404
            assert (await client.post("/v1/reports", json=REQUEST)).status_code == 200

    run(test())
