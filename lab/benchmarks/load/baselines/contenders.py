"""The contenders, each a server in a process of its own that takes a chat completion's request.

Ours is the server that `cairn serve` makes; the others are the scripts beside this file, in an environment of theirs.
"""

import subprocess
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx2
from pydantic import SecretStr

from agent.errors import SetupError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from lab.benchmarks.load.process import STOP_SECONDS, Listening, Send, running

if TYPE_CHECKING:
    import socket

    from server.chat.service import Service
    from server.launch import Server

Name = Literal["cairn_rounds", "cairn_plan", "plain", "langgraph"]
NAMES: Final[dict[Name, str]] = {
    "cairn_rounds": "Cairn, a round at a time",
    "cairn_plan": "Cairn, one plan",
    "plain": "FastAPI + openai-python",
    "langgraph": "LangGraph ReAct",
}
OURS: Final[dict[Name, str]] = {"cairn_rounds": "rounds", "cairn_plan": "plan"}
"""Our forms, and the name of the model that has each."""
SCRIPTS: Final[dict[Name, Path]] = {
    "plain": Path(__file__).parent / "scripts" / "plain.py",
    "langgraph": Path(__file__).parent / "scripts" / "langgraph_react.py",
}
_ALONE: Final = {"LANGSMITH_TRACING": "false"}
"""Their whole environment: none calls any service but the race's own."""


def contender(name: Name, world: str, *, python: Path) -> AbstractContextManager[Listening]:
    """Start one; leaving ends it.

    Args:
        name: of the contender.
        world: the address of the policy and the search.
        python: of the others' environment.
    """
    return _ours(OURS[name], world) if name in OURS else _script([str(python), str(SCRIPTS[name]), world])


@dataclass(frozen=True)
class SearchSource:
    """The search service as a source, called in the same few lines as by the others."""

    client: httpx2.AsyncClient

    @classmethod
    def at(cls, world: str) -> "SearchSource":
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)
        return cls(httpx2.AsyncClient(base_url=world, limits=limits, trust_env=False, timeout=30))

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        text = (await self.client.post("/search", json={"query": query})).json()["text"]
        return SearchResult((Passage(id=query, source="web", title=query, text=text, url="https://example.org/"),))

    async def aclose(self) -> None:
        await self.client.aclose()


def cairn_service(model: str, world: str, *, store: str) -> "Service":
    """What `cairn serve` answers, in front of a chat model at an endpoint that gets the protocol as instructions."""
    from agent.settings import CairnSettings
    from server.launch import make_service

    settings = CairnSettings(
        policy="openai",
        base_url=f"{world}/v1",
        model=model,
        endpoint="chat",
        continues="no",
        rung="protocol",
        max_runs=512,
        store=SecretStr(store),
    )
    return make_service(settings, sources={"web": SearchSource.at(world)})


def _cairn(model: str, world: str, store: str, send: Send) -> "tuple[Server, socket.socket]":
    from server.launch import bind, make_server

    return make_server(cairn_service(model, world, store=store)), bind("127.0.0.1", 0)


@contextmanager
def _ours(model: str, world: str) -> Generator[Listening]:
    with (
        TemporaryDirectory(prefix="cairn-bench-") as folder,
        running(partial(_cairn, model, world, str(Path(folder) / "runs.db"))) as server,
    ):
        yield server


@contextmanager
def _script(command: Sequence[str]) -> Generator[Listening]:
    try:
        process: subprocess.Popen[Any] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_ALONE)
    except OSError as error:
        raise SetupError(
            f"{command[0]} cannot be started; make the others' environment: python -m venv .venv-baselines && "
            ".venv-baselines/bin/pip install --group baselines"
        ) from error
    with process:
        try:
            if not (said := process.stdout.readline() if process.stdout else ""):
                raise SetupError(f"{Path(command[1]).name} ended before it listened; its error is above")
            yield Listening(said.strip(), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
