import importlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agent import cli  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from agent.trace import Trace  # noqa: E402
from tests.fixtures.make_engine import make_hub  # noqa: E402
from tests.train.apart import command  # noqa: E402
from tests.train.rl.failing import Dying, full_disk_from  # noqa: E402
from tests.train.rl.small import HUB  # noqa: E402
from train.ppo.recipe import PpoRecipe, read_ppo_recipe  # noqa: E402
from train.ppo.run import (  # noqa: E402
    PpoRun,
    newest_state,
    save_state,
    step_of,
)
from train.safety.manifest import read_manifest  # noqa: E402

pytestmark = pytest.mark.train

RECIPE = """
kind = "ppo"
name = "test"
start = "hub"
protocols = ["reflect"]
seed = 1
steps = 3
[data]
people = 40
questions_per_world = 4
[rollout]
engine = "transformers"
prompts = 3
group = 2
policy_tokens = 24
answer_tokens = 8
concurrency = 1
[[reward]]
name = "outcome"
[learning]
name = "ppo"
critic_lr = 1e-3
kl = [[0, 0.01]]
overlong = { longest = 24, buffer = 24 }
[optimizer]
lr = 1e-3
minibatches = 2
epochs = 2
micro_batches = 2
[report]
save_every_steps = 1
traces = 1
[safety]
without = ["answers are no longer closed", "every rollout gets the same reward", "rollouts run into their length limit", "the policy writes noise"]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hub(tmp_path_factory.mktemp("start") / "hub")


def recipe(hub: Path, text: str = RECIPE, *, start: Path | None = None) -> PpoRecipe:
    path = hub.parent / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return read_ppo_recipe(path, start=str(start or hub))


def quiet(step: int, figures: Mapping[str, float]) -> None:
    """Ignores the figures."""


def figures_of(out: Path) -> list[dict[str, Any]]:
    """The figures of each step that is done, also while a run writes them."""
    path = out / "monitors.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def weights(hub: Path) -> dict[str, Any]:
    files: Any = importlib.import_module("safetensors.torch")
    return dict(files.load_file(hub / "model.safetensors"))


def test_a_run_leaves_a_model_states_figures_traces_and_a_manifest(hub: Path, tmp_path: Path) -> None:
    heard: list[int] = []
    assert PpoRun(recipe(hub), tmp_path).go(lambda step, _: heard.append(step))
    assert heard == [1, 2, 3]
    assert [path.name for path in sorted((tmp_path / "states").iterdir())] == ["step-000002.pt", "step-000003.pt"]
    lines = [json.loads(line) for line in (tmp_path / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = {"entropy", "kl", "loss", "value_loss", "explained_variance", "grad_norm", "sampler_gap_highest", "lr"}
    assert {f"trainer/{name}" for name in expected} <= set(lines[-1])
    assert lines[0]["trainer/sampler_gap_highest"] < 1e-3
    traces = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in traces] == [1, 2, 3]
    assert Trace.model_validate(traces[0]["trace"]).protocol == "reflect"
    manifest = read_manifest(tmp_path)
    assert (manifest.kind, manifest.state, manifest.figures["steps"]) == ("ppo", "done", 3)
    assert (tmp_path / "hub" / "tokenizer.json").exists()
    changed = [
        not torch.equal(one, two)
        for one, two in zip(weights(tmp_path / "hub").values(), weights(hub).values(), strict=True)
    ]
    assert any(changed)


@pytest.mark.parametrize("engine", ["transformers", pytest.param("embedded", marks=pytest.mark.slow)])
def test_a_run_that_was_stopped_and_gone_on_with_ends_in_the_same_weights(
    engine: str, hub: Path, tmp_path: Path
) -> None:
    given = recipe(hub, RECIPE.replace("transformers", engine))
    assert PpoRun(given, tmp_path / "whole").go(quiet)

    def stop(step: int, _: Mapping[str, float]) -> None:
        if step == 1:
            os.kill(os.getpid(), signal.SIGINT)

    assert not PpoRun(given, tmp_path / "parts").go(stop)
    assert read_manifest(tmp_path / "parts").state == "interrupted"
    all_kept = given.model_copy(update={"report": given.report.model_copy(update={"keep": 3})})
    assert PpoRun(all_kept, tmp_path / "parts").go(quiet, resume=True)
    assert len(list((tmp_path / "parts" / "states").iterdir())) == 3
    whole, parts = weights(tmp_path / "whole" / "hub"), weights(tmp_path / "parts" / "hub")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    steps = (tmp_path / "parts" / "monitors.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in steps] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_killed_in_a_step_after_its_last_state_ends_in_the_weights_of_one_that_was_not(
    hub: Path, tmp_path: Path
) -> None:
    recipe(hub, RECIPE.replace("\nsteps = 3", "\nsteps = 8").replace("every_steps = 1", "every_steps = 4"))
    words = ["train", "ppo", "--recipe", str(hub.parent / "recipe.toml")]
    words += ["--start", str(hub), "--threads", "1", "--out"]
    assert cli.run([*words, str(tmp_path / "whole")]) == 0
    killed = command(*words, str(tmp_path / "cut"))
    while (done := len(figures_of(tmp_path / "cut"))) < 5:  # one more than the state holds
        assert killed.is_alive()
        time.sleep(0.01)
    killed.kill()
    killed.join()
    state = newest_state(tmp_path / "cut")
    assert state is not None
    assert step_of(state) == 4 < done, "what the state doesn't hold is done again"
    assert not (tmp_path / "cut" / "hub").exists()
    assert cli.run([*words, str(tmp_path / "cut"), "--resume"]) == 0
    assert [line["step"] for line in figures_of(tmp_path / "cut")] == list(range(1, 9))
    whole, cut = weights(tmp_path / "whole" / "hub"), weights(tmp_path / "cut" / "hub")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


@pytest.mark.parametrize(
    ("probe_every_steps", "why"),
    [
        (1, "the retriever is dead: before step 2, 'web' was searched"),
        pytest.param(9, "every search of the step failed", marks=pytest.mark.slow),
    ],
    ids=["before the step", "while it runs"],
)
def test_a_dead_retriever_stops_the_run_before_the_step_is_learned(
    probe_every_steps: int, why: str, tmp_path: Path
) -> None:
    """With a policy that searches."""
    said = RECIPE.replace("[safety]", f"[safety]\nprobe_every_steps = {probe_every_steps}").replace(
        'protocols = ["reflect"]', 'protocols = ["multisearch"]'
    )
    said = said.replace("prompts = 3", "prompts = 1").replace("epochs = 2", "epochs = 1").replace("minibatches = 2", "")
    said = (
        said.replace("= 24", "= 96").replace("lr = 1e-3", "lr = 1e-6").replace("[rollout]", "[rollout]\npassages = 4")
    )
    given = recipe(tmp_path / "none", said, start=HUB)
    heard: list[int] = []
    run = PpoRun(given, tmp_path / "run", tasks=Dying(given, dead_from=1))
    with pytest.raises(SetupError, match=why):
        run.go(lambda step, _: heard.append(step))
    assert heard == [1]
    assert newest_state(tmp_path / "run") == tmp_path / "run" / "states" / "step-000001.pt"
    manifest = read_manifest(tmp_path / "run")
    assert manifest.state == "stopped"
    assert "retriever is dead" in manifest.sessions[-1].why


def test_a_full_disk_loses_nothing_that_was_saved_before(hub: Path, tmp_path: Path) -> None:
    run = PpoRun(recipe(hub), tmp_path)
    with pytest.raises(SetupError, match=r"step-000002\.pt could not be saved") as raised, full_disk_from(2) as on_step:
        run.go(on_step)
    assert "--resume" in str(raised.value)
    assert [path.name for path in (tmp_path / "states").iterdir()] == ["step-000001.pt"]
    assert read_manifest(tmp_path).state == "stopped"
    heard: list[int] = []
    assert PpoRun(recipe(hub), tmp_path).go(lambda step, _: heard.append(step), resume=True)
    assert heard == [2, 3]


def test_a_full_disk_is_reported_in_a_sentence_and_keeps_what_was_saved(tmp_path: Path) -> None:
    save_state(tmp_path, 1, {"step": 1}, keep=2)
    with pytest.raises(SetupError, match="free some space there, then continue with --resume"):
        save_state(tmp_path, 2, {"step": 2, "more": Unwritable()}, keep=1)
    assert [path.name for path in (tmp_path / "states").iterdir()] == ["step-000001.pt"]
    assert newest_state(tmp_path) == tmp_path / "states" / "step-000001.pt"


class Unwritable:
    """Stands for the last block that the disk had no room for."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise OSError(28, "No space left on device")


def test_a_folder_that_holds_a_run_is_not_overwritten_and_an_empty_one_not_resumed(hub: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nothing to resume"):
        PpoRun(recipe(hub), tmp_path).go(quiet, resume=True)
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "step-000001.pt").write_bytes(b"broken")
    with pytest.raises(SetupError, match="already has a run"):
        PpoRun(recipe(hub), tmp_path).go(quiet)
    with pytest.raises(SetupError, match="is damaged"):
        PpoRun(recipe(hub), tmp_path).go(quiet, resume=True)


@pytest.mark.parametrize(
    ("said", "instead", "why"),
    [
        ('name = "ppo"', 'name = "grpo"', "learning.name"),
        ("critic_lr = 1e-3", "critic_lr = 1e-3\nresample = 2", "leave out resample"),
        ("critic_lr = 1e-3", "critic_lr = 1e-3\ncredit = { first_hit = 0.5 }", "leave out credit"),
        ('engine = "transformers"', 'engine = "transformers"\nbeams = 2', "rollout.beams"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_by_name(hub: Path, said: str, instead: str, why: str) -> None:
    with pytest.raises(SetupError, match=why):
        recipe(hub, RECIPE.replace(said, instead))


def test_ppo_takes_no_vllm_server(hub: Path, tmp_path: Path) -> None:
    server = RECIPE.replace('engine = "transformers"', 'engine = "vllm-server"\nserver = "http://127.0.0.1:8000"')
    with pytest.raises(SetupError, match="cannot hand weights to a vLLM server"):
        PpoRun(recipe(hub, server), tmp_path)
