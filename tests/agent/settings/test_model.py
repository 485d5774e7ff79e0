"""`--model DIR`: the folder decides what no setting says."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.build.agent import build_agent, build_policy, build_protocol
from agent.errors import SetupError
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.hub_form import open_hub_form
from agent.policies.model_folder import ABOUT
from agent.protocols import protocol_names
from agent.settings import CairnSettings, load_settings
from tests.shipped import CT2, HUB, NAME, both_forms

OWN = 'name = "mine"\nplan = "query"\n[tags]\nsearch = "search"\ninformation = "information"\nanswer = "answer"\n'


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """The hub's form without anything beside it, its weights empty."""
    folder = Path(shutil.copytree(HUB, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors", ABOUT)))
    (folder / "model.safetensors").touch()
    return folder


def says(folder: Path, **changes: Any) -> None:
    about = {"name": "mine", "protocols": ["kg", "dag"], "context_tokens": 2048, "eos": "<eos>"} | changes
    (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")


def decided(settings: CairnSettings) -> tuple[str, str, tuple[str, ...]]:
    return settings.policy, settings.protocol, settings.protocols


@pytest.mark.parametrize("folder", [CT2.parent, CT2])
def test_an_exported_checkpoint_needs_nothing_else(folder: Path):
    settings = load_settings(model=str(folder))
    policy, protocol, protocols = decided(settings)
    assert (policy, protocol, sorted(protocols)) == ("embedded", "cairn", sorted(protocol_names()))
    assert settings.checkpoint == CT2


def test_the_hubs_form_is_read_by_transformers_in_the_protocol_that_it_names(hub: Path):
    says(hub)
    settings = load_settings(model=str(hub))
    assert decided(settings) == ("transformers", "kg", ("kg", "dag"))
    assert settings.model == str(hub)


def test_what_a_setting_says_stays(hub: Path, monkeypatch: pytest.MonkeyPatch):
    says(hub)
    monkeypatch.setenv("CAIRN_PROTOCOL", "dag")
    assert decided(load_settings(model=str(hub), policy="vllm")) == ("vllm", "dag", ("kg", "dag"))
    assert load_settings(model=str(hub), protocols="kg").protocols == ("kg",)


def test_an_engine_that_is_named_reads_the_hubs_form_of_a_run(tmp_path: Path):
    run = both_forms(tmp_path / "run")
    assert load_settings(model=str(run), policy="transformers").model == str(run / "hub")


def test_a_checkpoint_that_is_named_as_such_decides_its_protocol_too(tmp_path: Path):
    shutil.copytree(CT2, tmp_path / "own")
    manifest = json.loads((tmp_path / "own" / ABOUT).read_text(encoding="utf-8"))
    says(tmp_path / "own", **manifest | {"protocols": ["multisearch"]})
    settings = load_settings(checkpoint=tmp_path / "own")
    assert decided(settings) == ("embedded", "multisearch", ("multisearch",))


def test_a_checkpoint_may_bring_the_file_of_its_own_protocol(hub: Path):
    says(hub, protocols=["mine"])
    (hub / "mine.toml").write_text(OWN, encoding="utf-8")
    assert build_protocol(load_settings(model=str(hub))).name == "mine"


def test_the_folder_may_shorten_the_context_and_name_the_end_of_a_turn(hub: Path):
    says(hub, context_tokens=300)
    for name in ("tokenizer_config.json", "generation_config.json"):
        (hub / name).unlink()
    config = json.loads((hub / "config.json").read_text(encoding="utf-8"))
    config["eos_token_id"] = None
    (hub / "config.json").write_text(json.dumps(config), encoding="utf-8")
    form = open_hub_form(str(hub))
    assert form.context_tokens == 300
    assert form.codec.ends == {form.codec.tokens.index("<eos>")}


# What is wrong with a folder


def test_a_folder_that_does_not_say_its_protocol_asks_for_it(hub: Path):
    with pytest.raises(SetupError, match=r"has no cairn\.json; name it with --protocol NAME"):
        load_settings(model=str(hub))
    assert decided(load_settings(model=str(hub), protocol="reflect"))[:2] == ("transformers", "reflect")
    assert decided(load_settings(model=str(hub), policy="transformers"))[:2] == ("transformers", "cairn")


def test_a_folder_that_lacks_something_is_a_sentence(hub: Path):
    says(hub)
    (hub / "tokenizer.json").unlink()
    with pytest.raises(SetupError, match=r"lacks tokenizer\.json; .*save_pretrained"):
        load_settings(model=str(hub))


def test_a_folder_without_a_model_is_a_sentence(tmp_path: Path):
    with pytest.raises(SetupError, match="holds no model"):
        load_settings(model=str(tmp_path))


def test_each_form_is_refused_by_the_engine_that_cannot_read_it(hub: Path):
    says(hub)
    with pytest.raises(SetupError, match="cairn checkpoint export"):
        load_settings(model=str(hub), policy="embedded")
    with pytest.raises(SetupError, match="use --policy embedded"):
        load_settings(model=str(CT2), policy="vllm")


def test_a_name_that_is_no_folder_asks_where_it_is():
    settings = load_settings(model="someone/something")
    with pytest.raises(SetupError, match=r"no folder someone/something; .*--base-url URL.*--policy transformers"):
        build_policy(settings)


def test_a_model_at_an_endpoint_may_be_called_like_a_folder(tmp_path: Path):
    (tmp_path / "qwen3").mkdir()
    settings = load_settings(model="qwen3", base_url="http://127.0.0.1:1/v1")
    assert (settings.policy, settings.model, settings.protocol) == ("openai", "qwen3", "cairn")


def test_a_folder_is_enough_for_an_agent():
    agent = build_agent(load_settings(model=str(CT2.parent)))
    assert isinstance(agent.policy, EmbeddedPolicy)
    assert (agent.policy.name, agent.protocol.name) == (NAME, "cairn")
