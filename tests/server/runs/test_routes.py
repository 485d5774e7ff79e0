import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from agent.trace import Trace
from server.auth.keys import new_key
from server.auth.middleware import Rules
from server.chat.service import Service
from server.shutdown import Grace
from server.store import RunStore
from server.store.database import Database
from tests.server.live import QUESTION as MESSAGES
from tests.server.live import SEARCH, HangingPolicy, in_memory, make_service
from tests.server.runs.replicas import Held, all_events, client_of, events, keeping_service, start


def run(test: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())


def hanging(service: Service) -> tuple[Service, HangingPolicy]:
    """The service with a policy that says one word and nothing more."""
    policy = HangingPolicy()
    return replace(service, agent=replace(service.agent, policy=policy)), policy


def test_a_run_goes_on_without_a_client_and_is_there_with_its_trace(location: str):
    async def test() -> None:
        held = Held()
        async with client_of(keeping_service(location, held=held)) as client:
            id = await start(client, conversation="talk")
            await held.requested.wait()
            going = (await client.get(f"/api/runs/{id}")).json()
            assert (going["state"], going["answer"], going["conversation"]) == ("running", None, "talk")
            assert "planned" in [step["kind"] for step in going["trace"]["steps"]]
            held.go.set()
            assert (await all_events(client, id))[-1].event == "end"
            done = (await client.get(f"/api/runs/{id}")).json()
            assert (done["state"], done["answer"], done["searches"]) == ("answered", "Trieste", 2)
            trace = Trace.model_validate(done["trace"])
            assert (trace.answer, trace.conversation) == ("Trieste", "talk")
            again = await all_events(client, id)
            assert [seen.data["kind"] for seen in again if seen.event == "step"][-1] == "stopped"
            assert {seen.event for seen in again} == {"step", "end"}

    run(test())


def test_runs_are_listed_in_pages_and_searched(location: str):
    async def test() -> None:
        async with client_of(keeping_service(location)) as client:
            ids = [await start(client) for _ in range(3)]
            other = {"messages": [{"role": "user", "content": "Quite another thing?"}]}
            chat = await client.post("/v1/chat/completions", json={"model": "cairn"} | other)
            assert chat.status_code == 200
            for id in ids:
                await all_events(client, id)
            while len((await client.get("/api/runs")).json()["runs"]) < 4:
                pass  # what was requested at /v1 is kept behind its answer
            first = (await client.get("/api/runs", params={"limit": 3})).json()
            rest = (await client.get("/api/runs", params={"limit": 3, "before": first["next"]})).json()
            assert rest["next"] is None
            assert len({card["id"] for card in first["runs"] + rest["runs"]}) == 4
            found = (await client.get("/api/runs", params={"search": "anoth quite"})).json()["runs"]
            assert [(card["question"], card["origin"]) for card in found] == [("Quite another thing?", "v1")]
            assert len((await client.get("/api/runs", params={"origin": "api"})).json()["runs"]) == 3
            kept = await all_events(client, found[0]["id"])
            assert [seen.event for seen in kept[-2:]] == ["step", "end"]

    run(test())


def test_a_cancel_ends_the_run_and_says_so(location: str):
    async def test() -> None:
        held = Held()
        async with client_of(keeping_service(location, held=held)) as client:
            id = await start(client)
            await held.requested.wait()
            assert (await client.delete(f"/api/runs/{id}")).status_code == 409
            assert (await client.post(f"/api/runs/{id}/cancel")).status_code == 202
            last = (await all_events(client, id))[-1]
            assert (last.event, last.data["state"]) == ("end", "cancelled")
            again = await client.post(f"/api/runs/{id}/cancel")
            assert (again.status_code, again.json()["state"]) == (202, "cancelled")
            assert (await client.delete(f"/api/runs/{id}")).status_code == 204
            assert (await client.get(f"/api/runs/{id}")).status_code == 404

    run(test())


def test_answer_now_ends_the_search_and_answers(location: str):
    async def test() -> None:
        held = Held()
        turns = (SEARCH, "- She comes from Trieste. [1]\n</evidence>", "Trieste</answer>")
        async with client_of(keeping_service(location, turns=turns, held=held)) as client:
            id = await start(client)
            await held.requested.wait()
            assert (await client.post(f"/api/runs/{id}/answer_now")).status_code == 202
            last = (await all_events(client, id))[-1]
            assert (last.data["state"], last.data["answer"]) == ("forced", "Trieste")
            stopped = (await client.get(f"/api/runs/{id}")).json()["trace"]["steps"][-1]
            assert stopped["budget"] == "user"

    run(test())


def test_a_cancel_at_another_replica_reaches_the_owner_in_a_second(location: str):
    async def test() -> None:
        held = Held()
        database = Database(location)
        elsewhere = keeping_service(database if location == "memory" else location)
        async with client_of(keeping_service(database, held=held)) as owner, client_of(elsewhere) as other:
            id = await start(owner)
            await held.requested.wait()
            following = asyncio.create_task(all_events(other, id))
            assert (await other.get(f"/api/runs/{id}")).json()["state"] == "running"
            began = asyncio.get_running_loop().time()
            assert (await other.post(f"/api/runs/{id}/cancel")).status_code == 202
            here = await all_events(owner, id)
            assert asyncio.get_running_loop().time() - began < 10
            there = await following
            assert here[-1].data["state"] == there[-1].data["state"] == "cancelled"
            assert [seen.data for seen in here if seen.event == "step"] == [
                seen.data for seen in there if seen.event == "step"
            ]

    run(test())


def test_a_run_whose_server_dies_is_interrupted_with_all_that_it_had(location: str):
    async def test() -> None:
        held = Held()
        database = Database(location)
        dying = keeping_service(database, held=held, lease_seconds=0.2)
        assert dying.run_manager is not None
        async with client_of(dying) as owner:
            id = await start(owner)
            await held.requested.wait()
            seen = await first_steps(owner, id, 2)
            maintaining = dying.run_manager._maintaining  # pyright: ignore[reportPrivateUsage]
            assert maintaining is not None
            maintaining.cancel()  # its leases are no longer renewed
            other = keeping_service(database if location == "memory" else location, lease_seconds=0.2)
            async with client_of(other) as survivor:
                received = await all_events(survivor, id)
                assert received[-1].data["state"] == "interrupted"
                steps = [one.data for one in received if one.event == "step"]
                assert steps[: len(seen)] == seen
                assert (steps[-1]["kind"], steps[-1]["reason"]) == ("stopped", "interrupted")
                held.go.set()

    async def first_steps(client: httpx2.AsyncClient, id: str, count: int) -> list[Any]:
        found: list[Any] = []
        async with aclosing(events(client, id)) as connection:
            while len(found) < count:
                seen = await anext(connection)
                found += [seen.data] if seen.event == "step" else []
        return found

    run(test())


def test_a_server_that_stops_ends_its_runs_as_interrupted(location: str):
    if location == "memory":
        pytest.skip("it ends with the server")

    async def test() -> None:
        service, policy = hanging(keeping_service(location))
        async with client_of(service, grace=Grace(seconds=0, answer_seconds=0)) as client:
            id = await start(client)
            await policy.requested.wait()
        store = RunStore(Database(location))
        row = await store.reads.get(id)
        assert row is not None
        assert row.state == "interrupted"
        trace = Trace.model_validate_json(await store.reads.trace(id) or "")
        assert trace.stopped is not None
        assert trace.stopped.reason == "interrupted"
        await store.aclose()

    run(test())


def test_a_key_sees_its_own_runs_and_the_servers_key_sees_all(tmp_path: Any):
    async def test() -> None:
        service = keeping_service(str(tmp_path / "runs.sqlite"))
        assert service.run_manager is not None
        keys = service.run_manager.store.keys
        made = [new_key("one"), new_key("two")]
        for _, key in made:
            await keys.add_key(key)
        one, two = (secret.get_secret_value() for secret, _ in made)
        rules = Rules(key=SecretStr("all"), keys=keys)
        async with client_of(service, rules, key=one) as client:
            id = await start(client)
            await all_events(client, id)
            as_two, as_server = ({"authorization": f"Bearer {key}"} for key in (two, "all"))
            assert (await client.get(f"/api/runs/{id}", headers=as_two)).status_code == 404
            assert (await client.post(f"/api/runs/{id}/cancel", headers=as_two)).status_code == 404
            assert (await client.get("/api/runs", headers=as_two)).json()["runs"] == []
            for headers in ({}, as_server):
                assert [card["id"] for card in (await client.get("/api/runs", headers=headers)).json()["runs"]] == [id]
            assert (await client.get("/api/runs", headers={"authorization": "Bearer x"})).status_code == 401

    run(test())


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/runs/nothing", 404, "run_not_found"),
        ("GET", "/api/runs/nothing/events", 404, "run_not_found"),
        ("GET", "/api/runs/nothing/export", 404, "run_not_found"),
        ("POST", "/api/runs/nothing/cancel", 404, "run_not_found"),
        ("DELETE", "/api/runs/nothing", 404, "run_not_found"),
        ("GET", "/api/runs/a%00b", 400, "invalid_value"),
        ("GET", "/api/runs?limit=0", 400, "invalid_value"),
        ("GET", "/api/runs?before=x", 400, "invalid_value"),
        ("GET", "/api/runs?state=lost", 400, "invalid_value"),
        ("GET", "/api/runs/nothing/events?after=x", 400, "invalid_value"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(method: str, path: str, status: int, code: str):
    async def test() -> None:
        service = keeping_service("memory")
        assert service.run_manager is not None
        await service.run_manager.open()  # as a server does before it listens: a busy machine takes seconds
        async with in_memory(service) as client:
            said = await client.request(method, path)
            assert (said.status_code, said.json()["error"]["code"]) == (status, code)
        await service.aclose()

    run(test())


def test_without_a_store_there_are_no_such_addresses():
    async def test() -> None:
        async with in_memory(make_service()) as client:
            assert (await client.get("/api/runs")).status_code == 404

    run(test())


def test_a_run_that_cannot_be_written_down_is_refused_and_one_that_runs_is_answered(tmp_path: Any):
    async def test() -> None:
        held = Held()
        database = Database(str(tmp_path / "runs.sqlite"), connections=1)
        async with client_of(keeping_service(database, held=held)) as client:
            id = await start(client)
            await held.requested.wait()
            async with database.writing() as connection:
                pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar_one()
                await connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
            refused = await client.post("/api/runs", json={"messages": [{"role": "user", "content": "x" * 19_000}]})
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_failed")
            assert "the disk is full" in refused.json()["error"]["message"]
            held.go.set()
            last = (await all_events(client, id))[-1]
            assert last.data["answer"] == "Trieste"
            chat = await client.post("/v1/chat/completions", json={"model": "cairn", "messages": MESSAGES})
            assert chat.status_code == 200

    run(test())


def test_a_run_gives_its_slot_back_when_it_ends_and_not_when_its_client_leaves():
    async def test() -> None:
        held = Held()
        service = keeping_service("memory", held=held)
        async with client_of(service) as client:
            id = await start(client)
            await held.requested.wait()
            assert service.admission.running == 1
            held.go.set()
            await all_events(client, id)
            assert service.admission.running == 0

    run(test())


def test_a_policy_that_hangs_is_cancelled():
    async def test() -> None:
        service, policy = hanging(keeping_service("memory"))
        async with client_of(service) as client:
            id = await start(client)
            await policy.requested.wait()
            following = asyncio.create_task(all_events(client, id))
            await client.post(f"/api/runs/{id}/cancel")
            await policy.let_go.wait()
            assert (await following)[-1].data["state"] == "cancelled"

    run(test())
