import asyncio
import shutil
from pathlib import Path

import pytest

from agent.doctor.checks import check_model, check_transformers, checks_of
from agent.doctor.run import CheckResult, examine
from agent.settings import load_settings
from tests.shipped import HUB


def checked(model: str) -> CheckResult:
    return asyncio.run(check_transformers(load_settings(policy="transformers", model=model)))


@pytest.mark.train
def test_a_folder_that_is_whole_is_reported_with_its_length():
    verdict = checked(str(HUB))
    assert (verdict.state, verdict.says) == ("ok", "cairn-tiny-v2 can be read; its context takes 3,072 tokens")


def test_a_folder_without_weights_is_bad(tmp_path: Path):
    folder = shutil.copytree(HUB, tmp_path / "hub", ignore=shutil.ignore_patterns("*.safetensors"))
    verdict = check_model(str(folder))
    assert verdict.state == "bad"
    assert "has no weights" in verdict.says


def test_a_name_on_the_hub_is_not_requested():
    verdict = check_model("someone/some-model")
    assert verdict.state == "warn"
    assert "fetched from the hub on the first start" in verdict.says


def test_without_torch_the_fix_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.doctor.checks.find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert checked(str(HUB)).fix == "pip install 'cairn-search[train]'"


def test_a_policy_without_its_model_is_a_finding():
    checks = [check for check in checks_of(load_settings(policy="transformers")) if check.name == "policy"]
    (finding,) = asyncio.run(examine(checks))
    assert finding.state == "bad"
    assert "needs a model in the hub's form" in finding.says


def test_without_vllm_the_fix_says_both_ways_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.doctor.checks.find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    checks = checks_of(load_settings(policy="vllm", model=str(HUB)))
    (finding,) = asyncio.run(examine([check for check in checks if check.name == "policy"]))
    assert finding.state == "bad"
    assert "pip install 'cairn-search[vllm]'" in finding.fix
    assert "docs/engines.md" in finding.fix


def test_a_model_for_vllm_is_looked_at_without_loading_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.doctor.checks.find_spec", lambda name: object())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    checks = checks_of(load_settings(policy="vllm", model=str(HUB)))
    (finding,) = asyncio.run(examine([check for check in checks if check.name == "policy"]))
    assert (finding.state, finding.says) == ("ok", "cairn-tiny-v2 can be read; its context takes 3,072 tokens")
