"""The contenders, each one a server that takes a chat completion's request: Cairn, a plain tool loop, and LangGraph.

All search with the same few lines, and none is given more than its makers recommend.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx2
from pydantic import SecretStr

from agent.errors import SetupError
from agent.evidence import Passage
from agent.plan import Filter
from server.load.process import Make, Tell

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI
    from uvicorn import Server

Name = Literal["cairn_plan", "cairn_rounds", "plain", "langgraph"]
NAMES: Final[Mapping[Name, str]] = {
    "cairn_plan": "Cairn, one plan",
    "cairn_rounds": "Cairn, a round at a time",
    "plain": "FastAPI + openai-python",
    "langgraph": "LangGraph ReAct",
}
OURS: Final[tuple[Name, ...]] = ("cairn_plan", "cairn_rounds")
MOST_TURNS: Final = 10
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the web.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)

Answer = Callable[[str], Awaitable[str]]
"""Question → answer."""


def contender(name: Name, world: str) -> Make:
    """What makes its server; `world` is the address of policy and search."""
    if name in OURS:
        return partial(_cairn, name.removeprefix("cairn_"), world)
    return partial(_plain if name == "plain" else _langgraph, world)


class Search:
    """The search service, as everybody asks it."""

    def __init__(self, world: str) -> None:
        self._client = httpx2.AsyncClient(base_url=world, limits=_LIMITS, trust_env=False, timeout=30)

    async def __call__(self, query: str) -> str:
        return (await self._client.post("/search", json={"query": query})).json()["text"]


@dataclass(frozen=True)
class SearchSource:
    """The same as a source of Cairn's."""

    service: Search

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        text = await self.service(query)
        return [Passage(id=query, source="web", title=query, text=text, url="https://example.org/")]


def _cairn(model: str, world: str, tell: Tell) -> "tuple[Server, socket.socket]":
    """The server that `cairn serve` makes, in front of a chat model that was told the protocol."""
    from agent.settings import CairnSettings
    from server import launch

    settings = CairnSettings(
        policy="openai",
        base_url=f"{world}/v1",
        model=model,
        endpoint="chat",
        continues="no",
        port=0,
        max_runs=512,
        store=SecretStr("memory"),
    )
    service = launch.make_service(settings, sources={"web": SearchSource(Search(world))})
    return launch.make_server(service, launch.rules_of(settings)), launch.bind(settings.host, settings.port)


def _plain(world: str, tell: Tell) -> "tuple[Server, socket.socket]":
    """A loop over tool calls, which are made at the same time where the model calls several at once."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{world}/v1", api_key="none", max_retries=0)
    search = Search(world)

    async def called(call: Any) -> dict[str, Any]:
        text = await search(json.loads(call.function.arguments)["query"])
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    async def answer(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        for _ in range(MOST_TURNS):
            made = await client.chat.completions.create(model="tools", messages=messages, tools=[_TOOL])  # pyright: ignore[reportArgumentType]
            message = made.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages += [message, *await asyncio.gather(*(called(call) for call in message.tool_calls))]
        return ""

    return _server(_app(answer))


def _langgraph(world: str, tell: Tell) -> "tuple[Server, socket.socket]":
    """The prebuilt agent, asynchronous; `v1` runs all calls of a turn at the same time in one step.

    Raises:
        SetupError: it is not installed.
    """
    import warnings

    try:
        from langchain_openai import ChatOpenAI
        from langgraph.prebuilt import create_react_agent
    except ImportError as error:
        raise SetupError("LangGraph is not installed: pip install 'cairn-search[peers]'") from error

    service = Search(world)

    async def search(query: str) -> str:
        """Search the web."""
        return await service(query)

    model = ChatOpenAI(model="tools", base_url=f"{world}/v1", api_key=SecretStr("none"), max_retries=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated; its successor does the same and more in every step
        agent: Any = create_react_agent(model, [search], version="v1")  # pyright: ignore[reportUnknownVariableType]

    async def answer(question: str) -> str:
        state = await agent.ainvoke({"messages": [("user", question)]})
        return state["messages"][-1].content

    return _server(_app(answer))


def _app(answer: Answer) -> "FastAPI":
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Message(BaseModel):
        role: str
        content: str

    class Request(BaseModel):
        model: str
        messages: list[Message]

    app = FastAPI()

    async def chat(body: Request) -> dict[str, Any]:
        message = {"role": "assistant", "content": await answer(body.messages[-1].content)}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    app.post("/v1/chat/completions")(chat)
    return app


def _server(app: "FastAPI") -> "tuple[Server, socket.socket]":
    import uvicorn

    from server.launch import bind

    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    return uvicorn.Server(config), bind("127.0.0.1", 0)
