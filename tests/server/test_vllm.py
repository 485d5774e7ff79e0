"""`cairn serve --policy vllm`, as it is installed, with real vLLM on a CPU. It is started once for all of the tests."""

import re
import signal
import sys
import time
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from openai import OpenAI

from agent.world import load_world
from tests.agent.policies.vllm_case import SERVED
from tests.processes import Running, running
from tests.shipped import HUB

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here; run: make vllm"),
    pytest.mark.timeout(300),
]

CAIRN = Path(sys.executable).with_name("cairn")
MODEL, WORLD = HUB, "test-v2"
QUESTION = "Which nation is the city that Fisko Pornane comes from part of?"


class Server(NamedTuple):
    running: Running
    client: OpenAI


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "vllm.toml").write_text(SERVED, encoding="utf-8")
    command = [
        CAIRN,
        "serve",
        "--policy",
        "vllm",
        "--model",
        MODEL,
        "--world",
        WORLD,
        "--config",
        folder / "vllm.toml",
        "--port",
        "0",
    ]
    environment = {"PATH": f"{CAIRN.parent}:/usr/bin:/bin", "HOME": str(folder), "CAIRN_STORE": "memory"}
    environment |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    with running([str(word) for word in command], env=environment, cwd=folder) as program:
        said = program.wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+", program.said))
        with OpenAI(base_url=f"{said[0]}/v1", api_key="none", timeout=120) as client:
            yield Server(program, client)


@pytest.fixture(scope="module")
def answer() -> str:
    """The right one, by the world."""
    return next(question.answers[0] for question in load_world(WORLD).questions if question.question == QUESTION)


def ask(client: OpenAI, **more: Any) -> Any:
    create: Any = client.chat.completions.create
    return create(model="cairn", messages=[{"role": "user", "content": QUESTION}], **more)


def test_a_chat_completion_has_the_right_answer_and_the_pages_that_it_is_from(server: Server, answer: str) -> None:
    got = ask(server.client)
    assert got.choices[0].message.content == answer
    assert got.choices[0].finish_reason == "stop"
    assert len(got.citations) >= 2
    assert got.usage.completion_tokens > 0
    assert "tiny" in server.running.said


def test_a_streamed_completion_comes_in_pieces_and_says_the_same(server: Server, answer: str) -> None:
    chunks = list(ask(server.client, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == answer
    thoughts = [delta.reasoning_content for delta in deltas if getattr(delta, "reasoning_content", None)]
    assert len(thoughts) > 3
    notes = [note for delta in deltas for note in getattr(delta, "annotations", None) or ()]
    whole = ask(server.client)
    assert [note["url_citation"]["url"] for note in notes] == whole.citations
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_the_server_ends_on_sigterm_with_vllms_processes(server: Server) -> None:
    process = server.running.process
    children = _children(process.pid)
    assert children, "vLLM's engine is a process of its own"
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
