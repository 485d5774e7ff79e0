"""Planted keys: the server's, a client's, the engine's and a source's, in a server whose engine and source repeat them.

Everything that leaves the server is grepped for them: answers, errors, logs, metrics, traces, spans and the store.
"""

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.settings import CairnSettings
from agent.settings.live import LimitSettings
from agent.settings.tables import BudgetSettings
from agent.trace import Trace
from server.auth.keys import MemoryKeys, new_key
from server.auth.middleware import Rules
from server.launch import make_service
from server.telemetry.logs import set_up_logs
from server.telemetry.redact import Redactor, secrets_of
from server.telemetry.spans import Spans
from tests.agent.policies.chat_server import Refusal, Reply, chat_server
from tests.agent.sources.live.apiserver import ApiServer
from tests.agent.sources.live.apiserver import Reply as ApiReply
from tests.server.live import ANSWER, QUESTION, SEARCH, serving

CHAT = "/v1/chat/completions"
SERVER = "planted-server-key-7f3a"
ENGINE = "sk-planted-engine-key-91bc"
SOURCE = "tvly-planted-source-key-d20e"


@dataclass
class Left:
    """What left the server, by where it went."""

    said: dict[str, str] = field(default_factory=dict[str, str])

    def hold(self, *secrets: str) -> list[tuple[str, str]]:
        """Where one of them stands, and which."""
        return [(where, secret) for where, text in self.said.items() for secret in secrets if secret in text]


@pytest.fixture
def log() -> io.StringIO:
    """A stream for the log."""
    return io.StringIO()


def settings_of(engine: str, source: str, folder: Path) -> CairnSettings:
    return CairnSettings(
        policy="openai",
        base_url=engine,
        model="small",
        endpoint="chat",
        protocol="cairn",
        api_key=SecretStr(ENGINE),
        server_key=SecretStr(SERVER),
        tavily_key=SecretStr(SOURCE),
        tavily_url=source,
        web=("tavily",),
        news=("tavily",),
        live=True,
        limits={"tavily": LimitSettings(timeout_seconds=0.5)},  # of waits for another try, too
        budgets=BudgetSettings(search_seconds=1),
        cache="",
        store=SecretStr(str(folder / "runs.sqlite")),
    )


@asynccontextmanager
async def planted(
    folder: Path, log: io.StringIO, spans: InMemorySpanExporter, traces: list[Trace], *replies: Reply | Refusal
) -> AsyncGenerator[tuple[httpx2.AsyncClient, str]]:
    """A server with real backends, whose source repeats its key in its refusal; a client, and a key of its own."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(chat_server(*replies))
        source = await stack.enter_async_context(ApiServer())
        source.routes["*"] = ApiReply(f"The key {SOURCE} is used up; header Bearer {SOURCE}".encode(), 429)
        settings = settings_of(engine.url, source.base, folder)
        set_up_logs(secrets=secrets_of(settings), form="json", level="debug", stream=log)
        made = make_service(settings)

        def keep(trace: Trace) -> None:
            traces.append(trace)
            made.keep(trace)

        service = replace(made, observers=(Spans(spans, text=True),), keep=keep)
        secret, key = new_key("client")
        keys = MemoryKeys()
        await keys.add_key(key)
        address = await stack.enter_async_context(serving(service, Rules(key=settings.server_key, keys=keys)))
        client = httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60)
        yield await stack.enter_async_context(client), secret.get_secret_value()


def left_behind(folder: Path, log: io.StringIO, *replies: Reply | Refusal) -> tuple[Left, str]:
    """Ask in every way, well and badly, with every key, and collect what comes out."""
    left = Left()
    traces: list[Trace] = []
    spans = InMemorySpanExporter()

    async def run() -> str:
        async with asyncio.timeout(60), planted(folder, log, spans, traces, *replies) as (client, own):
            keys = (SERVER, own, f"{SERVER}x", f"{own}x")
            await asyncio.gather(*(chat(client, key, left) for key in keys))
            await asyncio.gather(*(ask_otherwise(client, key, left) for key in (SERVER, own)))
            headers = {"authorization": f"Bearer {SERVER}"}
            for path in ("/metrics", "/version", "/readyz", "/healthz", "/openapi.json", "/v1/models", "/", "/nothing"):
                left.said[path] = written(await client.get(path, headers=headers))
            return own

    own = asyncio.run(run())
    left.said["log"] = log.getvalue()
    left.said["spans"] = "".join(span.to_json() for span in spans.get_finished_spans())
    left.said["traces"] = json.dumps([trace.model_dump(mode="json") for trace in traces])
    for file in filter(Path.is_file, folder.rglob("*")):
        left.said[f"store {file.name}"] = file.read_bytes().decode("utf-8", "replace")
    assert len(traces) >= 4
    return left, own


async def chat(client: httpx2.AsyncClient, key: str, left: Left) -> None:
    """A question whose answer is streamed, one whose answer is not, and a body that is broken."""
    headers = {"authorization": f"Bearer {key}", "x-request-id": "r"}
    for stream in (True, False):
        answer = await client.post(CHAT, json={"messages": QUESTION, "stream": stream}, headers=headers)
        left.said[f"answer {len(left.said)}"] = written(answer)
    broken = await client.post(CHAT, content=f'{{"messages": "{key}"'.encode(), headers=headers)
    left.said[f"error {len(left.said)}"] = written(broken)


async def ask_otherwise(client: httpx2.AsyncClient, key: str, left: Left) -> None:
    """The other ways to ask, and everything that can be fetched of a run."""
    headers = {"authorization": f"Bearer {key}"}
    question = str(QUESTION[0]["content"])
    bodies: dict[str, dict[str, object]] = {
        "/v1/responses": {"input": question},
        "/v1/evidence": {"question": question},
        "/retrieve": {"queries": [question], "source": "web"},
    }
    for path, body in bodies.items():
        left.said[f"{path} {len(left.said)}"] = written(await client.post(path, json=body, headers=headers))
    started = await client.post("/api/runs", json={"messages": QUESTION}, headers=headers)
    run = started.json()["id"]
    paths = ["/events", "", *(f"/export?format={form}" for form in ("json", "markdown", "html", "bibtex"))]
    for path in [f"/api/runs/{run}{more}" for more in paths] + ["/api/runs"]:
        left.said[f"{path} {len(left.said)}"] = written(await client.get(path, headers=headers))


def written(response: httpx2.Response) -> str:
    return f"{response.status_code} {dict(response.headers)} {response.text}"


def test_an_engine_and_a_source_that_repeat_their_keys_give_none_of_them_away(tmp_path: Path, log: io.StringIO) -> None:
    left, own = left_behind(tmp_path, log, Reply([SEARCH]), Reply([ANSWER]))
    assert left.hold(SERVER, ENGINE, SOURCE, own) == []
    assert "execute_tool search" in left.said["spans"]
    assert any(path.startswith("store runs.sqlite") and "Aurora" in text for path, text in left.said.items())
    assert "***" in left.said["traces"], "the source's words are kept, without its key"


def test_an_engine_that_fails_with_its_key_in_the_error_gives_it_to_no_one(tmp_path: Path, log: io.StringIO) -> None:
    error = {"message": f"upstream refused Bearer {ENGINE}", "type": "server_error", "code": ENGINE}
    left, own = left_behind(tmp_path, log, Refusal(500, error))
    assert left.hold(SERVER, ENGINE, SOURCE, own) == []
    assert any("engine_failed" in text for text in left.said.values())


def test_settings_show_no_secret_in_any_form(tmp_path: Path) -> None:
    settings = settings_of("http://127.0.0.1:1/v1", "http://127.0.0.1:2", tmp_path)
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert not [secret for secret in (SERVER, ENGINE, SOURCE) if secret in shown]
    assert {SERVER, ENGINE, SOURCE} <= secrets_of(settings)


def test_secrets_are_found_in_options_and_urls_too() -> None:
    settings = CairnSettings(
        plugins={"mine": {"api_key": "plugin-key-1", "depth": 3, "nested": {"password": "plugin-pass-2"}}},
        cache="redis://user:redis-pass-3@cache.example/0",
        store=SecretStr("postgresql://cairn:store%2Dpass-4@db.example/cairn"),
    )
    assert {"plugin-key-1", "plugin-pass-2", "redis-pass-3", "store%2Dpass-4"} <= secrets_of(settings)
    said = Redactor(secrets_of(settings))('password authentication failed for "cairn" with store-pass-4')
    assert "store-pass-4" not in said
