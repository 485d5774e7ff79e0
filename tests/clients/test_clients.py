"""Real client libraries against a live server with the embedded policy: each sees reasoning, answer, citations, usage.

They are programs of their own, since their libraries and ours want different versions of each other; `make clients`
installs them. Each prints what it saw as one JSON object.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-clients" / "bin" / "python"
NODE = shutil.which("node")
ALONE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}
"""Their whole environment: none asks anybody but the server."""
QUESTION = "What is the country of Sembburg?"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with in_thread(make_service(load_settings(store="memory"))) as served:
        yield f"{served}/v1"


@pytest.fixture(scope="module")
def expected(address: str) -> dict[str, Any]:
    """What the server says without any client's help. The embedded policy is greedy: it says the same to each."""
    body = {"model": "cairn", "messages": [{"role": "user", "content": QUESTION}]}
    got = httpx2.post(f"{address}/chat/completions", json=body, timeout=60, trust_env=False).json()
    message = got["choices"][0]["message"]
    assert message["content"]
    assert message["reasoning"]
    assert any(url.startswith("http") for url in got["citations"])
    return {
        "reasoning": message["reasoning"],
        "answer": message["content"],
        "citations": got["citations"],
        "tokens": got["usage"]["completion_tokens"],
    }


def run(program: str | Path | None, script: str, address: str) -> dict[str, dict[str, Any]]:
    """Let a client ask, and read what it saw."""
    if program is None or not Path(program).exists():
        pytest.skip("its library is not installed; run: make clients")
    command = [str(program), str(HERE / script), address, QUESTION]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=ALONE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(seen: dict[str, Any], expected: dict[str, Any]) -> None:
    """All that the server said reached the client's user."""
    assert seen["answer"].startswith(expected["answer"])
    assert seen["citations"] == expected["citations"]
    assert seen["tokens"] == expected["tokens"]
    assert squeezed(seen["reasoning"]) == squeezed(expected["reasoning"])


def squeezed(text: str) -> str:
    return " ".join(text.split())


def linked(expected: dict[str, Any]) -> dict[str, Any]:
    """What a client sees that shows links of the text instead of citations: those that a browser can open."""
    return expected | {"citations": [url for url in expected["citations"] if url.startswith("http")]}


def test_openai_python_sees_all_of_it_in_each_form(address: str, expected: dict[str, Any]) -> None:
    seen = run(sys.executable, "python/ask_openai.py", address)
    for form in ("whole", "streamed", "helped", "responded"):
        check(seen[form], expected)
    assert seen["responded"]["queries"]


def test_langchain_reads_answers_and_links_and_through_responses_the_rest(
    address: str, expected: dict[str, Any]
) -> None:
    seen = run(PYTHON, "python/ask_langchain.py", address)
    check(seen["chatted"] | {"reasoning": expected["reasoning"]}, linked(expected))  # it drops a chat's reasoning
    check(seen["responded"], expected)
    check(seen["streamed"], expected)


def test_llamaindex_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = run(PYTHON, "python/ask_llamaindex.py", address)
    check(seen["streamed"], linked(expected))
    check(seen["whole"], linked(expected))


def test_litellm_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = run(PYTHON, "python/ask_litellm.py", address)
    check(seen["whole"], expected)
    check(seen["streamed"], expected)


def node(script: str, address: str) -> dict[str, Any]:
    if not (HERE / "node" / "node_modules").is_dir():
        pytest.skip("its library is not installed; run: make clients")
    return run(NODE, f"node/{script}", address)


def test_the_ai_sdk_accepts_every_frame_and_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = node("ask_ai_sdk.mjs", address)
    assert seen["failures"] == []
    assert seen["ordered"]
    check(seen["streamed"], linked(expected))
    check(seen["whole"], linked(expected))


def test_langchain_js_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = node("ask_langchain.mjs", address)
    check(seen["streamed"], linked(expected))
    check(seen["whole"], linked(expected))
