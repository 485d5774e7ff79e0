"""Keys of clients: known by their digest, limited by what they use, and never seen again once they were made."""

import asyncio
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Usage
from server.auth.admission import Admission, AdmissionBounds
from server.auth.keys import ApiKey, KeyLimits, Keys, MemoryKeys, digest, new_key
from server.auth.middleware import Rules
from server.auth.usage import Spent, Used
from server.http.errors import ApiError
from tests.server.live import QUESTION, PausedSource, in_memory, make_service, serving

CHAT = "/v1/chat/completions"
ASK = {"messages": QUESTION}


class Broken(MemoryKeys):
    """A store whose database is gone."""

    async def keys(self) -> Sequence[ApiKey]:
        raise OSError("no database")


def made(store: MemoryKeys, **limits: Any) -> tuple[dict[str, str], str]:
    """A key in the store: the header that sends it, and its id."""
    secret, key = new_key("client", KeyLimits(**limits))
    asyncio.run(store.add_key(key))
    return {"authorization": f"Bearer {secret.get_secret_value()}"}, key.id


def ask(
    store: MemoryKeys, *headers: dict[str, str], key: str = "", path: str = "", **changes: Any
) -> list[httpx2.Response]:
    """One request after the other, each with its header."""

    async def run() -> list[httpx2.Response]:
        rules = Rules(key=SecretStr(key), keys=store)
        async with asyncio.timeout(20), in_memory(make_service(**changes), rules) as client:
            if path:
                return [await client.get(path, headers=header) for header in headers]
            return [await client.post(CHAT, json=ASK, headers=header) for header in headers]

    return asyncio.run(run())


def code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, "" if response.status_code == 200 else response.json()["error"]["code"]


def test_a_key_is_kept_as_its_digest_alone() -> None:
    secret, key = new_key("laptop")
    shown = secret.get_secret_value()
    assert shown.startswith(f"cairn-{key.id}-")
    assert key.digest == digest(shown)
    assert shown not in repr(key)
    assert shown.split("-", 2)[2] not in repr(key)
    assert len(shown) > 50


def test_where_no_key_was_ever_made_everyone_may_ask() -> None:
    assert code(ask(MemoryKeys(), {})[0]) == (200, "")


def test_once_there_is_a_key_every_client_needs_one() -> None:
    store = MemoryKeys()
    header, _ = made(store)
    assert [code(answer) for answer in ask(store, header, {}, {"authorization": "Bearer cairn-0000-x"})] == [
        (200, ""),
        (401, "invalid_api_key"),
        (401, "invalid_api_key"),
    ]
    assert [answer.status_code for answer in ask(store, {}, path="/healthz")] == [200]


def test_the_servers_own_key_holds_beside_the_others() -> None:
    store = MemoryKeys()
    header, _ = made(store, requests_per_minute=1)
    own = {"authorization": "Bearer s3cret"}
    assert [code(answer)[0] for answer in ask(store, own, header, own, {}, key="s3cret")] == [200, 200, 200, 401]


def test_a_key_that_was_revoked_is_refused_and_opens_the_server_to_no_one() -> None:
    store = MemoryKeys()
    header, id = made(store)
    assert asyncio.run(store.revoke_key(id, datetime.now(UTC)))
    assert not asyncio.run(store.revoke_key(id, datetime.now(UTC)))
    assert [code(answer)[0] for answer in ask(store, header, {})] == [401, 401]


def test_a_key_with_the_id_of_another_is_refused() -> None:
    store = MemoryKeys()
    header, id = made(store)
    forged = {"authorization": f"Bearer cairn-{id}-{'x' * 43}"}
    assert [code(answer)[0] for answer in ask(store, forged, header)] == [401, 200]


@pytest.mark.parametrize("token", ["", "x", "cairn", "cairn-", "cairn--", "cairn-ab-", "Bearer", "ключ", "-" * 9000])
def test_no_token_is_compared_in_any_other_way_than_in_constant_time(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []
    honest = hmac.compare_digest

    def compare(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return honest(one, other)

    async def run() -> None:
        store = MemoryKeys()
        await store.add_key(new_key("client")[1])
        keys = Keys(server_key=SecretStr("s3cret"), store=store)
        with pytest.raises(ApiError):
            await keys.admit(f"Bearer {token}")

    monkeypatch.setattr(hmac, "compare_digest", compare)
    asyncio.run(run())
    assert compared == [(64, 64), (64, 64)], "the digests of two secrets, whatever was sent"


def test_a_key_may_ask_so_often_a_minute() -> None:
    store = MemoryKeys()
    header, _ = made(store, requests_per_minute=2)
    answers = ask(store, header, header, header)
    assert [code(answer) for answer in answers] == [(200, ""), (200, ""), (429, "rate_limit_exceeded")]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 60
    assert "2 requests a minute" in answers[2].json()["error"]["message"]


@pytest.mark.parametrize("what", ["tokens", "searches"])
def test_a_key_that_has_used_up_its_day_is_sent_away_until_midnight(what: str) -> None:
    store = MemoryKeys()
    header, id = made(store, **{f"{what}_per_day": 1})
    answers = ask(store, header, header)
    assert [code(answer) for answer in answers] == [(200, ""), (429, "rate_limit_exceeded")]
    assert 0 < int(answers[1].headers["retry-after"]) <= 86_400
    assert f"1 {what} today" in answers[1].json()["error"]["message"]
    used = asyncio.run(store.used(id, datetime.now(UTC).date()))
    assert used.searches == 2
    assert used.tokens > 100


def test_what_another_server_counted_is_counted_here() -> None:
    store = MemoryKeys()
    header, id = made(store, credits_per_day=5.0)
    asyncio.run(store.add_usage(id, datetime.now(UTC).date(), Used(credits=5.0)))
    assert code(ask(store, header)[0]) == (429, "rate_limit_exceeded")


@dataclass(frozen=True)
class Dear:
    """A source whose searches cost something."""

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        return SearchResult((Passage(id=query, source="web", title=query, text=query),), credits=2.0)


def test_the_credits_of_a_run_are_counted_and_their_limit_holds() -> None:
    store = MemoryKeys()
    header, id = made(store, credits_per_day=3.5)
    service = make_service()
    agent = replace(service.agent, sources=dict.fromkeys(("web", "kg", "all"), Dear()))
    assert [code(answer)[0] for answer in ask(store, header, header, agent=agent)] == [200, 429]
    assert asyncio.run(store.used(id, datetime.now(UTC).date())).credits == 4.0


def retrieve(store: MemoryKeys, header: dict[str, str], *sizes: int) -> list[httpx2.Response]:
    """Requests to /retrieve with `queries` queries each."""

    async def run() -> list[httpx2.Response]:
        service = make_service()
        service = replace(service, agent=replace(service.agent, sources={"all": Dear()}))
        async with asyncio.timeout(20), in_memory(service, Rules(keys=store)) as client:
            bodies = [{"queries": [f"q{n}" for n in range(size)]} for size in sizes]
            return [await client.post("/retrieve", json=body, headers=header) for body in bodies]

    return asyncio.run(run())


def test_searches_without_a_run_are_counted_and_limited_too() -> None:
    store = MemoryKeys()
    header, id = made(store, searches_per_day=5, tokens_per_day=1)
    answers = retrieve(store, header, 3, 3, 2, 1)
    assert [code(answer)[0] for answer in answers] == [200, 429, 200, 429]
    assert "3 of its 5 searches today, and this request needs 3 more" in answers[1].json()["error"]["message"]
    assert asyncio.run(store.used(id, datetime.now(UTC).date())) == Used(searches=5, credits=10.0)
    header, _ = made(store, credits_per_day=3.0)
    assert [code(answer)[0] for answer in retrieve(store, header, 2, 1)] == [200, 429]


def test_a_search_over_mcp_counts_for_the_key_that_requested_it() -> None:
    store = MemoryKeys()
    header, id = made(store, searches_per_day=1)
    call = {"name": "search_evidence", "arguments": {"question": QUESTION[0]["content"]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}

    async def run() -> list[str]:
        headers = header | {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        async with (
            serving(make_service(), Rules(keys=store)) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as client,
        ):
            return [(await client.post("/mcp", json=body, headers=headers)).text for _ in range(2)]

    first, second = asyncio.run(run())
    assert "Trieste" in first
    assert "This key has reached its limit" in second
    assert asyncio.run(store.used(id, datetime.now(UTC).date())).searches == 2


def test_a_key_has_so_many_runs_at_once_and_others_have_theirs() -> None:
    async def run() -> list[int]:
        store, paused = MemoryKeys(), PausedSource()
        service = make_service(admission=Admission(AdmissionBounds(runs=8)))
        service = replace(service, agent=replace(service.agent, sources={"web": paused, "kg": paused, "all": paused}))
        headers: list[dict[str, str]] = []
        for _ in range(2):
            secret, key = new_key("client", KeyLimits(concurrent_runs=1))
            await store.add_key(key)
            headers.append({"authorization": f"Bearer {secret.get_secret_value()}"})
        async with (
            serving(service, Rules(keys=store)) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as client,
        ):
            first = asyncio.create_task(client.post(CHAT, json=ASK, headers=headers[0]))
            while service.admission.running < 1:  # noqa: ASYNC110 - a state of the server that nothing reports
                await asyncio.sleep(0)
            refused = await client.post(CHAT, json=ASK, headers=headers[0])
            paused.open()
            other = await client.post(CHAT, json=ASK, headers=headers[1])
            again = [await first, await client.post(CHAT, json=ASK, headers=headers[0])]
        return [answer.status_code for answer in (refused, other, *again)]

    assert asyncio.run(run()) == [429, 200, 200, 200]


def test_without_its_keys_the_server_lets_no_one_in() -> None:
    assert [code(answer) for answer in ask(Broken(), {}, {})] == [(503, "keys_unreadable")] * 2


def test_a_store_that_fails_later_leaves_the_known_keys_in_force() -> None:
    async def run() -> None:
        store = MemoryKeys()
        secret, key = new_key("client")
        await store.add_key(key)
        keys = Keys(store=store, ttl_seconds=0)
        header = f"Bearer {secret.get_secret_value()}"
        assert await keys.admit(header) == key.id
        store.keys = Broken().keys
        assert await keys.admit(header) == key.id
        with pytest.raises(ApiError):
            await keys.admit("")

    asyncio.run(run())


class Flaky(MemoryKeys):
    """A store that takes nothing at first."""

    up = False

    async def add_usage(self, id: str, day: date, used: Used) -> None:
        if not self.up:
            raise OSError("no database")
        await super().add_usage(id, day, used)


def test_usage_that_could_not_be_stored_is_counted_here_and_stored_later() -> None:
    async def run() -> None:
        store = Flaky()
        spent = Spent(store, ttl_seconds=0)
        spent.add("k", Usage(policy_tokens=5, searches=1))
        await asyncio.sleep(0)
        spent.add("k", Usage(policy_tokens=7, credits=0.5))
        assert spent.today("k") == Used(tokens=12, searches=1, credits=0.5)
        store.up = True
        await spent.aclose()
        assert await store.used("k", datetime.now(UTC).date()) == Used(tokens=12, searches=1, credits=0.5)
        assert await spent.refresh("k")
        assert spent.today("k") == Used(tokens=12, searches=1, credits=0.5)

    asyncio.run(run())


def test_runs_without_a_key_are_counted_nowhere() -> None:
    spent = Spent(MemoryKeys(), ttl_seconds=0)
    spent.add("", Usage(policy_tokens=5))
    assert spent.today("") == Used()


class Hanging(MemoryKeys):
    """A store whose database takes connections and never answers, from some time on."""

    hangs = True
    broken = False
    reads = 0

    async def _answer(self) -> None:
        self.reads += 1
        if self.hangs:
            await asyncio.Event().wait()

    async def keys(self) -> Sequence[ApiKey]:
        await self._answer()
        return await super().keys()

    async def used(self, id: str, day: date) -> Used:
        if self.broken:
            raise OSError("no database")
        return await super().used(id, day)


def test_usage_that_cannot_be_read_is_no_bug_of_the_servers() -> None:
    store = Hanging()
    store.hangs = False
    header, _ = made(store, tokens_per_day=10_000)
    store.broken = True
    (refused,) = ask(store, header)
    assert code(refused) == (503, "keys_unreadable")
    assert refused.headers["retry-after"] == "2"
    store.broken = False
    assert code(ask(store, header)[0]) == (200, "")


def test_a_run_is_counted_once_while_its_usage_is_read_and_written() -> None:
    async def run() -> None:
        store = MemoryKeys()
        spent = Spent(store, ttl_seconds=60)
        assert await spent.refresh("k")
        spent.add("k", Usage(policy_tokens=5))
        await spent.aclose()
        assert spent.today("k") == Used(tokens=5)
        await store.add_usage("k", datetime.now(UTC).date(), Used(tokens=7))  # by another server
        assert await spent.refresh("k")
        assert spent.today("k") == Used(tokens=12)

    asyncio.run(run())
