"""Started searches are runs: any replica shows them, they belong to a key, and outlive the server that ran them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from agent.rstool import EvidenceBundle
from server.auth.admission import Admission, AdmissionBounds
from server.auth.keys import new_key
from server.auth.middleware import Rules
from server.chat.service import Service
from server.store.database import Database
from tests.server.live import ANSWER, SEARCH, serving
from tests.server.mcp.clients import QUESTION, SOON, call, text_of
from tests.server.runs.replicas import Held, keeping_service

Use = Callable[[Client], Awaitable[Any]]


async def begin(client: Client, **arguments: Any) -> str:
    started = await call(client, "search_evidence_start", question=QUESTION, **arguments)
    assert not started.is_error, text_of(started)
    content: Any = started.structured_content
    return content["id"]


async def state(client: Client, id: str, *, wait_seconds: float = 0.0) -> dict[str, Any]:
    result = await call(client, "search_evidence_status", id=id, wait_seconds=wait_seconds)
    assert not result.is_error, text_of(result)
    content: Any = result.structured_content
    return content


def talk(use: Use, service: Service) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(60), serving(service, grace=SOON) as address, Client(f"{address}/mcp") as client:
            return await use(client)

    return asyncio.run(run())


def test_a_started_search_is_listed_with_all_runs():
    async def run() -> None:
        async with (
            asyncio.timeout(60),
            serving(keeping_service("memory")) as address,
            Client(f"{address}/mcp") as client,
            httpx2.AsyncClient(base_url=address, trust_env=False) as http,
        ):
            id = await begin(client)
            assert (await state(client, id, wait_seconds=20))["state"] == "ended"
            (card,) = (await http.get("/api/runs")).json()["runs"]
            assert (card["id"], card["state"], card["answer"]) == (id, "answered", "Trieste")
            assert (await http.get(f"/api/runs/{id}/export", params={"format": "markdown"})).status_code == 200

    asyncio.run(run())


def test_another_replica_shows_it_and_cancels_it():
    async def run() -> None:
        held, database = Held(), Database("memory")
        here, elsewhere = keeping_service(database, held=held), keeping_service(database)
        async with (
            asyncio.timeout(60),
            serving(here) as address,
            serving(elsewhere) as other,
            Client(f"{address}/mcp") as near,
            Client(f"{other}/mcp") as far,
        ):
            id = await begin(near)
            await held.requested.wait()
            going = await state(far, id)
            assert (going["state"], "Planned 2 searches" in going["latest"]) == ("running", True)
            cancelled = await call(far, "search_evidence_cancel", id=id)
            assert (cancelled.structured_content or {})["state"] == "cancelled"
            assert (await state(near, id))["state"] == "cancelled"

    asyncio.run(run())


def test_its_result_is_there_after_a_restart_within_the_requested_size(tmp_path: Any):
    location = str(tmp_path / "runs.sqlite")

    async def before(client: Client) -> str:
        id = await begin(client, max_chars=700)
        await state(client, id, wait_seconds=20)
        return id

    async def after(client: Client) -> EvidenceBundle:
        return EvidenceBundle.model_validate((await call(client, "search_evidence_result", id=id)).structured_content)

    id = talk(before, keeping_service(location))
    bundle = talk(after, keeping_service(location))
    assert (bundle.trace_id, bundle.answer, bundle.size.max_chars) == (id, "Trieste", 700)


def test_one_whose_server_stopped_gives_what_it_had(tmp_path: Any):
    location, held = str(tmp_path / "runs.sqlite"), Held()

    async def before(client: Client) -> str:
        id = await begin(client)
        await held.requested.wait()
        assert service.run_manager is not None
        await service.run_manager.end()
        return id

    async def after(client: Client) -> None:
        assert (await state(client, id))["state"] == "interrupted"
        result = await call(client, "search_evidence_result", id=id)
        bundle = EvidenceBundle.model_validate(result.structured_content)
        assert (result.is_error, bundle.outcome, bundle.ended.reason) == (True, "failed", "interrupted")

    service = keeping_service(location, held=held)
    id = talk(before, service)
    talk(after, keeping_service(location))


def test_a_key_sees_the_searches_that_were_started_with_it(tmp_path: Any):
    async def run() -> None:
        service = keeping_service(str(tmp_path / "runs.sqlite"), turns=(SEARCH, ANSWER))
        assert service.run_manager is not None
        keys = service.run_manager.store.keys
        made = [new_key("one"), new_key("two")]
        for _, key in made:
            await keys.add_key(key)
        async with asyncio.timeout(60), serving(service, Rules(key=SecretStr("all"), keys=keys)) as address:

            async def with_key(secret: str, use: Use) -> Any:
                headers = {"authorization": f"Bearer {secret}"}
                async with (
                    httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
                    Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
                ):
                    return await use(client)

            one, two = (secret.get_secret_value() for secret, _ in made)
            id = await with_key(one, begin)
            for tool in ("status", "result", "cancel"):
                refused = await with_key(two, lambda client, tool=tool: call(client, f"search_evidence_{tool}", id=id))
                assert (refused.is_error, "there is no search" in text_of(refused)) == (True, True)
            assert (await with_key(one, lambda client: state(client, id, wait_seconds=20)))["state"] == "ended"
            assert (await with_key("all", lambda client: state(client, id)))["state"] == "ended"

    asyncio.run(run())


def test_one_that_gets_no_slot_is_not_started_and_the_slot_is_given_back_at_the_end():
    async def use(client: Client) -> None:
        id = await begin(client)
        await held.requested.wait()
        assert service.admission.running == 1
        refused = await call(client, "search_evidence_start", question=QUESTION)
        assert (refused.is_error, "try again in" in text_of(refused)) == (True, True)
        held.go.set()
        await state(client, id, wait_seconds=20)
        assert service.admission.running == 0

    held = Held()
    service = replace(keeping_service("memory", held=held), admission=Admission(AdmissionBounds(runs=1, queue=0)))
    talk(use, service)


@pytest.mark.parametrize("id", ["unknown", "", "a\x00b", "\u00e9", "x" * 200])
def test_a_run_that_is_no_search_of_a_tool_is_none(id: str):
    async def use(client: Client) -> None:
        refused = await call(client, "search_evidence_result", id=id)
        assert (refused.is_error, "there is no search" in text_of(refused)) == (True, True)

    talk(use, keeping_service("memory"))


def test_a_store_that_fails_is_reported_with_a_hint(tmp_path: Any):
    async def use(client: Client) -> str:
        assert service.run_manager is not None
        async with service.run_manager.store.database.writing() as connection:
            await connection.exec_driver_sql("DROP TABLE events")
            await connection.exec_driver_sql("DROP TABLE runs")
        refused = await call(client, "search_evidence_start", question=QUESTION)
        assert refused.is_error
        return text_of(refused)

    service = keeping_service(str(tmp_path / "runs.sqlite"))
    assert "runs" not in talk(use, service)
