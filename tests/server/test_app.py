"""The app as a whole: what it opened is closed, also where it could not open all of it; models ask no engine."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.types import Message

from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol
from server.app import create_app
from server.auth.keys import MemoryKeys, new_key
from server.auth.middleware import Rules
from server.chat.service import Service
from server.runs.manager import RunManager
from server.store import RunStore
from server.store.database import Database
from server.telemetry.watch import Observer, WatchedRun
from tests.server.live import QUESTION, in_memory, make_service
from tests.server.test_telemetry import measured


@dataclass(frozen=True)
class Telling(ScriptedPolicy):
    """Records when it is closed, and must never be called."""

    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> Any:
        raise AssertionError("the engine was called")

    async def aclose(self) -> None:
        self.closed.set()


class Unclosable(RunManager):
    async def end(self) -> None:
        await super().end()  # its tasks would outlive the event loop
        raise OSError("it cannot be closed")


def with_policy(service: Service, policy: ScriptedPolicy) -> Service:
    return replace(service, agent=replace(service.agent, policy=policy))


async def lived(service: Service) -> list[str]:
    """Begin and end the app as a web server does; gives what it said."""
    said: list[str] = []
    coming = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Message:
        return next(coming)

    async def send(message: Message) -> None:
        said.append(message["type"])

    async with asyncio.timeout(20):
        try:
            await create_app(service)({"type": "lifespan", "state": {}}, receive, send)
        except Exception as error:  # noqa: BLE001 - the framework raises what it reported
            said.append(type(error).__name__)
    return said


def test_a_store_that_cannot_be_opened_leaves_no_policy_open(tmp_path: Any) -> None:
    async def run() -> None:
        closed = asyncio.Event()
        run_manager = RunManager(RunStore(Database(str(tmp_path / "file" / "runs.sqlite"))))
        (tmp_path / "file").write_text("no folder", encoding="utf-8")
        said = await lived(with_policy(make_service(run_manager=run_manager), Telling((), closed=closed)))
        assert said[0] == "lifespan.startup.failed"
        assert closed.is_set()

    asyncio.run(run())


def test_a_part_that_cannot_be_closed_keeps_no_other_open() -> None:
    async def run() -> None:
        closed, store = asyncio.Event(), RunStore(Database("memory"))
        said = await lived(with_policy(make_service(run_manager=Unclosable(store)), Telling((), closed=closed)))
        await store.aclose()
        assert "lifespan.shutdown.failed" in said
        assert closed.is_set()

    asyncio.run(run())


class Counting(Observer):
    """Counts the runs that ended."""

    ended_runs = 0

    def ended(self, run: WatchedRun) -> None:
        self.ended_runs += 1


def test_two_apps_of_one_service_count_each_run_once() -> None:
    async def run() -> None:
        store, observer = MemoryKeys(), Counting()
        secret, key = new_key("a client")
        await store.add_key(key)
        service, rules = make_service(observers=(observer,)), Rules(keys=store)
        headers = {"authorization": f"Bearer {secret.get_secret_value()}"}
        async with asyncio.timeout(20), in_memory(service, rules) as one, in_memory(service, rules) as other:
            for client in (one, other, one):
                reply = await client.post("/v1/chat/completions", json={"messages": QUESTION}, headers=headers)
                assert reply.status_code == 200
            counted = [measured((await client.get("/metrics")).text)["cairn_runs_total"] for client in (one, other)]
        assert counted == [{("answered",): 2}, {("answered",): 1}]
        assert observer.ended_runs == 3
        assert service.observers == (observer,)
        searches = 0
        while searches < 3 * 2:
            await asyncio.sleep(0)  # usage is stored behind the answers
            searches = (await store.used(key.id, datetime.now(UTC).date())).searches
        assert searches == 3 * 2

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/cairn", "/v1/tools", "/version", "/healthz"])
def test_what_there_is_is_listed_without_the_engine(path: str) -> None:
    async def run() -> int:
        async with in_memory(with_policy(make_service(), Telling(()))) as client:
            return (await client.get(path)).status_code

    assert asyncio.run(run()) == 200
