"""Servers that keep runs, clients that follow them, and policies and sources that wait until a test lets them go on."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agent.loop.agent import Agent
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source
from server.auth.middleware import Rules
from server.chat.service import Service
from server.runs.manager import RunManager
from server.shutdown import Grace
from server.store import RunStore
from server.store.database import Database
from tests.server.live import ANSWER, SEARCH, FakeSource, make_service, serving

QUESTION = {"messages": [{"role": "user", "content": "Where was the director of Aurora Falls born?"}]}


@dataclass
class Held:
    """A source that answers when the test says so."""

    name: str = "web"
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requested.set()
        await self.go.wait()
        return await FakeSource(self.name, url="https://example.org/falls").search(request)


def keeping_service(
    location: str | Database,
    *,
    turns: Script = (SEARCH, ANSWER),
    held: Held | None = None,
    source: Source | None = None,
    lease_seconds: float = 60.0,
) -> Service:
    """A service that keeps its runs there; its searches ask `held`, or `source`."""
    database = location if isinstance(location, Database) else Database(location)
    run_manager = RunManager(RunStore(database, lease_seconds=lease_seconds), command_seconds=0.05, close_seconds=1.0)
    web = held or source or FakeSource("web", url="https://example.org/falls")
    sources: dict[str, Source] = {"web": web, "kg": FakeSource("kg"), "all": FakeSource("all")}
    agent = Agent(policy=ScriptedPolicy(turns), protocol=protocol_named("cairn"), sources=sources)
    return make_service(agent=agent, run_manager=run_manager, keep=run_manager.keep)


@asynccontextmanager
async def client_of(
    service: Service, rules: Rules | None = None, *, key: str = "", grace: Grace | None = None
) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a real server."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        serving(service, rules, grace=grace) as address,
        httpx2.AsyncClient(base_url=address, headers=headers, timeout=30, trust_env=False) as client,
    ):
        yield client


async def start(client: httpx2.AsyncClient, **fields: Any) -> str:
    """Start a run; gives its id."""
    said = await client.post("/api/runs", json=QUESTION | fields)
    assert said.status_code == 201, said.text
    return said.json()["id"]


@dataclass(frozen=True)
class Seen:
    """One event as a client gets it."""

    id: str
    event: str
    data: Any


async def events(client: httpx2.AsyncClient, run: str, *, after: str = "") -> AsyncGenerator[Seen]:
    """The events of a run, as they come, on one connection."""
    headers = {"last-event-id": after} if after else {}
    async with client.stream("GET", f"/api/runs/{run}/events", headers=headers) as response:
        assert response.status_code == 200
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name and value:
                fields[name] = value
            elif not line and "data" in fields:
                yield Seen(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
                fields = {}


async def all_events(client: httpx2.AsyncClient, run: str, *, after: str = "") -> list[Seen]:
    return [seen async for seen in events(client, run, after=after)]


@dataclass
class Folded:
    """What a client has made of the events: closed steps, and the text that is open."""

    steps: list[Any] = field(default_factory=list[Any])
    open: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    said: list[str] = field(default_factory=list[str])
    """Of each block that was closed, its text as it came in deltas."""
    last: str = ""
    over: bool = False

    def take(self, seen: Seen) -> None:
        self.last = seen.id
        match seen.event:
            case "step":
                self.steps.append(seen.data)
                self.said.append("".join(text for _, text in self.open))
                self.open = []
            case "delta":
                self.open.append((seen.data["role"], seen.data["text"]))
            case "snapshot":
                self.open = [(piece["role"], piece["text"]) for piece in seen.data]
            case "end":
                assert not self.over
                self.over = True
            case _:
                raise AssertionError(seen)
