"""`cairn model`: what it prints, and that what goes wrong is one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.models.wheel import SMOLLM2
from agent.policies.checkpoint import open_checkpoint
from tests.agent.models.case import write_small
from tests.agent.models.test_adapter import pair, write_adapter


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cairn" / "models"


@pytest.fixture
def small(tmp_path: Path) -> str:
    write_small(tmp_path / "small.gguf")
    return str(tmp_path / "small.gguf")


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert not captured.err
    return json.loads(captured.out)


def test_a_model_is_fetched_converted_and_listed(small: str, models: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["model", "fetch", small]) == 0
    place = models / "fetched" / "small" / "small.gguf"
    assert capsys.readouterr().out == f"small: 0.3 MB in {place}\n"
    assert run(["model", "convert", "small"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert open_checkpoint(folder).manifest.name == "small"
    assert run(["model", "convert", "small", "--to", "hub"]) == 0
    hub = Path(capsys.readouterr().out.strip())
    assert (hub / "model.safetensors").is_file()
    assert run(["model", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"small: fetched from {small}; 0.3 MB in {place}"
    assert lines[1].startswith("small: small in the hub's form, bfloat16; 0.")
    assert lines[2].startswith("small: small for the embedded policy, int8; 0.1 MB in ")
    assert lines[3] == "smollm2-135m-instruct: not fetched yet (98 MB); run: cairn model fetch"
    assert lines[4] == f"1 MB in {models}"


def test_an_adapter_is_merged(tmp_path: Path, small: str, capsys: pytest.CaptureFixture[str]):
    adapter = write_adapter(tmp_path / "mine", pair())
    assert run(["model", "convert", small, "--adapter", str(adapter), "--quantization", "float32", "--json"]) == 0
    folder = Path(said(capsys)["folder"])
    assert open_checkpoint(folder).manifest.name == "small-mine"
    assert run(["model", "list"]) == 0
    assert f"small for the embedded policy, float32, with the adapter {adapter}; " in capsys.readouterr().out


def test_as_json_there_is_one_object(small: str, models: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["model", "fetch", small, "--json"]) == 0
    fetched = said(capsys)
    assert (fetched["kind"], fetched["name"], fetched["file"]) == ("fetched", "small", "small.gguf")
    assert fetched["seconds"] >= 0
    assert run(["model", "list", "--json"]) == 0
    listed = said(capsys)
    assert listed["cache"] == str(models)
    assert listed["models"] == [{key: value for key, value in fetched.items() if key != "seconds"}]


def test_what_goes_wrong_is_one_sentence(tmp_path: Path, small: str, capsys: pytest.CaptureFixture[str]):
    wrong = {
        ("model", "fetch", str(tmp_path / "missing.gguf")): (1, "there is no model, file or folder"),
        ("model", "convert", small, "--adapter", str(tmp_path)): (1, "name the folder of an adapter that peft saved"),
        ("model", "convert", small, "--to", "hub", "--quantization", "int8"): (2, "hub has bfloat16 and float32"),
        ("model", "convert", small, "--to", "hub", "--adapter", str(tmp_path)): (
            1,
            "adapter_config.json cannot be read",
        ),
        ("model", "convert", "another"): (1, "there is no model, file or folder another"),
    }
    for words, (status, sentence) in wrong.items():
        assert run(list(words)) == status
        captured = capsys.readouterr()
        assert sentence in captured.err
        assert captured.out == ""


def test_the_default_is_the_small_model_from_pypi(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    assert run(["model", "fetch"]) == 1
    assert f"cairn: pip could not download {SMOLLM2.requirement}: " in capsys.readouterr().err
