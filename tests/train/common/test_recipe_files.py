"""What is wrong with a recipe is a sentence that names the place."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.errors import SetupError
from lab.reader import recipe as reader
from train.common.recipe import read_recipe
from train.common.recipe_files import kind_of, read_model, with_current_keys
from train.ppo.recipe import read_ppo_recipe
from train.rl.recipe import read_rl_recipe
from train.safety.manifest import MANIFEST, kept_manifest, read_manifest

ROOT = Path(__file__).parents[3]


class Small(BaseModel):
    start: str = ""
    steps: int


def test_a_start_takes_the_place_of_the_files_own(tmp_path: Path):
    path = tmp_path / "small.toml"
    path.write_text('start = "a"\nsteps = 3\n', encoding="utf-8")
    assert read_model(path, Small) == Small(start="a", steps=3)
    assert read_model(path, Small, start="b") == Small(start="b", steps=3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"steps = ", r"the scale .*wrong\.toml cannot be read: Invalid value"),
        (b"\xff\xfe", r"the scale .*wrong\.toml cannot be read: .*utf-8"),
        (b'steps = "many"', r"the scale .*wrong\.toml cannot be used: steps: Input should be a valid integer"),
    ],
)
def test_what_cannot_be_read_or_used_is_a_sentence(tmp_path: Path, text: bytes, why: str):
    path = tmp_path / "wrong.toml"
    path.write_bytes(text)
    with pytest.raises(SetupError, match=why):
        read_model(path, Small, what="scale")


def test_a_missing_recipe_is_a_sentence(tmp_path: Path):
    with pytest.raises(SetupError, match=r"the recipe .*gone\.toml cannot be read: .*No such file"):
        kind_of(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("name", "read"), [("train/recipes/tiny_weak", read_recipe), ("lab/recipes/reader", reader.read_recipe)]
)
def test_recipes_name_the_key_that_they_do_not_know(tmp_path: Path, name: str, read: Callable[[Path], object]):
    path = tmp_path / "wrong.toml"
    path.write_text("speed = 3\n" + (ROOT / f"{name}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(
        SetupError, match=r"the recipe .*\.toml cannot be used: speed: there is no such field"
    ) as raised:
        read(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "instead", "why"),
    [
        ("evaluate_every_steps", "evaluate_every_steps = 0", r"report\.evaluate_every_steps"),
        ("save_every_steps", "save_every_steps = 0", r"report\.save_every_steps"),
        ("protocols", "protocols = []", "protocols"),
        ("worlds_per_pool", "worlds_per_pool = 0", r"data\.worlds_per_pool"),
        ("max_tokens", "max_tokens = 9\nprotocol_weights = { dug = 2 }", "`protocol_weights` names dug"),
        ("max_tokens", "max_tokens = 9\nprotocol_weights = { multisearch = 0 }", "leaves no protocol to draw"),
        ("until", "until = 0.9", "in the order of their `until`"),
        ("mix", "mix = { chain1 = 1, chain2 = -0.5 }", r"curriculum\.0\.mix\.chain2"),
        ("mix", "mix = { chain1 = 0 }", "a weight above 0"),
        ("adamw_lr", "adamw_lr = inf", r"optimizer\.adamw_lr"),
    ],
)
def test_a_recipe_that_would_fail_in_the_middle_of_its_run_is_refused(
    tmp_path: Path, line: str, instead: str, why: str
):
    shipped = (ROOT / "train/recipes/tiny_sft.toml").read_text(encoding="utf-8").splitlines()
    assert any(one.startswith(line) for one in shipped)
    first = next(at for at, one in enumerate(shipped) if one.startswith(line))
    shipped[first] = instead
    path = tmp_path / "wrong.toml"
    path.write_text("\n".join(shipped), encoding="utf-8")
    with pytest.raises(SetupError, match=why):
        read_recipe(path)


@pytest.mark.parametrize(("text", "kind"), [('kind = "reader"', "'reader'"), ("", "''")])
def test_a_recipe_of_another_kind_is_refused_by_its_kind_alone(tmp_path: Path, text: str, kind: str):
    path = tmp_path / "other.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError, match=rf"other\.toml is of kind {kind}; this command needs the kind 'sft'"):
        read_recipe(path)


PREVIOUS = {"epochs": "passes", "micro_batches": "pieces", "critic_epochs_first": "critic_passes_first"}


def previous(path: Path, folder: Path, **changes: str) -> Path:
    """A shipped recipe as an earlier version would have it."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("epochs")]
    for name, old in (PREVIOUS | changes).items():
        lines = [old + line.removeprefix(name) if line.startswith(f"{name} =") else line for line in lines]
    made = folder / path.name
    made.write_text("\n".join(lines), encoding="utf-8")
    return made


def test_recipes_with_the_previous_names_of_their_keys_are_the_same_recipes(tmp_path: Path):
    ppo, rl = ROOT / "train/recipes/tiny_ppo.toml", ROOT / "train/recipes/tiny_grpo.toml"
    assert "critic_passes_first = 4" in previous(ppo, tmp_path).read_text(encoding="utf-8")
    assert read_ppo_recipe(previous(ppo, tmp_path)) == read_ppo_recipe(ppo)
    assert read_rl_recipe(previous(rl, tmp_path)) == read_rl_recipe(rl)


def test_a_key_with_both_of_its_names_is_refused(tmp_path: Path):
    path = previous(ROOT / "train/recipes/tiny_grpo.toml", tmp_path, micro_batches="micro_batches = 2\npieces")
    with pytest.raises(SetupError, match=r"optimizer\.pieces"):
        read_rl_recipe(path)


def test_a_run_whose_manifest_has_the_previous_names_goes_on(tmp_path: Path):
    recipe = read_rl_recipe(ROOT / "train/recipes/tiny_grpo.toml")
    with kept_manifest(tmp_path, recipe=recipe, seeds={}):
        pass
    kept = json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    optimizer = kept["recipe"]["optimizer"]
    kept["recipe"]["optimizer"] = {PREVIOUS.get(name, name): value for name, value in optimizer.items()}
    (tmp_path / MANIFEST).write_text(json.dumps(kept | {"recipe_hash": "another"}), encoding="utf-8")
    with kept_manifest(tmp_path, recipe=recipe, seeds={}):
        pass
    assert read_manifest(tmp_path).state == "done"
    with (
        pytest.raises(SetupError, match="another recipe"),
        kept_manifest(tmp_path, recipe=recipe.model_copy(update={"steps": 1}), seeds={}),
    ):
        pass


def test_a_run_goes_on_however_many_states_are_kept(tmp_path: Path):
    recipe = read_rl_recipe(ROOT / "train/recipes/tiny_grpo.toml")
    with kept_manifest(tmp_path, recipe=recipe, seeds={}):
        pass
    more = recipe.report.model_copy(update={"keep": recipe.report.keep + 1})
    with kept_manifest(tmp_path, recipe=recipe.model_copy(update={"report": more}), seeds={}):
        pass
    seldom = more.model_copy(update={"save_every_steps": 7})
    with (
        pytest.raises(SetupError, match="another recipe"),
        kept_manifest(tmp_path, recipe=recipe.model_copy(update={"report": seldom}), seeds={}),
    ):
        pass


def test_a_distillation_of_an_earlier_version_has_the_same_recipe():
    assert with_current_keys({"kind": "distill", "asked": {"policy": "openai"}}) == {
        "kind": "distill",
        "agent": {"policy": "openai"},
    }


def test_the_safety_table_of_an_earlier_version_is_read():
    rule = {"name": "own", "figure": "x", "above": 1.0}
    before = {"canary": [], "canary_every_steps": 2, "canary_seconds": 5.0, "rules": [{**rule, "mend": "go back"}]}
    now = {"probes": [], "probe_every_steps": 2, "probe_seconds": 5.0, "rules": [{**rule, "fix": "go back"}]}
    assert with_current_keys({"kind": "rl", "safety": before}) == {"kind": "rl", "safety": now}
