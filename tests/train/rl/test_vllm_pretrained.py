"""Runs of `cairn train rl` that train an adapter of SmolLM2-135M with rollouts of vLLM, on a CPU."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

pytest.importorskip("trl")

from agent.build.shipped import SMALL  # noqa: E402 - only where vLLM is
from agent.models.cache import ModelCache  # noqa: E402
from agent.models.ready import hub_folder  # noqa: E402
from tests.agent.models.case import real_gguf  # noqa: E402
from tests.agent.policies.vllm_case import free_port  # noqa: E402
from tests.train.rl.vllm_runs import adapter_recipe, at, check_adapter, serving  # noqa: E402
from train.commands import rl  # noqa: E402


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M, as small-v1 has it."""
    cache = ModelCache(tmp_path_factory.mktemp("models"))
    return Path(hub_folder(str(real_gguf()), adapter=SMALL, cache=cache))


@pytest.mark.long
def test_an_adapter_of_a_pretrained_model_is_trained_with_vllm_in_one_process(pretrained: Path, tmp_path: Path) -> None:
    path = adapter_recipe(tmp_path / "recipe.toml", pretrained, protocol="cairn", lr=3e-3)
    rl(path, tmp_path / "run", threads=2)
    check_adapter(pretrained, tmp_path / "run")


def test_an_adapter_of_a_pretrained_model_is_trained_with_vllms_server(pretrained: Path, tmp_path: Path) -> None:
    with serving(pretrained, free_port()) as server:
        server.ready()
        path = adapter_recipe(tmp_path / "recipe.toml", pretrained, protocol="cairn", lr=3e-3, engine=at(server))
        rl(path, tmp_path / "run", threads=2)
    check_adapter(pretrained, tmp_path / "run")
