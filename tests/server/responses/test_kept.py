"""Responses by their ids: kept beside their runs, followed up, removed, made in the background and cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError, NotFoundError
from pydantic import SecretStr

from server.auth.keys import new_key
from server.auth.middleware import Rules
from server.chat.service import Service
from server.store.database import Database
from tests.server.live import ANSWER, SEARCH, HangingPolicy, make_service, serving
from tests.server.runs.replicas import Held, keeping_service

QUESTION = "Where was the director of Aurora Falls born?"
MANY = (SEARCH, ANSWER) * 4
Use = Callable[[AsyncOpenAI], Awaitable[Any]]


def talk(use: Use, service: Service | None = None, rules: Rules | None = None, *, key: str = "none") -> Any:
    async def run() -> Any:
        async with (
            asyncio.timeout(60),
            serving(service or keeping_service("memory"), rules) as address,
            AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0) as client,
        ):
            return await use(client)

    return asyncio.run(run())


async def make(client: AsyncOpenAI, **parameters: Any) -> Any:
    responses: Any = client.responses
    return await responses.create(**({"model": "cairn", "input": QUESTION} | parameters))


async def streamed(client: AsyncOpenAI, **parameters: Any) -> Any:
    *_, last = [event async for event in await make(client, stream=True, **parameters)]
    return last.response


async def runs_of(client: AsyncOpenAI) -> list[Any]:
    address = str(client.base_url).removesuffix("/v1/")
    async with httpx2.AsyncClient(base_url=address, trust_env=False) as http:
        return (await http.get("/api/runs", headers={"authorization": f"Bearer {client.api_key}"})).json()["runs"]


def listening() -> tuple[list[str], Callable[[str], str]]:
    """A policy's turns, and every context that it got."""
    seen: list[str] = []

    def turn(context: str) -> str:
        seen.append(context)
        return ANSWER if "<information>" in context else SEARCH

    return seen, turn


@pytest.mark.parametrize("ask", [make, streamed])
def test_a_response_is_there_by_its_id_as_it_was_sent(ask: Callable[..., Awaitable[Any]]) -> None:
    async def use(client: AsyncOpenAI) -> None:
        response = await ask(client, metadata={"a": "b"}, instructions="Be brief.")
        kept = await client.responses.retrieve(response.id)
        assert kept.model_dump() == response.model_dump()
        assert (kept.output_text, kept.store, kept.metadata) == ("Trieste", True, {"a": "b"})  # type: ignore[attr-defined]
        (run,) = await runs_of(client)
        assert (f"resp_{run['id']}", run["answer"], run["model"]) == (response.id, "Trieste", "cairn")
        with pytest.raises(BadRequestError, match="is not streamed"):
            await client.responses.retrieve(response.id, stream=True)

    talk(use)


def test_a_response_is_followed_up_as_if_its_turns_had_been_sent() -> None:
    _, turn = listening()
    questions = ("Who is the mayor of Norway?", "since 2020", "and for Sweden?", "Who was the one before?")

    async def trace_of(client: AsyncOpenAI, response: Any) -> dict[str, Any]:
        address = str(client.base_url).removesuffix("/v1/")
        async with httpx2.AsyncClient(base_url=address, trust_env=False) as http:
            return (await http.get(f"/api/runs/{response.id.removeprefix('resp_')}")).json()["trace"]

    async def use(client: AsyncOpenAI) -> None:
        sent: list[dict[str, str]] = []
        before: dict[str, str] = {}
        whole: dict[str, Any] = {}
        for question in questions:
            response = await make(client, input=question, **before)
            named = await trace_of(client, response)
            sent.append({"role": "user", "content": question})
            whole = await trace_of(client, await make(client, input=sent))
            for member in ("question", "filters", "history"):
                assert named.get(member) == whole.get(member), (question, member)
            sent.append({"role": "assistant", "content": response.output_text})
            before = {"previous_response_id": response.id}
        assert len(whole["history"]) == 3

    talk(use, keeping_service("memory", turns=turn))


def test_a_follow_up_names_the_response_before_it_and_the_turns_are_one_conversation() -> None:
    seen, turn = listening()

    async def use(client: AsyncOpenAI) -> None:
        first = await make(client)
        second = await make(client, input="And her mother?", previous_response_id=first.id)
        third = await make(client, input="And then?", previous_response_id=second.id)
        assert third.previous_response_id == second.id
        last = seen[-1]
        assert last.index(QUESTION) < last.index("Trieste") < last.index("And her mother?") < last.index("And then?")
        conversations = [run["conversation"] for run in await runs_of(client)]
        assert sorted(conversations) == ["", first.id, first.id]

    talk(use, keeping_service("memory", turns=turn))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_follow_up_of_what_is_not_kept_is_refused_with_a_hint(*, keeps: bool) -> None:
    async def use(client: AsyncOpenAI) -> str:
        with pytest.raises(BadRequestError) as refused:
            await make(client, previous_response_id="resp_0")
        assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")
        return refused.value.message

    assert "send the earlier turns as items of 'input'" in talk(use, None if keeps else make_service())


def test_nothing_is_kept_of_a_response_that_shall_not_be_stored() -> None:
    async def use(client: AsyncOpenAI) -> None:
        response = await make(client, store=False)
        assert (response.output_text, response.store) == ("Trieste", False)
        with pytest.raises(NotFoundError, match="not stored"):
            await client.responses.retrieve(response.id)
        assert await runs_of(client) == []

    talk(use)


def test_a_removed_response_is_gone_with_its_run() -> None:
    async def use(client: AsyncOpenAI) -> None:
        response = await make(client)
        await client.responses.delete(response.id)
        for what in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
            with pytest.raises(NotFoundError):
                await what(response.id)
        assert await runs_of(client) == []

    talk(use)


@pytest.mark.parametrize("id", ["resp_", "resp_%00", "nothing", "resp_\ud800".encode("utf-8", "replace").decode()])
def test_an_id_that_is_none_is_no_response(id: str) -> None:
    async def use(client: AsyncOpenAI) -> None:
        with pytest.raises(NotFoundError, match="There is no response"):
            await client.responses.retrieve(id)

    talk(use)


def test_a_run_that_is_no_response_is_none() -> None:
    async def use(client: AsyncOpenAI) -> None:
        completions: Any = client.chat.completions
        await completions.create(model="cairn", messages=[{"role": "user", "content": QUESTION}])
        while not (found := await runs_of(client)):
            pass  # it is kept behind its answer
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(f"resp_{found[0]['id']}")

    talk(use)


def test_a_key_sees_its_own_responses_alone(tmp_path: Any) -> None:
    service = keeping_service(str(tmp_path / "runs.sqlite"), turns=MANY)
    assert service.run_manager is not None
    keys = service.run_manager.store.keys
    (one, first), (two, second) = new_key("one"), new_key("two")

    async def use(client: AsyncOpenAI) -> None:
        response = await make(client)
        other = client.with_options(api_key=two.get_secret_value())
        for what in (other.responses.retrieve, other.responses.delete, other.responses.cancel):
            with pytest.raises(NotFoundError):
                await what(response.id)
        with pytest.raises(BadRequestError):
            await make(other, previous_response_id=response.id)
        assert (await client.responses.retrieve(response.id)).id == response.id

    async def add() -> None:
        await keys.add_key(first)
        await keys.add_key(second)

    async def run() -> None:
        await add()
        async with (
            asyncio.timeout(60),
            serving(service, Rules(key=SecretStr("all"), keys=keys)) as address,
            AsyncOpenAI(base_url=f"{address}/v1", api_key=one.get_secret_value(), max_retries=0) as client,
        ):
            await use(client)

    asyncio.run(run())


def test_a_response_whose_client_left_is_kept_as_cancelled() -> None:
    policy = HangingPolicy()
    service = keeping_service("memory")
    service = replace(service, agent=replace(service.agent, policy=policy))

    async def use(client: AsyncOpenAI) -> None:
        id, stream = "", await make(client, stream=True)
        async for event in stream:
            id = event.response.id
            break
        await policy.requested.wait()
        await stream.close()
        await policy.let_go.wait()
        while not await runs_of(client):
            pass  # it is kept behind its end
        kept = await client.responses.retrieve(id)
        assert (kept.status, kept.output[0].type) == ("cancelled", "reasoning")

    talk(use, service)


# In the background


def test_a_response_in_the_background_goes_on_without_its_client_and_is_polled_until_it_has_ended() -> None:
    held = Held()

    async def use(client: AsyncOpenAI) -> None:
        begun = await make(client, background=True)
        assert (begun.status, begun.background, begun.output) == ("in_progress", True, [])
        await held.requested.wait()
        going = await client.responses.retrieve(begun.id)
        assert (going.status, [item.type for item in going.output]) == ("in_progress", ["reasoning", "web_search_call"])
        with pytest.raises(ConflictError, match="cancel it first"):
            await client.responses.delete(begun.id)
        with pytest.raises(BadRequestError, match="is still running"):
            await make(client, previous_response_id=begun.id)
        held.go.set()
        while (ended := await client.responses.retrieve(begun.id)).status == "in_progress":
            pass
        assert (ended.status, ended.output_text) == ("completed", "Trieste")

    talk(use, keeping_service("memory", held=held))


def test_what_is_polled_as_completed_can_be_followed_up_and_removed_before_a_slow_store_has_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = keeping_service("memory", turns=MANY)
    assert service.run_manager is not None
    writes = service.run_manager.store.writes
    finish = writes.finish

    async def slowly(*given: Any, **named: Any) -> Any:
        await asyncio.sleep(0.3)
        return await finish(*given, **named)

    monkeypatch.setattr(writes, "finish", slowly)

    async def use(client: AsyncOpenAI) -> None:
        for what in ("follow up", "remove"):
            begun = await make(client, background=True)
            while (await client.responses.retrieve(begun.id)).status == "in_progress":
                pass
            if what == "follow up":
                assert (await make(client, previous_response_id=begun.id)).output_text == "Trieste"
            else:
                await client.responses.delete(begun.id)

    talk(use, service)


def test_one_in_the_background_is_cancelled_by_its_id_at_any_replica() -> None:
    async def run() -> None:
        held, database = Held(), Database("memory")
        here, elsewhere = keeping_service(database, held=held), keeping_service(database)
        async with (
            asyncio.timeout(60),
            serving(here) as address,
            serving(elsewhere) as other,
            AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
            AsyncOpenAI(base_url=f"{other}/v1", api_key="none", max_retries=0) as far,
        ):
            begun = await make(client, background=True)
            await held.requested.wait()
            assert (await far.responses.retrieve(begun.id)).status == "in_progress"
            assert (await far.responses.cancel(begun.id)).status == "cancelled"
            assert (await client.responses.retrieve(begun.id)).status == "cancelled"
            assert (await client.responses.cancel(begun.id)).status == "cancelled"

    asyncio.run(run())


def test_one_whose_server_stopped_says_that_it_failed(tmp_path: Any) -> None:
    location = str(tmp_path / "runs.sqlite")
    held = Held()

    async def begin(client: AsyncOpenAI) -> str:
        begun = await make(client, background=True)
        await held.requested.wait()
        return begun.id

    async def again(client: AsyncOpenAI) -> None:
        kept = await client.responses.retrieve(id)
        assert kept.error is not None
        assert (kept.status, "try again" in kept.error.message) == ("failed", True)

    service = keeping_service(location, held=held)
    assert service.run_manager is not None

    async def stop() -> str:
        async with serving(service) as address:
            async with AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
                id = await begin(client)
            assert service.run_manager is not None
            await service.run_manager.end()
            return id

    id = asyncio.run(stop())
    talk(again, keeping_service(location))


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        ({"background": True, "stream": True}, "leave 'stream' out"),
        ({"background": True, "store": False}, "must be stored"),
    ],
)
def test_what_cannot_be_in_the_background_is_refused(parameters: dict[str, Any], hint: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        talk(lambda client: make(client, **parameters))
    assert hint in refused.value.message


def test_what_a_client_waits_for_is_not_cancelled_by_its_id() -> None:
    async def use(client: AsyncOpenAI) -> None:
        response = await make(client)
        with pytest.raises(BadRequestError, match="close the connection"):
            await client.responses.cancel(response.id)

    talk(use)
