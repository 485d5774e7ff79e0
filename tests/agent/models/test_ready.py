"""Models ready for use: what is missing is fetched and made once, and the second call finds it."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.errors import CheckpointError, SetupError
from agent.models.base import open_base
from agent.models.cache import ModelCache
from agent.models.ready import hub_folder, ready_policy_folder
from agent.models.safetensors_file import Floats
from agent.models.wheel import DEFAULT
from agent.policies.checkpoint import open_checkpoint
from agent.policies.model_folder import ABOUT, About, read_about, write_about
from tests.agent.models.case import hub_model, real_gguf, served_log_probabilities, write_small
from tests.agent.models.test_adapter import pair, write_adapter


@pytest.fixture
def cache(tmp_path: Path) -> ModelCache:
    return ModelCache(tmp_path / "models")


@pytest.fixture
def small(tmp_path: Path) -> str:
    write_small(tmp_path / "small.gguf")
    return str(tmp_path / "small.gguf")


def weights_in(folder: Path) -> bytes:
    return (folder / "model.bin").read_bytes()


def test_a_model_alone_is_made_once_and_said_to_be_what_it_is(small: str, cache: ModelCache):
    stages: list[str] = []

    def receive(stage: str, done: int, total: int) -> None:
        stages.append(stage)

    folder = ready_policy_folder(base=small, cache=cache, progress=receive)
    made = open_checkpoint(folder).manifest
    assert (made.name, made.protocols, made.context_tokens, made.eos) == (
        "small",
        ("cairn", "multisearch"),
        256,
        "<|im_end|>",
    )
    assert set(stages) == {"converting"}
    stages.clear()
    assert ready_policy_folder(base=small, cache=cache, progress=receive) == folder
    assert stages == []
    (entry,) = cache.all()
    assert (entry.kind, entry.record.source, entry.record.stored, entry.record.adapter) == (
        "served",
        "small",
        "int8",
        "",
    )


def test_an_adapter_is_merged_and_says_what_the_policy_is(tmp_path: Path, small: str, cache: ModelCache):
    adapter = write_adapter(tmp_path / "adapter", pair())
    plain = ready_policy_folder(base=small, cache=cache)
    unnamed = ready_policy_folder(adapter, base=small, cache=cache)
    assert open_checkpoint(unnamed).manifest.name == "small-adapter"
    assert weights_in(unnamed) != weights_in(plain)
    write_about(
        adapter,
        About(
            name="cairn-small",
            protocols=("mine", "evidence"),
            context_tokens=9_999,
            eos="<|im_end|>",
            passages={"mine": 3},
        ),
    )
    (adapter / "mine.toml").write_text("own = true\n", encoding="utf-8")
    named = ready_policy_folder(adapter, base=small, cache=cache)
    made = open_checkpoint(named).manifest
    assert (made.name, made.protocols, made.passages) == ("cairn-small", ("mine", "evidence"), {"mine": 3})
    assert made.context_tokens == 256  # the model has no more
    assert (named / "mine.toml").read_text(encoding="utf-8") == "own = true\n"
    assert weights_in(named) == weights_in(unnamed)


def test_whatever_changes_the_result_makes_another_folder(tmp_path: Path, small: str, cache: ModelCache):
    adapter = write_adapter(tmp_path / "adapter", pair())
    folders = [ready_policy_folder(adapter, base=small, cache=cache)]
    folders.append(ready_policy_folder(adapter, base=small, quantization="float32", cache=cache))
    write_adapter(tmp_path / "adapter", pair(), lora_alpha=9)
    folders.append(ready_policy_folder(adapter, base=small, cache=cache))
    write_about(adapter, About(name="a", protocols=("cairn",), context_tokens=64, eos="<|im_end|>"))
    folders.append(ready_policy_folder(adapter, base=small, cache=cache))
    write_about(adapter, About(name="a", protocols=("cairn",), context_tokens=65, eos="<|im_end|>"))
    folders.append(ready_policy_folder(adapter, base=small, cache=cache))
    write_small(Path(small), "qwen3", kv_heads=4)
    folders.append(ready_policy_folder(base=small, cache=cache))
    assert len(set(folders)) == len(folders)


def test_a_damaged_folder_is_made_again(small: str, cache: ModelCache):
    folder = ready_policy_folder(base=small, cache=cache)
    whole = weights_in(folder)
    (folder / "model.bin").write_bytes(whole[:-100])
    assert ready_policy_folder(base=small, cache=cache) == folder
    assert weights_in(folder) == whole


def test_what_does_not_fit_is_a_sentence_and_leaves_nothing(tmp_path: Path, small: str, cache: ModelCache):
    adapter = write_adapter(tmp_path / "adapter", pair(inside=128))
    with pytest.raises(CheckpointError, match="name the model that it was trained for"):
        ready_policy_folder(adapter, base=small, cache=cache)
    adapter = write_adapter(tmp_path / "adapter", pair())
    write_about(adapter, About(name="a", protocols=("cairn",), context_tokens=64, eos="<stop>"))
    with pytest.raises(CheckpointError, match="it has no token <stop>"):
        ready_policy_folder(adapter, base=small, cache=cache)
    assert cache.all() == []
    with pytest.raises(SetupError, match=f"{DEFAULT} is not on this machine; run: cairn model fetch"):
        ready_policy_folder(fetching=False, cache=cache)


def test_training_begins_from_the_hub_s_form(small: str, cache: ModelCache):
    folder = hub_folder(small, cache=cache)
    assert hub_folder(small, cache=cache) == folder
    assert hub_folder(str(folder), cache=cache) == folder  # it is in this form already
    base = open_base(folder)
    assert base.tokenizer.end == "<|im_end|>"
    exact = hub_folder(small, stored="float32", cache=cache)
    assert exact != folder
    assert "small-bfloat16-" in folder.name  # which an adapter then names as its model
    first = open_base(Path(small)).weights
    assert all(np.array_equal(first.read(name), open_base(exact).weights.read(name)) for name in first.shape.tensors())


def test_the_hub_s_form_of_an_adapter_is_the_merged_model_that_a_folder_is_enough_to_serve(
    tmp_path: Path, small: str, cache: ModelCache
):
    adapter = write_adapter(tmp_path / "adapter", pair())
    write_about(adapter, About(name="mine", protocols=("cairn",), context_tokens=64, eos="<|im_end|>"))
    folder = hub_folder(small, adapter=adapter, stored="float32", cache=cache)
    assert read_about(folder).protocols == ("cairn",)
    assert folder.name.startswith("mine-float32-")
    plain = hub_folder(small, stored="float32", cache=cache)
    assert {path.name for path in folder.iterdir()} == {path.name for path in plain.iterdir()} | {ABOUT}
    assert weights_in(ready_policy_folder(base=str(folder), cache=cache)) == weights_in(
        ready_policy_folder(adapter, base=small, cache=cache)
    )


def test_an_adapter_of_a_model_in_the_hub_s_form_is_merged_too(tmp_path: Path, small: str, cache: ModelCache):
    adapter = write_adapter(tmp_path / "adapter", pair())
    exact = hub_folder(small, stored="float32", cache=cache)
    of_hub = ready_policy_folder(adapter, base=str(exact), cache=cache)
    of_gguf = ready_policy_folder(adapter, base=small, cache=cache)
    assert weights_in(of_hub) == weights_in(of_gguf)


@pytest.mark.train
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's own
def test_a_trained_adapter_serves_the_same_weights_as_the_merged_model(tmp_path: Path, small: str, cache: ModelCache):
    peft: Any = importlib.import_module("peft")
    from train.checkpoints.export import export_checkpoint

    exact = hub_folder(small, stored="float32", cache=cache)
    settings = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    model = peft.get_peft_model(hub_model(exact), settings)
    model.save_pretrained(tmp_path / "adapter")
    model.merge_and_unload().save_pretrained(tmp_path / "merged")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "merged" / name).write_bytes((exact / name).read_bytes())
    ours = ready_policy_folder(tmp_path / "adapter", base=small, quantization="float32", cache=cache)
    export_checkpoint(tmp_path / "merged", tmp_path / "theirs", "float32")
    ids = list(range(3, 120))
    mine, theirs = (
        served_log_probabilities(folder, ids, compute_type="float32") for folder in (ours, tmp_path / "theirs")
    )
    assert np.abs(mine - theirs).max() < 1e-3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_real_model_with_an_adapter_is_ready_in_a_minute_and_bounded_memory(tmp_path: Path, cache: ModelCache):
    from lab.benchmarks.conversion import measure

    tensors: dict[str, Floats] = {}
    for layer in range(30):
        tensors |= pair(f"layers.{layer}.mlp.down_proj", rank=16, inside=1536, out=576)
    adapter = write_adapter(tmp_path / "adapter", tensors, base_model_name_or_path=DEFAULT)
    figures = measure(real_gguf(), adapter=adapter)
    assert figures.seconds < 60
    assert figures.peak_mb < 560  # the model in float32 alone is 538
    assert figures.served_mb == pytest.approx(138, abs=3)


def test_the_key_is_of_a_form_that_can_change(small: str, cache: ModelCache, monkeypatch: pytest.MonkeyPatch):
    first = ready_policy_folder(base=small, cache=cache)
    monkeypatch.setattr("agent.models.ready._FORM", 999)
    assert ready_policy_folder(base=small, cache=cache) != first
    assert json.loads((first / "made.json").read_text(encoding="utf-8"))["name"] == "small"
