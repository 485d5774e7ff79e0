import json
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import pytest

torch = pytest.importorskip("torch")

from agent import cli  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from tests.train.disk import full_disk  # noqa: E402
from train.common.process_group import ProcessGroup, run_in_processes  # noqa: E402
from train.common.recipe import SftRecipe, read_recipe  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402
from train.sft.padding import collate  # noqa: E402
from train.sft.run import SftProgress, SftRun  # noqa: E402
from train.sft.trajectories import pool_batches  # noqa: E402

pytestmark = pytest.mark.train

RECIPE = """
kind = "sft"
name = "test"
protocols = ["cairn", "multisearch"]
seed = 1
[model]
width = 32
layers = 1
heads = 2
kv_heads = 1
head_dim = 32
inner = 64
vocabulary = 700
context = 2048
[data]
people = 40
questions_per_world = 12
worlds_per_pool = 1
max_tokens = 2000
tokenizer_worlds = 1
[optimizer]
tokens = {tokens}
batch_tokens = 3000
muon_lr = 3e-3
adamw_lr = 3e-3
final_lr = 0.1
warmup_steps = 2
weight_decay = 0.01
clip = 1.0
bf16 = false
[weights]
policy = 1.0
answer = 2.0
environment = 0.1
[[curriculum]]
until = 0.5
mix = {{ chain1 = 1.0 }}
[[curriculum]]
until = 1.0
mix = {{ chain1 = 0.5, comparison = 0.5 }}
[report]
every_steps = 1
evaluate_every_steps = 100
dev_questions = 12
save_every_steps = 2
"""


def write_recipe(folder: Path, *, tokens: int = 24_000) -> Path:
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(tokens=tokens), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> SftRecipe:
    """Some pools of worlds, in both stages of the curriculum."""
    return read_recipe(write_recipe(tmp_path_factory.mktemp("recipe"), tokens=18_000))


@pytest.fixture(scope="module")
def unbroken(recipe: SftRecipe, tmp_path_factory: pytest.TempPathFactory) -> SftRun:
    torch.set_num_threads(1)
    run = SftRun(recipe, tmp_path_factory.mktemp("unbroken"))
    assert run.run(lambda _: None)
    return run


@pytest.fixture
def out(unbroken: SftRun, tmp_path: Path) -> Path:
    """A folder for another run of the recipe, with the tokenizer that it would make."""
    return with_tokenizer(unbroken, tmp_path / "run")


def with_tokenizer(of: SftRun, folder: Path) -> Path:
    folder.mkdir()
    shutil.copyfile(of.out / "tokenizer.json", folder / "tokenizer.json")
    return folder


def same_weights(one: SftRun, two: SftRun) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))


@pytest.mark.slow
def test_a_run_that_was_stopped_and_resumed_ends_in_the_same_weights_with_an_entry_for_each_process(
    recipe: SftRecipe, unbroken: SftRun, out: Path
) -> None:
    def stop_at_the_third_step(progress: SftProgress) -> None:
        if progress.step == 2:
            signal.raise_signal(signal.SIGINT)

    first = SftRun(recipe, out)
    assert not first.run(stop_at_the_third_step)
    assert first.place.step == 3
    assert read_manifest(out).state == "interrupted"
    with (out / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 4, "tokens": 7}\n')  # a killed process had done one more
    second = SftRun(recipe, out)
    second.resume()
    assert second.place == first.place
    assert second.run(lambda _: None)
    assert second.place.tokens == unbroken.place.tokens
    assert same_weights(second, unbroken)
    logs = [(run.out / "log.jsonl").read_text(encoding="utf-8").splitlines() for run in (second, unbroken)]
    losses = [[(json.loads(line)["step"], json.loads(line)["loss"]) for line in log] for log in logs]
    assert losses[0] == losses[1]
    assert [session.state for session in read_manifest(out).sessions] == ["interrupted", "done"]


def weights_of(process_group: ProcessGroup, recipe: SftRecipe, out: Path, resume: bool = False) -> dict[str, Any]:
    run = SftRun(recipe, out, process_group)
    if resume:
        run.resume()
    assert run.run(lambda _: None)
    return dict(run.model.state_dict())


def stopped_in_the_middle(process_group: ProcessGroup, recipe: SftRecipe, out: Path) -> None:
    run = SftRun(recipe, out, process_group)

    def stop(progress: SftProgress) -> None:
        if progress.step == 2:  # it ends at the third step, at which no state is due
            signal.raise_signal(signal.SIGINT)

    assert not run.run(stop)
    assert run.place.step == 3


def moved_without_being_consolidated(process_group: ProcessGroup, recipe: SftRecipe, out: Path) -> list[bool]:
    run: Any = SftRun(recipe, out, process_group)
    run._step(next(run._steps()))
    return [bool(kept) for kept in run.optimizers._muon.state.values()]


def end_early(process_group: ProcessGroup) -> str:
    """What the first process says when the other one dies."""
    if not process_group.is_main_process:
        os._exit(1)
    with pytest.raises(SetupError) as error:
        process_group.wait()
    return str(error.value)


class Shared(NamedTuple):
    """What one process, or the first of two, has of a run: all of it, the matrices it moved, one that was stopped."""

    weights: dict[str, Any]
    moved: list[bool]
    out: Path
    stopped: Path
    at_a_death: str

    @classmethod
    def of(cls, process_group: ProcessGroup, recipe: SftRecipe, out: Path) -> Self:
        weights = weights_of(process_group, recipe, out / "whole")
        moved = moved_without_being_consolidated(process_group, recipe, out / "moved")
        death = ""
        if process_group.size > 1:
            stopped_in_the_middle(process_group, recipe, out / "stopped")
            death = end_early(process_group)
        return cls(weights, moved, out / "whole", out / "stopped", death)


@pytest.fixture(scope="module")
def shared(recipe: SftRecipe) -> SftRecipe:
    return recipe.model_copy(update={"optimizer": recipe.optimizer.model_copy(update={"batches_per_step": 2})})


def folders(of: SftRun, folder: Path) -> Path:
    for name in ("whole", "moved", "stopped"):
        with_tokenizer(of, folder / name)
    return folder


@pytest.fixture(scope="module")
def one(shared: SftRecipe, unbroken: SftRun, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return run_in_processes(1, Shared.of, shared, folders(unbroken, tmp_path_factory.mktemp("one")))


@pytest.fixture(scope="module")
def two(shared: SftRecipe, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Two processes are started once: what they import costs more than what they learn.

    They make the tokenizer of their first run themselves.
    """
    return run_in_processes(2, Shared.of, shared, tmp_path_factory.mktemp("two"))


@pytest.mark.slow
def test_processes_that_share_a_step_learn_what_one_process_learns(one: Shared, two: Shared) -> None:
    assert all(torch.allclose(one.weights[name], two.weights[name], atol=1e-4) for name in one.weights)
    logs = [(of.out / "log.jsonl").read_text(encoding="utf-8").splitlines() for of in (one, two)]
    assert len(logs[0]) == len(logs[1]) > 1
    losses = [[json.loads(line)["policy_loss"] for line in log] for log in logs]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


@pytest.mark.slow
def test_what_two_processes_saved_one_goes_on_with(shared: SftRecipe, one: Shared, two: Shared) -> None:
    resumed = run_in_processes(1, weights_of, shared, two.stopped, True)
    assert all(torch.allclose(one.weights[name], resumed[name], atol=1e-4) for name in one.weights)


@pytest.mark.slow
def test_each_process_updates_its_share_of_the_matrices_alone(one: Shared, two: Shared) -> None:
    assert one.moved == [True] * 7
    assert sum(two.moved) == 4


@pytest.mark.slow
def test_a_process_that_dies_ends_the_others_with_a_sentence(two: Shared) -> None:
    assert "--resume" in two.at_a_death


def test_more_processes_than_batches_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "sft", "--recipe", str(write_recipe(tmp_path)), "--out", str(tmp_path), "--processes", "2"]
    assert cli.run(command) == 1
    assert "batches_per_step" in capsys.readouterr().err


def test_the_first_loss_is_that_of_the_model_over_all_policy_tokens(
    recipe: SftRecipe, unbroken: SftRun, tmp_path: Path
) -> None:
    seen: list[SftProgress] = []

    def stop(progress: SftProgress) -> None:
        seen.append(progress)
        if len(seen) == 1:  # a second one would end it at once
            signal.raise_signal(signal.SIGINT)

    for environment in (0.0, 0.1):  # with and without tokens beside the policy's
        seen.clear()
        weights = recipe.weights.model_copy(update={"environment": environment})
        weighed = recipe.model_copy(update={"weights": weights})
        run = SftRun(weighed, with_tokenizer(unbroken, tmp_path / str(environment)))
        (first, *_) = pool_batches(weighed, run.tokenizer, pool=0, progress=0.0)
        batch = collate(first, torch.device("cpu"))
        with torch.no_grad():
            logits = cast(Any, run.model)(batch.ids).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.ids[:, 1:].flatten(), reduction="none")
        mine, policy = losses.view(batch.ids[:, 1:].shape), batch.policy[:, 1:]
        weigh = batch.weights[:, 1:]
        run.run(stop)
        assert seen[0].policy_loss == pytest.approx(float(mine[policy].mean()), rel=1e-4)
        assert seen[0].loss == pytest.approx(float((mine * weigh).sum() / weigh.sum()), rel=1e-4)


def test_a_pool_that_holds_nothing_to_learn_from_is_a_sentence(recipe: SftRecipe, unbroken: SftRun) -> None:
    short = recipe.model_copy(update={"data": recipe.data.model_copy(update={"max_tokens": 10})})
    with pytest.raises(SetupError, match=r"nothing is left to learn from at 60% .* at most 10 tokens"):
        pool_batches(short, unbroken.tokenizer, pool=0, progress=0.6)


def test_training_moves_the_weights_and_lowers_the_loss(unbroken: SftRun) -> None:
    log = [json.loads(line) for line in (unbroken.out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert log[-1]["policy_loss"] < log[0]["policy_loss"] - 0.1
    assert 0 <= log[-1]["dev_trajectories_right"] <= 1


def test_the_hub_form_loads_where_it_was_saved(unbroken: SftRun) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    hub = unbroken.save_hub()
    model = cast(Any, AutoModelForCausalLM).from_pretrained(hub, dtype=torch.float32)
    tokenizer = cast(Any, AutoTokenizer).from_pretrained(hub)
    assert tokenizer.encode("<answer>Trieste</answer>")[0] == unbroken.tokenizer.token_to_id("<answer>")
    ids = torch.tensor([unbroken.tokenizer.encode("Question: where?").ids])
    assert torch.allclose(model(ids).logits, unbroken.model(ids).logits, atol=1e-5)


def test_a_run_can_begin_where_another_one_ended(unbroken: SftRun, tmp_path: Path) -> None:
    hub = unbroken.save_hub()
    recipe = unbroken.recipe.model_copy(update={"start": str(hub), "keep_tokenizer": True})
    run = SftRun(recipe, tmp_path)
    assert run.tokenizer.get_vocab() == unbroken.tokenizer.get_vocab()
    assert same_weights(run, unbroken)


def test_the_recipes_of_the_shipped_checkpoint_begin_from_weights_that_are_there() -> None:
    folder = Path(__file__).parents[3]
    assert not read_recipe(folder / "train" / "recipes" / "tiny_v2.toml").start
    for name in ("tiny_v2_more", "tiny_v2_last", "tiny_v2_hops", "tiny_weak"):
        recipe = read_recipe(folder / "train" / "recipes" / f"{name}.toml")
        assert (folder / recipe.start / "model.safetensors").is_file()


def test_another_recipe_cannot_resume_a_run(unbroken: SftRun, tmp_path: Path) -> None:
    other = read_recipe(write_recipe(tmp_path, tokens=99_000))
    with pytest.raises(SetupError, match="another recipe"):
        SftRun(other, unbroken.out).resume()


def test_a_damaged_state_is_a_sentence_and_so_is_none(recipe: SftRecipe, out: Path) -> None:
    run = SftRun(recipe, out)
    with pytest.raises(SetupError, match="start without --resume"):
        run.resume()
    (out / "state.pt").write_bytes(b"PK\x03\x04 nothing of use")
    with pytest.raises(SetupError, match="is damaged"):
        run.resume()


def test_a_full_disk_loses_neither_the_state_nor_the_model_that_were_there(recipe: SftRecipe, out: Path) -> None:
    run = SftRun(recipe, out)
    run.save()
    card = run.save_hub() / "README.md"
    card.write_text("# Mine", encoding="utf-8")
    files = sorted(path for path in out.rglob("*") if path.is_file())
    before = [path.read_bytes() for path in files]
    for save in (run.save, run.save_hub):
        with pytest.raises(SetupError, match="earlier saves are intact: free some space there"), full_disk(1000):
            save()
    assert sorted(path for path in out.rglob("*") if path.is_file()) == files
    assert [path.read_bytes() for path in files] == before
    run.save_hub()
    assert card.read_text(encoding="utf-8") == "# Mine"
    SftRun(recipe, out).resume()


def test_a_recipe_with_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    path.write_text("learning_rat = 1\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(SetupError, match="learning_rat"):
        read_recipe(path)


def test_ctrl_c_in_the_command_saves_and_says_how_to_go_on(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()

    def interrupt() -> None:
        while not (out / "log.jsonl").exists():
            if ended.wait(0.05):
                return
        os.kill(os.getpid(), signal.SIGINT)

    watching = threading.Thread(target=interrupt)
    watching.start()
    recipe = write_recipe(tmp_path, tokens=5_000_000)
    try:
        assert cli.run(["train", "sft", "--recipe", str(recipe), "--out", str(out), "--threads", "1"]) == 1
    finally:
        ended.set()
        watching.join()
    assert "run the same command with --resume" in capsys.readouterr().err
    assert (out / "state.pt").exists()


def test_a_run_leaves_a_manifest_of_what_it_was_made_from(recipe: SftRecipe, unbroken: SftRun) -> None:
    manifest = read_manifest(unbroken.out)
    assert manifest.state == "done"
    assert manifest.recipe == recipe.model_dump(mode="json")
    assert manifest.seeds == {"data": recipe.seed}
    assert {name.split()[0] for name in manifest.data} == {"world", "tokenizer"}
    assert manifest.figures["tokens"] == unbroken.place.tokens
    assert 0 < manifest.figures["policy_loss"] < 10
