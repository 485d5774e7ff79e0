"""vLLM's own server as a teacher. It runs in vLLM's own environment."""

import asyncio
import importlib.util
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.build.agent import VLLM_ENVIRONMENT
from agent.errors import SetupError
from agent.parallel.processes import SAFE_PATH
from tests.processes import running
from tests.train.rl.small import HUB, recipe

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def test_vllms_server_scores_a_rows_tokens_as_the_same_model_does_here(tmp_path: Path) -> None:
    from train.rl.batch import WeightedRow
    from train.rl.teacher import open_teacher

    async def scored(**teacher: str) -> Any:
        opened = await open_teacher(recipe(teacher=teacher))
        try:
            return await opened.logprobs(rows)
        finally:
            await opened.aclose()

    ids = (5, 9, 300, 7, 44, 45, 46)
    rows = [WeightedRow(ids[:size], (0.0, *(1.0,) * (size - 1)), (0.0,) * size, (0.0,) * size, 0) for size in (4, 7)]
    port = free_port()
    words = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        HUB,
        "--served-model-name",
        "teacher",
        "--port",
        port,
        "--dtype",
        "float32",
    ]
    words += ["--enforce-eager", "--max-model-len", 1024, "--kv-cache-memory-bytes", 1 << 28, "--host", "127.0.0.1"]
    environment = (
        {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
        | VLLM_ENVIRONMENT
        | SAFE_PATH
    )
    with running([str(word) for word in words], env=environment, cwd=tmp_path, end=signal.SIGTERM) as server:
        server.wait_for(lambda: "Application startup complete" in server.said)
        url = f"http://127.0.0.1:{port}/v1"
        there = asyncio.run(scored(model="teacher", base_url=url))
        with pytest.raises(SetupError, match="does not know the model 'other'"):
            asyncio.run(scored(model="other", base_url=url))
    for one, other in zip(there, asyncio.run(scored(model=str(HUB))), strict=True):
        assert one == pytest.approx(other, abs=1e-3)
