"""A checkpoint in the hub's form: what is missing is reported in a sentence, and what ends a turn is found."""

import json
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from agent.errors import CheckpointError
from agent.policies.hub_form import open_hub_form
from tests.shipped import HUB


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HUB, tmp_path / "hub", ignore=shutil.ignore_patterns("*.safetensors")))


def change(path: Path, **fields: Any) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(found | fields), encoding="utf-8")


def test_the_shipped_checkpoint_can_be_read_without_its_weights():
    form = open_hub_form(str(HUB))
    assert (form.name, form.context_tokens, form.layer_types) == ("cairn-tiny-v2", 3072, ("full_attention",))
    assert form.codec.tokens[form.codec.eos] == "<eos>"
    assert form.codec.ends == {form.codec.eos}


def test_every_end_of_a_turn_that_the_folder_names_counts_and_has_no_text(folder: Path):
    change(folder / "generation_config.json", eos_token_id=[1, 300])
    codec = open_hub_form(str(folder)).codec
    assert codec.ends == {1, 300}
    assert (codec.eos, codec.decode([300])) == (1, "")


def test_the_end_may_stand_in_the_config_alone(folder: Path):
    (folder / "generation_config.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert open_hub_form(str(folder)).codec.ends == {1}


def test_a_folder_without_any_end_is_reported(folder: Path):
    for name in ("generation_config.json", "tokenizer_config.json", "cairn.json"):
        (folder / name).unlink()
    change(folder / "config.json", eos_token_id=None)
    with pytest.raises(CheckpointError, match="names no eos_token"):
        open_hub_form(str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        open_hub_form(str(folder))


def test_a_config_without_a_length_is_reported(folder: Path):
    change(folder / "config.json", max_position_embeddings=None)
    with pytest.raises(CheckpointError, match="max_position_embeddings"):
        open_hub_form(str(folder))


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "a/b/c"])
def test_what_can_only_be_a_folder_is_not_requested_from_the_hub(model: str):
    with pytest.raises(CheckpointError, match="there is no folder"):
        open_hub_form(model)


def test_an_id_that_only_the_model_has_has_no_text():
    codec = open_hub_form(str(HUB)).codec
    stream = codec.stream()
    assert codec.decode([len(codec.tokens) + 5]) == stream.feed(len(codec.tokens) + 5) == ""


def test_text_and_ids_agree_where_the_tokenizer_composes_characters(folder: Path):
    change(folder / "tokenizer.json", normalizer={"type": "NFC"})
    codec = open_hub_form(str(folder)).codec
    apart = unicodedata.normalize("NFD", "Müßig é")
    assert codec.decode(codec.encode(apart)) == codec.normal(apart) == "Müßig é"


@pytest.mark.train
def test_a_model_that_cannot_be_fetched_is_reported_with_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"cannot be fetched from the hub: .*; check the name"):
        open_hub_form("no-one/nothing")


@pytest.mark.parametrize("weights", [True, False])
def test_weights_of_a_named_model_are_fetched_only_where_they_are_wanted(
    weights: bool, monkeypatch: pytest.MonkeyPatch
):
    wanted: list[list[str]] = []

    def download(name: str, *, allow_patterns: list[str]) -> str:
        wanted.append(allow_patterns)
        return str(HUB)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert open_hub_form("org/model", weights=weights).name == "cairn-tiny-v2"
    assert ("*.safetensors" in wanted[0]) is weights
    assert "*.json" in wanted[0]
