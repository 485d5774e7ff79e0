"""What a folder that is named as a model holds, and what it says of itself."""

import json
import shutil
from pathlib import Path

import pytest

from agent.errors import CheckpointError
from agent.policies.model_folder import ABOUT, look_at
from agent.protocols import protocol_names
from tests.shipped import CT2, HUB, NAME, both_forms

SAYS = {"name": "mine", "protocols": ["kg", "dag"], "context_tokens": 99, "eos": "<eos>", "more": 1}


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """The hub's form without anything beside it, its weights empty."""
    folder = Path(shutil.copytree(HUB, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors", ABOUT)))
    (folder / "model.safetensors").touch()
    return folder


def test_a_run_holds_both_forms(tmp_path: Path):
    run = both_forms(tmp_path)
    found = look_at(run)
    assert (found.hub, found.exported) == (run / "hub", run / "ct2")
    assert found.about is not None
    assert sorted(found.about.protocols) == sorted(protocol_names())
    assert not found.missing


@pytest.mark.parametrize("form", ["hub", "ct2"])
def test_a_form_alone_is_found_too_and_the_hubs_form_asks_the_exported_one_beside_it(form: str, tmp_path: Path):
    found = look_at(both_forms(tmp_path) / form)
    assert (found.hub is None, found.exported is None) == (form == "ct2", form == "hub")
    assert found.about is not None
    assert found.about.name == NAME


def test_a_pushed_checkpoint_holds_the_hubs_form_at_the_top(hub: Path):
    shutil.copytree(CT2, hub / "ct2")
    (hub / ABOUT).write_text(json.dumps(SAYS), encoding="utf-8")
    found = look_at(hub)
    assert (found.hub, found.exported) == (hub, hub / "ct2")
    assert found.about is not None
    assert found.about.name == "mine"


def test_a_folder_that_says_nothing_of_itself_is_distinguished(hub: Path):
    assert look_at(hub).about is None


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_what_the_hubs_form_lacks_is_reported_with_the_fix(hub: Path, name: str):
    (hub / name).unlink()
    missing = look_at(hub).missing
    assert missing.startswith(f"{hub} lacks {name if name.endswith('.json') else 'weights (*.safetensors)'}; ")
    assert "save_pretrained" in missing


def test_weights_that_can_run_code_are_not_taken_for_weights(hub: Path):
    (hub / "model.safetensors").rename(hub / "pytorch_model.bin")
    assert "pytorch_model files can run code" in look_at(hub).missing


def test_a_folder_without_a_model_is_refused_with_what_to_name(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"holds no model: .* name the folder of a checkpoint"):
        look_at(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', json.dumps(SAYS | {"protocols": []})])
def test_a_cairn_json_that_says_nothing_useful_is_reported(hub: Path, text: str):
    (hub / ABOUT).write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"cairn\.json cannot be read"):
        look_at(hub)
