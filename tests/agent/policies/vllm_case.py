"""What the tests of vLLM share: how it is started in this process and as a server, and how it is killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from agent.build.agent import VLLM_ENVIRONMENT
from agent.loop.agent import Agent
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.policies.base import Chunk, Context, Policy, Sampling
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.hub_form import open_hub_form
from agent.policies.openai_completions import CompletionsPolicy
from agent.policies.openai_policy import OpenAiPolicy
from agent.policies.vllm import VllmPolicy
from agent.settings import default_environment
from agent.trace import Trace
from agent.world import load_world
from tests.agent.policies.engine_case import CAIRN, ids_of, sources
from tests.shipped import HUB

MARKS = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here; run: make vllm"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
    pytest.mark.timeout(300),
]
SMALL: dict[str, Any] = {"enforce_eager": True, "kv_cache_memory_bytes": 256 << 20}
"""Quick to start, and small enough that two may run beside each other."""
IN_ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
"""vLLM's model and scheduler share a process: one import of vLLM less. `cairn serve` is tested as a user starts it."""
SERVED = """
[vllm]
enforce_eager = true
kv_cache_memory_bytes = 268435456
"""
"""The same as a settings file of `cairn serve`."""
MODEL = "tiny"
_START_SECONDS = 240


def load(model: Path = HUB, **more: Any) -> VllmPolicy:
    default_environment(VLLM_ENVIRONMENT | IN_ONE_PROCESS)
    return VllmPolicy.load(str(model), **({"dtype": "float32"} | SMALL | more))


@asynccontextmanager
async def killed_in_the_middle(policy: VllmPolicy) -> AsyncGenerator[Policy]:
    """A policy whose vLLM process is killed when the first text has come; it is closed with the one that is given."""

    def kill() -> None:
        for process in policy.engine.inside(_processes).result():
            os.kill(process, signal.SIGKILL)

    yield cast(Any, _Killing(policy, kill))


async def _processes(llm: Any) -> list[int]:
    return [process.pid for process in llm.engine_core.resources.engine_manager.processes]


class _Killing:
    """Hands everything on; what its contexts say first is the last that is heard of the engine."""

    def __init__(self, policy: Policy, kill: Any) -> None:
        self._policy = policy
        self._kill = kill

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def open(self, *args: Any, **more: Any) -> Any:
        return _KillingContext(self._policy.open(*args, **more), self._once)

    async def _once(self) -> None:
        kill, self._kill = self._kill, lambda: None
        await asyncio.to_thread(kill)


class _KillingContext:
    def __init__(self, context: Context, kill: Any) -> None:
        self._context = context
        self._kill = kill

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        async for chunk in self._context.generate(sampling, stop=stop, max_tokens=max_tokens):
            yield chunk
            await self._kill()


def embedded(folder: Path) -> EmbeddedPolicy:
    """The same checkpoint in the embedded engine, in float32."""
    from train.checkpoints.export import export_checkpoint

    export_checkpoint(HUB, folder, "float32")
    return EmbeddedPolicy.load(folder, workers=1, compute_type="float32")


async def rollouts(policy: Policy, *, questions: int = 6) -> list[Trace]:
    """Whole rollouts of the test world's first questions, all at once."""
    agent = Agent(policy, CAIRN, sources())
    questions_ = [question.question for question in load_world("test-v2").questions[:questions]]
    return await asyncio.gather(*(agent.run(agent.new_trace(question)) for question in questions_))


def same(ours: Sequence[Trace], theirs: Sequence[Trace]) -> None:
    """They sampled the same, and thought the same of it."""
    for one, other in zip(ours, theirs, strict=True):
        assert [ids_of(segment) for segment in one.segments] == [ids_of(segment) for segment in other.segments]
        for mine, yours in zip(one.segments, other.segments, strict=True):
            assert mine.logprobs == (yours.logprobs and pytest.approx(yours.logprobs, abs=1e-3))


@contextmanager
def vllm_server(*, model: Path = HUB, arguments: Sequence[str] = ()) -> Generator[str]:
    """vLLM's own server on a free port; gives the address of its API."""
    with started_server(model=model, name=MODEL, port=free_port(), arguments=arguments) as server:
        yield server.ready()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@dataclass(frozen=True)
class ServerProcess:
    """vLLM's server, which may not answer yet."""

    process: "subprocess.Popen[bytes]"
    name: str
    url: str
    log: Any

    def ready(self) -> str:
        """Wait until it answers; gives the address of its API."""
        address = f"{self.url}/v1"
        _wait(address, self)
        return address

    def kill(self) -> None:
        """It, and the processes that it started, without a chance to say anything."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def started_server(*, model: Path, name: str, port: int, arguments: Sequence[str] = ()) -> Generator[ServerProcess]:
    """vLLM's own server, before it is ready."""
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--served-model-name", name, "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--enforce-eager", "--kv-cache-memory-bytes", str(SMALL["kv_cache_memory_bytes"]), *arguments]
    default_environment(VLLM_ENVIRONMENT | IN_ONE_PROCESS | {"VLLM_SERVER_DEV_MODE": "1"})
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        server = ServerProcess(process, name, f"http://127.0.0.1:{port}", log)
        try:
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def _wait(address: str, server: ServerProcess) -> None:
    until = time.monotonic() + _START_SECONDS
    while server.process.poll() is None and time.monotonic() < until:
        try:
            with urlopen(f"{address}/models", timeout=5) as answer:
                assert json.load(answer)["data"][0]["id"] == server.name
                return
        except (URLError, OSError):
            time.sleep(0.2)
    server.log.seek(0)
    raise AssertionError(f"the server did not start: {server.log.read().decode(errors='replace')[-2000:]}")


def at(address: str, *, retries: int = 2, **more: Any) -> OpenAiPolicy:
    """A policy at a server; before any request."""
    endpoint = LlmClient(base_url=address, model=MODEL, seconds=30, retries=Retries(retries))
    return OpenAiPolicy(endpoint, marks=CAIRN.all_marks, **more)


def completing(address: str) -> CompletionsPolicy:
    """The same, prepared, with no line open to the server, for no event loop is running yet."""

    async def ask() -> int:
        policy = at(address)
        await policy.prepare()
        await policy.aclose()
        assert isinstance(policy.chosen, CompletionsPolicy)
        return policy.context_tokens

    tokens = asyncio.run(ask())
    return CompletionsPolicy(
        LlmClient(base_url=address, model=MODEL), open_hub_form(str(HUB)).codec, context_tokens=tokens
    )


@asynccontextmanager
async def cut_off(address: str) -> AsyncGenerator[Policy]:
    """A policy at a server whose line is cut after the first piece of a stream; no server is there afterwards."""
    host, port = address.removeprefix("http://").removesuffix("/v1").split(":")
    relay = _Relay(host, int(port))
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    policy = at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", retries=0)
    try:
        await policy.prepare()
        relay.cutting = True
        yield policy
    finally:
        await policy.aclose()
        server.close()
        await server.wait_closed()


class _Relay:
    """Hands bytes on between a client and a server, until it cuts all lines."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self.cutting = False
        self._cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.close()
            return
        from_server, to_server = await asyncio.open_connection(self._host, self._port)
        up = asyncio.create_task(self._hand_on(reader, to_server))
        try:
            while piece := await from_server.read(65536):
                writer.write(piece)
                await writer.drain()
                if self.cutting and b"token_ids" in piece:
                    self._cut = True
                    break
        except ConnectionError:
            pass  # the client left
        finally:
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            for line in (writer, to_server):
                line.close()

    @staticmethod
    async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
