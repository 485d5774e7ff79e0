"""What a policy that is trained further is shown, and which of its layers are trained."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.errors import SetupError
from agent.policies.model_folder import ABOUT, dates_shown, trained_with
from tests.train.starts import recipe, rows_file, start
from train.common.recipe import AdapterSettings
from train.models.pretrained import open_pretrained
from train.sft.run import SftRun

pytestmark = pytest.mark.train


@pytest.mark.parametrize("about", [{"dates": False, "passages": {"cairn": 2}}, {}])
def test_what_is_trained_further_is_shown_passages_as_its_start_was(tmp_path: Path, about: dict[str, Any]) -> None:
    begun = tmp_path / "start"
    start("llama", begun)
    rows_file(tmp_path)
    said = {"name": "start", "protocols": ["cairn"], "context_tokens": 4096, "eos": "</s>", **about}
    (begun / ABOUT).write_text(json.dumps(said), encoding="utf-8")
    run = SftRun(recipe(begun, tmp_path / "rows.jsonl", optimizer={"tokens": 500, "warmup_steps": 0}), tmp_path / "run")
    assert run.run(lambda _: None), "also without a warm-up"
    hub = run.save_hub()
    assert (dates_shown(hub), trained_with(hub)) == (about.get("dates", True), about.get("passages", {}))


def test_an_adapter_of_other_layers_is_not_trained_further_under_their_name(tmp_path: Path) -> None:
    start("llama", tmp_path / "start")
    rows_file(tmp_path)
    run = SftRun(recipe(tmp_path / "start", tmp_path / "rows.jsonl", adapter=4, optimizer={"tokens": 500}), tmp_path)
    assert run.run(lambda _: None)
    run.save_hub()
    settings = AdapterSettings(rank=4, alpha=8, targets=("q_proj",))
    with pytest.raises(SetupError, match="an adapter of other layers"):
        open_pretrained(str(tmp_path / "adapter"), adapter=settings, bf16=False)
