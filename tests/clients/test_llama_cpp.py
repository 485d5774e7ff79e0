"""llama.cpp's own server with a small general model, queried through `cairn serve`, and looked at by `cairn doctor`."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.general_model import CAIRN, check, served
from tests.processes import running

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def model_server(pytestconfig: pytest.Config) -> Iterator[str]:
    python = pytestconfig.getoption("--clients") or pytest.skip("llama.cpp is not installed here; run: make clients")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running([str(python), str(HERE / "python" / "serve_llama_cpp.py"), str(port)]) as program:
        program.wait_for(lambda: "ready" in program.said)
        yield f"http://127.0.0.1:{port}/v1"


def _model(base_url: str) -> str:
    import httpx2

    return httpx2.get(f"{base_url}/models", trust_env=False, timeout=20).json()["data"][0]["id"]


def test_a_small_model_answers_every_question_through_the_openai_client(model_server: str, tmp_path: Path) -> None:
    with served(model_server, _model(model_server), tmp_path) as address:
        check(address)


def test_the_doctor_says_what_the_server_offers(model_server: str, tmp_path: Path) -> None:
    command = [CAIRN, "doctor", "--policy", "openai", "--base-url", model_server, "--model", _model(model_server)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    (line,) = [line for line in done.stdout.splitlines() if " model " in line]
    assert "JSON by a schema: yes" in line
    assert "a context of 4,096 tokens" in line
    assert "on the rung plain" in line
