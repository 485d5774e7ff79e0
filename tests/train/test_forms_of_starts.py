"""`cairn checkpoint` card, mean, export and push, of models that others made, and of adapters alone."""

import asyncio
import importlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from agent.cli import run as cairn  # noqa: E402 - only where torch is
from agent.errors import CheckpointError  # noqa: E402
from agent.policies.base import Sampling  # noqa: E402
from agent.policies.checkpoint import MANIFEST  # noqa: E402
from agent.policies.embedded import EmbeddedPolicy  # noqa: E402
from agent.policies.transformers import TransformersPolicy  # noqa: E402
from agent.protocols import protocol_named  # noqa: E402
from tests.agent.policies.engine import turn  # noqa: E402
from tests.train.hub import Hub, running  # noqa: E402
from tests.train.starts import recipe, rows_file, start, written  # noqa: E402
from train.checkpoints.card import licence_of  # noqa: E402
from train.checkpoints.export import export_checkpoint  # noqa: E402
from train.checkpoints.push import files_of  # noqa: E402
from train.common.recipe import SftRecipe  # noqa: E402
from train.sft.run import SftRun  # noqa: E402

safetensors: Any = importlib.import_module("safetensors.torch")
pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),  # the hub library's, of large files
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("starts")
    rows_file(made)
    start("llama", made / "llama", initializer_range=0.3)
    return made


def made_by(folder: Path, seed: int) -> SftRecipe:
    said = recipe(folder / "llama", folder / "rows.jsonl", adapter=8, optimizer={"tokens": 3000})
    return said.model_copy(update={"seed": seed})


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Path]:
    """Two runs with an adapter from one start."""
    for seed in (1, 2):
        assert SftRun(made_by(folder, seed), folder / f"run{seed}").run(lambda _: None)
    return [folder / "run1", folder / "run2"]


def weights(hub: Path) -> dict[str, Any]:
    return dict(safetensors.load_file(hub / "model.safetensors"))


def test_a_card_says_from_which_model_with_which_adapter_and_under_which_licence(
    folder: Path, runs: list[Path], tmp_path: Path
) -> None:
    (folder / "llama" / "README.md").write_text("---\nlicense: mit\n---\n# Llama\n", encoding="utf-8")
    file = written(made_by(folder, 1), tmp_path)
    assert cairn(["checkpoint", "card", str(runs[0]), "--recipe", str(file), "--out", str(runs[0] / "hub")]) == 0
    said = (runs[0] / "hub" / "README.md").read_text(encoding="utf-8")
    assert f"from a pretrained model, `{folder / 'llama'}`, with an adapter of rank 8" in said
    assert "Protocols: multisearch. Licence: mit." in said
    about = json.loads((runs[0] / "hub" / "cairn.json").read_text(encoding="utf-8"))
    assert (about["protocols"], about["eos"]) == (["multisearch"], "<|im_end|>")
    assert licence_of(runs[0] / "adapter") == "Licence: mit", "an adapter's is that of its model"
    assert licence_of("smollm2-135m-instruct") == "Licence: Apache-2.0"
    assert licence_of("meta/llama", cached=folder / "llama") == "Licence: mit"
    assert licence_of("meta/llama", cached=runs[0]) == "Licence: that of `meta/llama`", "no folder of a cache is named"


def test_the_mean_of_adapters_is_that_of_the_models_they_make(runs: list[Path], tmp_path: Path) -> None:
    hubs, adapters = ([str(run / form) for run in runs] for form in ("hub", "adapter"))
    assert cairn(["checkpoint", "mean", *hubs, "--out", str(tmp_path / "hubs")]) == 0
    assert cairn(["checkpoint", "mean", *adapters, "--out", str(tmp_path / "adapters")]) == 0
    of_hubs, of_adapters = weights(tmp_path / "hubs"), weights(tmp_path / "adapters")
    assert of_hubs.keys() == of_adapters.keys()
    one, two = weights(runs[0] / "hub"), weights(runs[1] / "hub")
    name = "model.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(one[name], two[name])
    for key, weight in of_hubs.items():
        torch.testing.assert_close(weight, (one[key] + two[key]) / 2)
        torch.testing.assert_close(weight, of_adapters[key])
    for form in ("hubs", "adapters"):
        assert (tmp_path / form / "chat_template.jinja").is_file()
        assert (tmp_path / form / "cairn.json").read_bytes() == (runs[1] / "hub" / "cairn.json").read_bytes()


def said_by(policy: Any) -> list[int]:
    async def scene() -> list[int]:
        context = policy.open(protocol_named("multisearch"), "Who taught whom?")
        await turn(context, sampling=Sampling(temperature=1.0, seed=3), max_tokens=20)
        await policy.aclose()
        return [number for segment in context.segments for number in segment.ids or ()]

    return asyncio.run(scene())


def test_a_model_and_its_adapter_are_exported_to_the_same_engine(runs: list[Path], tmp_path: Path) -> None:
    for form in ("hub", "adapter"):
        command = ["checkpoint", "export", str(runs[0] / form), "--out", str(tmp_path / form)]
        assert cairn([*command, "--quantization", "float32"]) == 0
    hub, adapter = (
        EmbeddedPolicy.load(tmp_path / form, workers=1, compute_type="float32") for form in ("hub", "adapter")
    )
    assert hub.name == adapter.name == "mine"
    ids = said_by(hub)
    assert ids == said_by(adapter)
    loaded = TransformersPolicy.load(str(runs[0] / "hub"))
    prompt = loaded.open(protocol_named("multisearch"), "Who taught whom?").segments[0].ids
    assert prompt is not None
    assert ids[: len(prompt)] == list(prompt)
    assert len(ids) > len(prompt)
    asyncio.run(loaded.aclose())


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "gemma3"])
def test_other_architectures_are_exported_too(kind: str, tmp_path: Path) -> None:
    begin = start(kind, tmp_path / "hub", initializer_range=0.3)
    made = export_checkpoint(begin, tmp_path / "ct2", protocols=["cairn"])
    assert made.manifest.eos == "<|im_end|>"
    assert len(said_by(EmbeddedPolicy.load(tmp_path / "ct2", workers=1))) > 0


def test_an_engine_that_computes_something_else_is_no_export(tmp_path: Path) -> None:
    begin = start("gemma2", tmp_path / "hub", initializer_range=0.8)  # its caps count, which the engine does not know
    with pytest.raises(CheckpointError, match=r"does not compute what this model computes.*--policy transformers"):
        export_checkpoint(begin, tmp_path / "ct2", "float32", protocols=["cairn"])
    assert not (tmp_path / "ct2" / MANIFEST).exists()
    wide = start("llama", tmp_path / "wide", head_dim=64)  # other than its width by its heads
    with pytest.raises(CheckpointError, match="does not compute what this model computes"):
        export_checkpoint(wide, tmp_path / "ct2", protocols=["cairn"])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Hub]:
    library: Any = importlib.import_module("huggingface_hub")
    constants: Any = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setenv("HF_TOKEN", "hf_ada")
    known = {"HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True, "HF_TOKEN_PATH": str(tmp_path / "no token")}
    for name, value in known.items():
        monkeypatch.setattr(constants, name, value)
    with running() as there:
        try:
            yield there
        finally:
            library.close_session()


def push(folder: Path, hub: Hub, name: str) -> int:
    return cairn(["checkpoint", "push", str(folder), "--to", f"ada/{name}", "--hub", hub.url])


def test_a_run_is_pushed_with_its_tokenizer_chat_template_and_licence(
    folder: Path, runs: list[Path], hub: Hub, tmp_path: Path
) -> None:
    file = written(made_by(folder, 1), tmp_path)
    assert cairn(["checkpoint", "card", str(runs[0]), "--recipe", str(file), "--out", str(runs[0] / "hub")]) == 0
    assert push(runs[0], hub, "mine") == 0
    there = hub.repositories["ada/mine"].files
    assert there["chat_template.jinja"] == (folder / "llama" / "chat_template.jinja").read_bytes()
    assert {"model.safetensors", "tokenizer.json", "cairn.json", "LICENSE.txt", "README.md"} <= there.keys()


def test_an_adapter_is_pushed_alone_where_it_names_its_model_as_others_know_it(
    folder: Path, runs: list[Path], hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(made_by(folder, 1), tmp_path)
    assert cairn(["checkpoint", "card", str(runs[1]), "--recipe", str(file), "--out", str(runs[1])]) == 0
    adapter = runs[1] / "adapter"
    assert push(adapter, hub, "adapter") == 1
    assert "which no one else has: write the model's name on the hub" in capsys.readouterr().err
    config = adapter / "adapter_config.json"
    said = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps(said | {"base_model_name_or_path": "meta/llama"}), encoding="utf-8")
    try:
        assert push(adapter, hub, "adapter") == 0
        there = hub.repositories["ada/adapter"].files
        assert there.keys() == {"adapter_config.json", "adapter_model.safetensors", "cairn.json", "README.md"}
        card = there["README.md"].decode()
        assert "library_name: peft\nbase_model: meta/llama\n" in card
        assert "# mine" in card
    finally:
        config.write_text(json.dumps(said), encoding="utf-8")
    (runs[1] / "README.md").unlink()
    with pytest.raises(CheckpointError, match=r"which no one else has"):
        files_of(adapter)
