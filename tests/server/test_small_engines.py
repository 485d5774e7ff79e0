"""small-v1 merged into one model, behind vLLM and behind transformers: it answers, streams, is cancelled, and ends."""

import asyncio
import json
import re
import signal
import time
from collections.abc import Callable, Generator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from openai import OpenAI

from agent.build.shipped import SMALL
from agent.build.sources import build_sources
from agent.loop.agent import Agent
from agent.models.cache import ModelCache
from agent.models.ready import hub_folder, ready_policy_folder
from agent.policies.base import Policy
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from agent.settings import CairnSettings
from tests.agent.models.case import real_gguf
from tests.agent.policies.vllm_case import SERVED, load
from tests.general_model import CAIRN, DOCUMENTS, QUESTIONS, streamed
from tests.processes import Running, running

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here; run: make vllm"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
    pytest.mark.timeout(400),
]


class Server(NamedTuple):
    engine: str
    running: Running
    address: str


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> ModelCache:
    return ModelCache(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "documents.jsonl"
    rows = [{"id": str(at), "title": title, "text": text} for at, (title, text) in enumerate(DOCUMENTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["vllm", "transformers"])
def server(
    request: pytest.FixtureRequest, cache: ModelCache, documents: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Server]:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "vllm.toml").write_text(SERVED, encoding="utf-8")
    model = hub_folder(str(real_gguf()), adapter=SMALL, cache=cache)
    command = [CAIRN, "serve", "--policy", request.param, "--model", model, "--corpus", documents, "--port", "0"]
    command += ["--config", folder / "vllm.toml"] if request.param == "vllm" else []
    environment = {"PATH": f"{CAIRN.parent}:/usr/bin:/bin", "HOME": str(folder), "CAIRN_STORE": "memory"}
    environment |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    with running([str(word) for word in command], env=environment, cwd=folder) as program:
        said = program.wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+", program.said))
        yield Server(request.param, program, said[0])


def reasons(server: Server) -> list[str]:
    """Why every run ended, the latest first."""
    with httpx2.Client(base_url=server.address, timeout=20, trust_env=False) as client:
        runs = client.get("/api/runs").json()["runs"]
        traces = [client.get(f"/api/runs/{run['id']}").json()["trace"] for run in runs]
    return [trace["steps"][-1].get("reason", "") for trace in traces]


def test_it_answers_over_http_piece_by_piece(server: Server) -> None:
    with OpenAI(base_url=f"{server.address}/v1", api_key="none", timeout=240) as client:
        said = [streamed(client, question) for question, _ in QUESTIONS]
    assert [finish for _, finish in said] == ["stop"] * len(QUESTIONS)
    right = [gold in text for (text, _), (_, gold) in zip(said, QUESTIONS, strict=True)]
    assert sum(right) >= len(QUESTIONS) - 1, said


def test_what_is_thought_comes_in_pieces_and_the_tokens_are_counted(server: Server) -> None:
    question, gold = QUESTIONS[0]
    with OpenAI(base_url=f"{server.address}/v1", api_key="none", timeout=240) as client:
        create: Any = client.chat.completions.create
        request: dict[str, Any] = {"model": "cairn", "messages": [{"role": "user", "content": question}]}
        chunks = list(create(**request, stream=True, stream_options={"include_usage": True}))
        whole = create(**request)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert sum(bool(getattr(delta, "reasoning_content", None)) for delta in deltas) > 3
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert gold in whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens > 0


def test_a_client_that_leaves_in_the_middle_ends_its_run(server: Server) -> None:
    with OpenAI(base_url=f"{server.address}/v1", api_key="none", timeout=240) as client:
        create: Any = client.chat.completions.create
        stream = create(model="cairn", messages=[{"role": "user", "content": QUESTIONS[5][0]}], stream=True)
        assert next(iter(stream)) is not None
        stream.close()
    ends = time.monotonic() + 30
    while "cancelled" not in (found := reasons(server)) and time.monotonic() < ends:
        time.sleep(0.1)
    assert found.count("cancelled") == 1, found


def test_it_ends_on_sigterm_with_its_processes(server: Server) -> None:
    process = server.running.process
    children = _children(process.pid)
    assert children or server.engine != "vllm", "vLLM's engine is a process of its own"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM, server.running.said
    left = set(children)
    ends = time.monotonic() + 30
    while (left := {child for child in left if _runs(child)}) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not left
    assert "Traceback" not in server.running.said


def _runs(process: int) -> bool:
    """Whether it is there and has not ended; one that ended may wait for its new parent to look."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _children(process: int) -> list[int]:
    return [
        int(child)
        for path in Path(f"/proc/{process}/task").glob("*/children")
        for child in path.read_text("utf-8").split()
    ]


def said_by(engine: Callable[[], Policy], documents: Path, questions: Sequence[str]) -> list[list[str]]:
    """What a policy writes for every question, greedily."""

    async def run() -> list[list[str]]:
        policy = engine()
        agent = Agent(policy, protocol_named("cairn"), build_sources(CairnSettings(corpus=documents)))
        try:
            traces = [await agent.run(agent.new_trace(question)) for question in questions]
            return [[segment.text for segment in trace.segments if segment.by == "policy"] for trace in traces]
        finally:
            await policy.aclose()

    return asyncio.run(run())


def test_engines_write_the_same_in_float32(cache: ModelCache, documents: Path) -> None:
    from agent.policies.transformers import TransformersPolicy

    gguf = str(real_gguf())
    exact = hub_folder(gguf, adapter=SMALL, stored="float32", cache=cache)
    embedded = ready_policy_folder(SMALL, base=gguf, quantization="float32", cache=cache)
    engines: list[Callable[[], Policy]] = [
        lambda: EmbeddedPolicy.load(embedded, workers=1, compute_type="float32"),
        lambda: TransformersPolicy.load(str(exact), device="cpu", dtype="float32"),
        lambda: load(exact, kv_cache_memory_bytes=512 << 20),
    ]
    questions = [question for question, _ in QUESTIONS[:4]]
    first, *others = (said_by(engine, documents, questions) for engine in engines)
    for other in others:
        assert sum(mine == yours for mine, yours in zip(first, other, strict=True)) >= len(questions) - 1
