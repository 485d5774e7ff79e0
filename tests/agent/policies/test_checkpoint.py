"""A checkpoint folder that is not whole is reported in a sentence, before any of its weights are loaded."""

import json
import shutil
from pathlib import Path

import pytest

from agent.errors import CheckpointError
from agent.policies.checkpoint import MANIFEST, NEEDED, open_checkpoint, write_manifest
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.model_folder import About
from tests.agent.policies.engine import ENGINE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ENGINE, tmp_path / "engine"))


def sentence(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        EmbeddedPolicy.load(folder)
    return str(caught.value)


def renew(folder: Path) -> None:
    """Make the hashes right again, so that only the next check can see what is wrong."""
    write_manifest(folder, About(name="random", protocols=("cairn",), context_tokens=512, eos="<eos>"))


def test_a_whole_folder_says_what_it_is():
    checkpoint = open_checkpoint(ENGINE)
    assert checkpoint.manifest.name == "random"
    assert checkpoint.manifest.protocols == ("cairn", "multisearch")
    assert checkpoint.manifest.context_tokens == 512


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path):
    assert "there is no checkpoint folder" in sentence(tmp_path / "nowhere")


def test_a_folder_that_is_something_else_is_reported(tmp_path: Path):
    assert "cairn checkpoint export" in sentence(tmp_path)


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_file_is_named(folder: Path, name: str):
    (folder / name).unlink()
    assert name in sentence(folder)


@pytest.mark.parametrize("name", NEEDED)
def test_a_truncated_file_is_named_with_the_fix(folder: Path, name: str):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    said = sentence(folder)
    assert name in said
    assert "copy the folder again" in said


@pytest.mark.parametrize("name", NEEDED)
def test_one_changed_byte_is_found(folder: Path, name: str):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    assert "is damaged" in sentence(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', "\xff"])
def test_a_manifest_that_cannot_be_read_is_reported(folder: Path, text: str):
    (folder / MANIFEST).write_bytes(text.encode("latin-1"))
    assert MANIFEST in sentence(folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "sub/file"])
def test_a_manifest_never_reaches_out_of_its_folder(folder: Path, name: str):
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    manifest["files"][name] = "0" * 64
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    assert "has no valid entry for" in sentence(folder)


def test_a_file_without_a_hash_is_not_trusted(folder: Path):
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del manifest["files"]["model.bin"]
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    assert "model.bin" in sentence(folder)


def test_a_tokenizer_of_another_model_is_refused(folder: Path):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for token in tokenizer["added_tokens"]:
        token["content"] = token["content"].replace("answer", "reply")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    renew(folder)
    assert "different models" in sentence(folder)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"decoder": None}, "byte-level"),
        ({"model": {"type": "Nonsense"}}, "cannot be read"),
        ({"added_tokens": []}, "no token <eos>"),
    ],
)
def test_a_tokenizer_that_cannot_be_used_is_reported(folder: Path, change: dict[str, object], why: str):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")) | change
    if not tokenizer["added_tokens"]:
        del tokenizer["model"]["vocab"]["<eos>"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    renew(folder)
    assert why in sentence(folder)


def test_weights_that_are_none_are_reported(folder: Path):
    (folder / "model.bin").write_bytes(b"not a model" * 100)
    renew(folder)
    assert "CTranslate2 cannot load" in sentence(folder)
