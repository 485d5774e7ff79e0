"""The exported form says what the trained model says, token by token."""

import asyncio
import gc
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agent.build.agent import build_agent, build_protocol
from agent.cli import run as cairn
from agent.errors import CheckpointError
from agent.policies.base import Sampling
from agent.policies.checkpoint import MANIFEST, NEEDED, open_checkpoint
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import load_protocol, protocol_named
from agent.settings import load_settings
from agent.trace import Segment
from tests.agent.policies.engine import ENGINE, run, turn

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fixtures.make_engine import make_hub

    return make_hub(tmp_path_factory.mktemp("run") / "hub", seed=1)


def test_an_export_is_a_checkpoint_with_the_hash_of_each_file(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    made = export_checkpoint(hub, tmp_path / "ct2", name="small", protocols=["multisearch"])
    assert made.manifest.name == "small"
    assert made.manifest.protocols == ("multisearch",)
    assert made.manifest.context_tokens == 512
    assert made.manifest.eos == "<eos>"
    assert sorted(made.manifest.files) == sorted(NEEDED)
    assert open_checkpoint(tmp_path / "ct2").manifest == made.manifest
    assert (tmp_path / "ct2" / "tokenizer.json").read_bytes() == (hub / "tokenizer.json").read_bytes()


def test_a_conversion_looks_through_the_whole_heap_for_no_layer(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    full: list[str] = []
    gc.disable()  # Python's own
    gc.callbacks.append(lambda phase, said: full.append(phase) if said["generation"] == 2 else None)
    try:
        export_checkpoint(hub, tmp_path)
    finally:
        gc.callbacks.pop()
        gc.enable()
    assert not full
    assert import_module("ctranslate2.converters.transformers").gc is gc, "the library is left as it was"


def test_without_a_name_the_folder_gives_it(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    assert export_checkpoint(hub, tmp_path).manifest.name == hub.parent.name


def test_in_float32_ids_and_log_probabilities_are_the_trainers(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    export_checkpoint(hub, tmp_path, "float32")

    async def scene() -> list[Segment]:
        policy = EmbeddedPolicy.load(tmp_path, workers=1, compute_type="float32")
        context = policy.open(protocol_named("cairn"), "Who wrote Dune?")
        await turn(context, sampling=Sampling(temperature=1.0, seed=3), max_tokens=30)
        context.append("\n<information>\n[1] x\n</information>\n", by="environment")
        await turn(context, max_tokens=30)
        await policy.aclose()
        return context.segments

    segments = run(scene())
    ids = [number for segment in segments for number in segment.ids or ()]
    expected = log_probabilities(hub, ids)
    at = 0
    for segment in segments:
        length = len(segment.ids or ())
        if segment.by == "policy":
            assert segment.logprobs == pytest.approx(expected[at - 1 : at - 1 + length], abs=1e-3)
        at += length


def log_probabilities(hub: Path, ids: list[int]) -> list[float]:
    """Of each id but the first, after those before it."""
    transformers: Any = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(hub)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    with pytest.raises(CheckpointError, match=r"config\.json cannot be read"):
        export_checkpoint(tmp_path, tmp_path / "ct2")


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_checkpoint_without_one_of_its_files_is_refused(hub: Path, tmp_path: Path, name: str):
    from train.checkpoints.export import export_checkpoint

    broken = Path(shutil.copytree(hub, tmp_path / "hub"))
    (broken / name).unlink()
    old = Path(shutil.copytree(ENGINE, tmp_path / "ct2"))
    with pytest.raises(CheckpointError):
        export_checkpoint(broken, old)


def test_an_architecture_that_cannot_be_converted_is_refused(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    strange = Path(shutil.copytree(hub, tmp_path / "hub"))
    config = json.loads((strange / "config.json").read_text(encoding="utf-8"))
    config |= {"architectures": ["UnknownForCausalLM"], "model_type": "unknown"}
    (strange / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be converted"):
        export_checkpoint(strange, tmp_path / "ct2")
    assert not (tmp_path / "ct2" / MANIFEST).exists()


def test_the_command_exports_and_says_where(hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cairn(["checkpoint", "export", str(hub), "--out", str(tmp_path / "ct2"), "--name", "tiny"]) == 0
    assert "exported" in capsys.readouterr().out
    assert open_checkpoint(tmp_path / "ct2").manifest.name == "tiny"
    assert cairn(["checkpoint", "export", str(tmp_path), "--out", str(tmp_path / "other")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_the_hubs_form_says_of_itself_what_its_export_and_its_server_need(hub: Path, tmp_path: Path):
    from train.checkpoints.export import describe, export_checkpoint

    own = Path(shutil.copytree(hub, tmp_path / "model"))
    says = describe(own, name="small", protocols=["kg", "dag"])
    assert (says.context_tokens, says.eos) == (512, "<eos>")
    settings = load_settings(model=str(own))
    assert (settings.policy, settings.protocol, settings.protocols) == ("transformers", "kg", ("kg", "dag"))
    agent = build_agent(settings)
    assert (agent.policy.name, agent.policy.context_tokens, agent.protocol.name) == ("small", 512, "kg")
    asyncio.run(agent.aclose())
    manifest = export_checkpoint(own, own / "ct2").manifest
    assert (manifest.name, manifest.protocols) == ("small", ("kg", "dag"))
    assert load_settings(model=str(own)).policy == "embedded"
    assert describe(own, protocols=["dag"]).name == "small"


def test_an_export_goes_on_showing_as_many_passages_as_training_did(hub: Path, tmp_path: Path):
    from train.checkpoints.export import describe, export_checkpoint

    own = Path(shutil.copytree(hub, tmp_path / "model"))
    describe(own, name="small", protocols=["kg"], passages={"kg": 4})
    export_checkpoint(own, own / "ct2")
    agent = build_agent(load_settings(model=str(own)))
    assert (agent.protocol.name, agent.protocol.passages) == ("kg", 4)
    asyncio.run(agent.aclose())


def test_an_export_takes_the_file_of_a_protocol_of_its_own_along(hub: Path, tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    own = Path(shutil.copytree(hub, tmp_path / "model"))
    (own / "mine.toml").write_text("name = 'mine'", encoding="utf-8")
    export_checkpoint(own, tmp_path / "ct2", protocols=["mine"])
    assert load_settings(checkpoint=tmp_path / "ct2").protocol == str(tmp_path / "ct2" / "mine.toml")


def test_a_protocol_of_ones_own_goes_with_the_checkpoint_and_its_folder_alone_serves_it(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from train.checkpoints.export import as_toml, describe, export_checkpoint

    own, given = Path(shutil.copytree(hub, tmp_path / "model")), tmp_path / "given.toml"
    given.write_text(as_toml(protocol_named("evidence").model_copy(update={"name": "mine"})), encoding="utf-8")
    wanted = load_protocol(given)
    assert describe(own, protocols=[str(given), "dag"]).protocols == ("mine", "dag")
    assert export_checkpoint(own, own / "ct2").manifest.protocols == ("mine", "dag")
    given.unlink()
    monkeypatch.chdir(tmp_path)
    for folder in (own, own / "ct2"):
        settings = load_settings(model=str(folder))
        assert build_protocol(settings) == wanted
    other = export_checkpoint(own, tmp_path / "other", protocols=[str(own / "mine.toml")])
    assert other.manifest.protocols == ("mine",)
    assert load_protocol(tmp_path / "other" / "mine.toml") == wanted
