import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as cairn
from agent.errors import CheckpointError
from agent.settings import load_settings
from tests.shipped import HUB
from train.checkpoints.card import licence_of, write_card
from train.common.recipe import read_recipe
from train.safety.manifest import kept_manifest

RECIPE = Path(__file__).parents[3] / "train" / "recipes" / "tiny_sft.toml"


def a_run(folder: Path) -> Path:
    entries = [
        {"step": 50, "tokens": 300_000, "seconds": 60.0, "policy_loss": 2.5},
        {"step": 500, "tokens": 3_000_000, "seconds": 600.0, "policy_loss": 0.25, "dev_tokens_right": 0.9,
         "dev_trajectories_right": 0.03},
        {"step": 4500, "tokens": 26_000_000, "seconds": 5400.0, "policy_loss": 0.004, "dev_tokens_right": 0.998,
         "dev_trajectories_right": 0.81},
    ]  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return folder


def test_a_card_shows_recipe_seed_tokens_time_curves_and_results(tmp_path: Path) -> None:
    result = {"test-v1, cairn": {"n": 500, "em": 0.936, "f1": 0.94, "searches": 2.4, "policy_tokens": 190.0}}
    card = write_card(a_run(tmp_path), read_recipe(RECIPE), result, tmp_path, note="One thing to know.")
    text = card.read_text(encoding="utf-8")
    assert "seed 5" in text
    assert "26,000,000 tokens" in text
    assert "90 minutes" in text
    assert "▁▇" in text
    assert "| test-v1, cairn | 500 | 0.936 | 0.940 | 2.40 | 190 |" in text
    assert "One thing to know." in text


def test_a_card_shows_how_the_answers_are_by_protocol_and_type(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    entry = {"step": 9, "tokens": 9, "seconds": 1.0, "policy_loss": 0.1, "dev_answers_right": {"dag": 0.5, "time": 1.0}}
    with (run / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
    second = RECIPE.with_name("tiny_v2_more.toml")
    text = write_card(run, read_recipe(second), {}, tmp_path, file="my.toml").read_text(encoding="utf-8")
    assert "| dag | 0.500 |" in text
    assert "| time | 1.000 |" in text
    assert "--recipe my.toml" in text
    assert "begun from the weights of" in text


def test_a_card_names_other_data_and_the_start_s_licence(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    recipe = read_recipe(RECIPE).model_copy(update={"start": str(start)})
    changed = recipe.model_copy(update={"data": recipe.data.model_copy(update={"rows": "runs/rows/rows.jsonl"})})
    with kept_manifest(tmp_path, recipe=changed, seeds={}):
        pass
    text = write_card(a_run(tmp_path), recipe, {}, tmp_path).read_text(encoding="utf-8")
    assert "Licence: mit" in text
    assert "the rows of `runs/rows/rows.jsonl`; 26,000,000 tokens of them" in text
    assert "oracle" not in text


def test_the_command_writes_beside_the_card_what_serves_the_model(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    kept = shutil.ignore_patterns("*.safetensors", "cairn.json")
    shutil.copytree(HUB, run / "hub", ignore=kept)
    (run / "hub" / "model.safetensors").touch()
    assert cairn(["checkpoint", "card", str(run), "--recipe", str(RECIPE), "--out", str(run)]) == 0
    assert "## Curves" in (run / "README.md").read_text(encoding="utf-8")
    settings = load_settings(model=str(run))
    assert (settings.policy, settings.protocols) == ("transformers", ("multisearch",))


def test_results_are_put_behind_the_card_that_a_run_of_reinforcement_learning_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, result, run = tmp_path / "r.toml", tmp_path / "dev.json", tmp_path / "run"
    recipe.write_text('kind = "rl"', encoding="utf-8")
    result.write_text(json.dumps({"n": 9, "em": 0.5, "f1": 0.6, "searches": 2, "policy_tokens": 80}), encoding="utf-8")
    run.mkdir()
    command = ["checkpoint", "card", str(run), "--recipe", str(recipe), "--out", str(run), "--note", "Three seeds."]
    assert cairn(command) == 1
    assert "finished?" in " ".join(capsys.readouterr().err.split())
    (run / "hub").mkdir()
    (run / "hub" / "README.md").write_text("# Mine\n\n## Curves\n", encoding="utf-8")
    assert cairn([*command, "--result", f"dev={result}"]) == 0
    text = (run / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\n## Curves\n\nThree seeds.\n\n## Results\n")
    assert "| dev | 9 | 0.500 | 0.600 | 2.00 | 80 |" in text


def test_a_folder_without_a_log_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no log\.jsonl"):
        write_card(tmp_path, read_recipe(RECIPE), {}, tmp_path)


def test_a_log_that_a_kill_cut_off_is_read_and_one_without_a_step_is_reported(tmp_path: Path) -> None:
    with (a_run(tmp_path) / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 4550, "tok')
    assert "26,000,000 tokens" in write_card(tmp_path, read_recipe(RECIPE), {}, tmp_path).read_text(encoding="utf-8")
    (tmp_path / "log.jsonl").write_text('{"step": 1, "tok', encoding="utf-8")
    with pytest.raises(CheckpointError, match="has no step yet"):
        write_card(tmp_path, read_recipe(RECIPE), {}, tmp_path)


def test_a_run_that_measured_nothing_has_a_card_without_curves(tmp_path: Path) -> None:
    entry = {"step": 50, "tokens": 300_000, "seconds": 60.0, "policy_loss": 2.5}
    (tmp_path / "log.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    text = write_card(tmp_path, read_recipe(RECIPE), {}, tmp_path).read_text(encoding="utf-8")
    assert "## Curves" not in text
    assert "## Results" in text


@pytest.mark.parametrize("result", [{"n": 5}, {"n": 5, "em": None, "f1": 0, "searches": 1, "policy_tokens": 2}, []])
def test_a_result_that_no_evaluation_printed_is_refused(result: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"'dev' is not what `cairn eval --json` prints"):
        write_card(a_run(tmp_path), read_recipe(RECIPE), {"dev": result}, tmp_path)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be written .*: name the folder of the checkpoint"):
        write_card(a_run(tmp_path), read_recipe(RECIPE), {}, tmp_path / "none")


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("# weak\n\nProtocols: cairn. Licence: Apache-2.0.\n", "Licence: Apache-2.0"),
        ("---\nlicense: apache-2.0\ntags: [a]\n---\n# theirs\n", "Licence: Apache-2.0"),
        ("---\ntags: [a]\nlicense: cc-by-nc-4.0\n---\n# theirs\n", "Licence: cc-by-nc-4.0"),
        ("# next\n\nProtocols: cairn. Licence: that of `there`.\n", "Licence: that of `{start}`"),
        ("# It names none\n", "Licence: that of `{start}`"),
    ],
)
@pytest.mark.parametrize("place", ["hub", "."])
def test_what_is_trained_from_a_checkpoint_has_its_licence(place: str, card: str, said: str, tmp_path: Path) -> None:
    start = tmp_path / "hub"
    start.mkdir()
    (tmp_path / place / "README.md").write_text(card, encoding="utf-8")
    assert licence_of(start) == said.format(start=start)
