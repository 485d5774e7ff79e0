"""llama.cpp's own server beside our files: it splits text as our tokenizer does, and runs what we export as GGUF."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from tokenizers import Tokenizer

from agent.models.base import open_base
from agent.models.cache import ModelCache
from agent.models.ready import ready_policy_folder, write_hub
from agent.models.safetensors_file import Floats
from agent.models.to_gguf import export_gguf
from tests.agent.models.case import real_gguf, served_log_probabilities
from tests.agent.models.test_tokenizer import texts
from tests.processes import running

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
PROMPT = "<|im_start|>user\nWho directed Winter Harbour?<|im_end|>\n<|im_start|>assistant\nIt was directed by Paula"


@contextmanager
def llama_cpp(config: pytest.Config, file: Path) -> Generator[httpx2.Client]:
    """A client of its server with one file."""
    python = config.getoption("--clients") or pytest.skip("llama.cpp is not installed here; run: make clients")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running([str(python), str(HERE / "python" / "serve_llama_cpp.py"), str(port), str(file)]) as program:
        program.wait_for(lambda: "ready" in program.said)
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
            yield client


def next_tokens(client: httpx2.Client, ids: list[int]) -> dict[int, float]:
    """The most probable next tokens, with their log-probabilities."""
    request = {"prompt": ids, "n_predict": 1, "n_probs": 20, "temperature": 0.0, "cache_prompt": False}
    said: Any = client.post("/completion", json=request).json()["completion_probabilities"][0]
    return {each["id"]: each["logprob"] for each in said["top_logprobs"]}


def test_thousands_of_texts_have_the_ids_that_llama_cpp_gives(pytestconfig: pytest.Config):
    fields = json.loads(open_base(real_gguf()).tokenizer.json)
    plain = Tokenizer.from_str(json.dumps(fields | {"added_tokens": []}))  # marks in a text are text, on both sides
    with llama_cpp(pytestconfig, real_gguf()) as client:
        for text in texts(2_000):
            said = client.post("/tokenize", json={"content": text, "parse_special": False}).json()["tokens"]
            assert plain.encode(text, add_special_tokens=False).ids == said, repr(text)


def prompt_ids() -> list[int]:
    return Tokenizer.from_str(open_base(real_gguf()).tokenizer.json).encode(PROMPT).ids


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in the hub's form."""
    base, folder = open_base(real_gguf()), tmp_path_factory.mktemp("hub")
    write_hub(base, base.weights, folder, stored="float32")
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Floats:
    """Log-probabilities of the token behind the prompt, by the embedded engine."""
    cache = ModelCache(tmp_path_factory.mktemp("models"))
    exact = ready_policy_folder(base=str(real_gguf()), quantization="float32", cache=cache)
    return served_log_probabilities(exact, prompt_ids(), compute_type="float32")[-1]


@pytest.mark.parametrize(("packing", "most"), [("f16", 0.05), ("bf16", 0.1), ("q8_0", 0.3)])
def test_what_we_export_runs_in_llama_cpp(
    tmp_path: Path, pytestconfig: pytest.Config, hub: Path, expected: Floats, packing: Any, most: float
):
    export_gguf(hub, tmp_path / "m.gguf", packing=packing)
    ids = prompt_ids()
    with llama_cpp(pytestconfig, tmp_path / "m.gguf") as client:
        found = next_tokens(client, ids)
        chat = {"messages": [{"role": "user", "content": "Hello"}]}
        said = client.post("/apply-template", json=chat).json()["prompt"]
    assert next(iter(found)) == expected.argmax()
    assert np.mean([abs(found[each] - expected[each]) for each in found]) < most
    assert said.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
