"""A real server on a free port in the test's own event loop, and sources and policies that let tests see what happens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.policies.base import Chunk, Sampling
from agent.policies.scripted import Script, ScriptedContext, ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named, protocol_names
from agent.sources.base import SearchRequest, SearchResult
from server.app import create_app
from server.auth.middleware import Rules
from server.chat.service import Service
from server.launch import Server, address_of, bind, make_server
from server.retrieval.service import Retriever
from server.shutdown import Grace

QUESTION = [{"role": "user", "content": "Where was the director of Aurora Falls born?"}]
SEARCH = "<think>I need the director.</think>\n<search>\nA: director of Aurora Falls (web)\nB: Lina Orr (kg)\n</search>"
ANSWER = (
    "<merge>Lina Orr directed it [1] and comes from Trieste [2].</merge>\n<evidence>\n"
    "- Lina Orr was born in Trieste. [2]\n- Lina Orr directed Aurora Falls. [1][2]\n</evidence>\n<answer> Trieste </answer>"
)
MULTISEARCH = (
    "<think>The director.</think>\n<search>director of Aurora Falls, Lina Orr</search>",
    "<merge>Lina Orr was born in Trieste [2]. She directed Aurora Falls [1].</merge>\n<answer>Trieste</answer>",
)

FACTS = {"director of Aurora Falls": "Aurora Falls was directed by Lina Orr.", "Lina Orr": "She comes from Trieste."}


@dataclass(frozen=True)
class FakeSource:
    """One passage for every query."""

    name: str
    url: str = ""

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        text = f'About <b>{query}</b> "quoted" — naïve. {FACTS.get(query, "")}'.strip()
        found = Passage(id=f"{self.name}:{query}", source=self.name, title=query.title(), text=text, url=self.url)
        return SearchResult((found,))


class Nothing:
    """A source that honestly finds nothing."""

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult()


@dataclass
class Hanging:
    """A source that never answers, and records when a search begins and when it is let go."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requested.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.let_go.set()
        raise AssertionError("this event is never set")


@dataclass
class PausedSource:
    """A source that answers once the test lets it."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        self.opened.set()

    async def search(self, request: SearchRequest) -> SearchResult:
        await self.opened.wait()
        query = request.query
        return SearchResult((Passage(id=query, source="web", title=query, text=FACTS.get(query, query), url=""),))


@dataclass(frozen=True)
class HangingPolicy(ScriptedPolicy):
    """Says its first word, and then nothing; records when it is let go."""

    turns: Script = ()
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "HangingContext":
        return HangingContext(self, question)


class HangingContext(ScriptedContext):
    def __init__(self, policy: HangingPolicy, prompt: str) -> None:
        super().__init__(policy, prompt)
        self._hanging = policy

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        yield Chunk("<think>Well", ids=(1,), logprobs=(0.0,))
        self._hanging.requested.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._hanging.let_go.set()


def make_service(turns: Script = (SEARCH, ANSWER), *, agent: Agent | None = None, **changes: Any) -> Service:
    """A service of a scripted policy, with a page on the web and a triple."""
    sources = {
        "web": FakeSource("web", url="https://example.org/falls"),
        "kg": FakeSource("kg"),
        "all": FakeSource("all", url="https://example.org/all"),
    }
    made = agent or Agent(policy=ScriptedPolicy(turns), protocol=protocol_named("cairn"), sources=sources)
    protocols = {name: protocol_named(name) for name in protocol_names()}
    return Service(agent=made, protocols=protocols, **changes)


@asynccontextmanager
async def serving_as(
    service: Service | Retriever, rules: Rules | None = None, *, grace: Grace | None = None
) -> AsyncGenerator[tuple[str, Server]]:
    """Its address and the server itself, while it runs."""
    listener = bind("127.0.0.1", 0)
    server = make_server(service, rules, grace=grace)
    async with asyncio.timeout(30):
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield address_of(listener), server
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def serving(
    service: Service | Retriever, rules: Rules | None = None, *, grace: Grace | None = None
) -> AsyncGenerator[str]:
    """Its address, while it runs."""
    async with serving_as(service, rules, grace=grace) as (address, _):
        yield address


def in_memory(service: Service, rules: Rules | None = None) -> httpx2.AsyncClient:
    """A client that reaches the app without a socket. It cannot see disconnects and heartbeats; `serving` can."""
    transport = httpx2.ASGITransport(app=create_app(service, rules), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")
