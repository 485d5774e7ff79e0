"""A run as a whole: what it leaves, what stops it, and what a kill or a full disk cannot take."""

import json
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

safetensors: Any = pytest.importorskip("safetensors.torch")

from agent import cli  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from tests.fixtures.make_engine import make_hub  # noqa: E402
from tests.train.apart import command  # noqa: E402
from tests.train.rl.failing import Dying, Hopeless, Lucky, full_disk_from  # noqa: E402
from tests.train.rl.small import PAIR, brief, hot_checkpoint, recipe  # noqa: E402
from train.rewards.registry import reward_of  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.run import BatchNotFilled, RlRun  # noqa: E402
from train.rl.session import TRACES, Around, training_session  # noqa: E402
from train.rl.states import newest_state, updates_of  # noqa: E402
from train.rl.tasks import Tasks  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402

pytestmark = pytest.mark.train

Steps = list[tuple[int, Mapping[str, float]]]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy of random weights."""
    return str(make_hub(tmp_path_factory.mktemp("start") / "hub"))


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(hot_checkpoint(tmp_path_factory.mktemp("hot") / "hub"))


def _run(
    small: RlRecipe, out: Path, *, resume: bool = False, tasks: Tasks | None = None, around: Around | None = None
) -> Steps:
    steps: Steps = []
    assert RlRun(small, out, threads=1, tasks=tasks, around=around).go(
        lambda step, figures: steps.append((step, figures)), resume=resume
    )
    return steps


def _weights(hub: Path) -> Mapping[str, Any]:
    return safetensors.load_file(hub / "model.safetensors")


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_run_leaves_a_model_with_card_manifest_figures_and_traces(start: str, tmp_path: Path) -> None:
    report = {"evaluate_every_steps": 2, "dev_questions": 4, "save_every_steps": 2, "traces": 1}
    small = brief(start, 2, rollout=PAIR, report=report)
    steps = _run(small, tmp_path / "run")
    assert [step for step, _ in steps] == [1, 2]
    assert 0 <= steps[0][1]["trainer/dev_em"] <= 1
    assert not _same(_weights(tmp_path / "run" / "hub"), _weights(Path(start)))
    assert (tmp_path / "run" / "hub" / "README.md").read_text(encoding="utf-8").startswith("# small\n")
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.state, manifest.figures["steps"]) == ("done", 2.0)
    lines = (tmp_path / "run" / "monitors.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]
    assert len((tmp_path / "run" / "traces.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_the_rate_warms_up_whatever_comes_after(start: str, tmp_path: Path, schedule: str) -> None:
    optimizer = {"lr": 1e-3, "warmup_steps": 2, "schedule": schedule}
    steps = _run(brief(start, 3, rollout=PAIR, optimizer=optimizer), tmp_path / "run")
    assert [figures["trainer/learning_rate"] for _, figures in steps] == pytest.approx([5e-4, 1e-3, 1e-3])


def test_a_run_that_was_cut_ends_in_the_weights_of_one_that_was_not(start: str, tmp_path: Path) -> None:
    small = brief(start, 3, rollout={"prompts": 1, "group": 4}, optimizer={"minibatches": 2, "epochs": 2})
    _run(small, tmp_path / "whole")

    class Cut(Exception):
        """What a kill would be, between two steps."""

    def cut(step: int, _: Mapping[str, float]) -> None:
        if step == 2:
            raise Cut

    with pytest.raises(Cut):
        RlRun(small, tmp_path / "cut", threads=1).go(cut)
    assert newest_state(tmp_path / "cut") == tmp_path / "cut" / "states" / "checkpoint-4"
    steps = _run(small, tmp_path / "cut", resume=True)
    assert [step for step, _ in steps] == [2, 3]
    assert _same(_weights(tmp_path / "cut" / "hub"), _weights(tmp_path / "whole" / "hub"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["embedded", pytest.param("transformers", marks=pytest.mark.long)])
def test_a_run_that_was_killed_ends_in_the_weights_of_one_that_was_not(engine: str, start: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(
        TOML.format(start=start, engine=engine, concurrency=1 if engine == "transformers" else 64), encoding="utf-8"
    )
    words = ["train", "rl", "--recipe", str(path), "--threads", "1", "--out"]
    assert cli.run([*words, str(tmp_path / "whole")]) == 0
    killed = command(*words, str(tmp_path / "cut"))
    steps, moment = random.choice([1, 2, 3]), random.random() / 4  # seconds; another one in every run
    while not (state := newest_state(tmp_path / "cut")) or updates_of(state) < steps:
        assert killed.is_alive()
        time.sleep(0.01)
    killed.join(moment)
    killed.kill()
    killed.join()
    assert not (tmp_path / "cut" / "hub").exists()
    assert cli.run([*words, str(tmp_path / "cut"), "--resume"]) == 0
    assert _same(_weights(tmp_path / "cut" / "hub"), _weights(tmp_path / "whole" / "hub"))


TOML = """
kind = "rl"
name = "small"
start = "{start}"
protocols = ["reflect"]
seed = 3
steps = 16
[data]
people = 12
questions_per_world = 6
[rollout]
engine = "{engine}"
concurrency = {concurrency}
prompts = 1
group = 4
policy_tokens = 24
answer_tokens = 8
[[reward]]
name = "outcome"
[learning]
name = "grpo"
overlong = {{ longest = 24, buffer = 24, penalty = 0.5 }}
[optimizer]
lr = 1e-3
micro_batches = 2
[report]
save_every_steps = 1
[safety]
without = ["answers are no longer closed", "every rollout gets the same reward", "rollouts run into their length limit", "the policy writes noise"]
"""


def test_a_full_disk_loses_nothing_that_was_saved_before(start: str, tmp_path: Path) -> None:
    small = brief(start, 2, rollout=PAIR)
    run = RlRun(small, tmp_path / "run", threads=1)
    with pytest.raises(SetupError, match="step 2 could not be saved") as raised, full_disk_from(2) as on_step:
        run.go(on_step)
    assert "--resume" in str(raised.value)
    assert [path.name for path in (tmp_path / "run" / "states").iterdir()] == ["checkpoint-1"]
    assert read_manifest(tmp_path / "run").state == "stopped"
    assert [step for step, _ in _run(small, tmp_path / "run", resume=True)] == [2]


def test_a_model_that_could_not_be_written_is_written_when_the_run_goes_on(start: str, tmp_path: Path) -> None:
    small, out = brief(start, 1, rollout=PAIR), tmp_path / "run"
    out.mkdir()
    (out / "hub").write_text("in the way", encoding="utf-8")
    with pytest.raises(SetupError, match="hub could not be saved"):
        _run(small, out)
    (out / "hub").unlink()
    assert _run(small, out, resume=True) == []
    kept = safetensors.load_file(out / "states" / "checkpoint-1" / "model.safetensors")
    assert _same(_weights(out / "hub"), kept)


def test_ctrl_c_saves_after_the_step_and_the_run_goes_on_later(start: str, tmp_path: Path) -> None:
    small = brief(start, 3, rollout=PAIR, report={"save_every_steps": 3})
    run = RlRun(small, tmp_path / "run", threads=1)
    assert not run.go(lambda step, _: signal.raise_signal(signal.SIGINT) if step == 1 else None)
    assert read_manifest(tmp_path / "run").state == "interrupted"
    with pytest.raises(SetupError, match="already has a run; add --resume"):
        _run(small, tmp_path / "run")
    assert [step for step, _ in _run(small, tmp_path / "run", resume=True)] == [3]


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nothing to resume"):
        _run(recipe(1), tmp_path / "run", resume=True)


def test_a_weight_of_no_part_is_refused(tmp_path: Path) -> None:
    small = recipe(1, reward=({"name": "outcome", "weights": {"applause": 2.0}},))
    with pytest.raises(SetupError, match="'outcome' has no part applause; it has answer, format, overlong"):
        _run(small, tmp_path / "run")


@pytest.mark.parametrize(
    ("probe_every_steps", "why"),
    [
        (1, "the retriever is dead: before step 2, 'web' was searched"),
        pytest.param(9, "every search of the step failed", marks=pytest.mark.slow),
    ],
    ids=["before the step", "while it runs"],
)
def test_a_dead_retriever_stops_the_run_before_the_step_is_learned(
    probe_every_steps: int, why: str, hot: str, tmp_path: Path
) -> None:
    small = recipe(3, start=hot, rollout=PAIR, safety={"probe_every_steps": probe_every_steps})
    steps: Steps = []
    run = RlRun(small, tmp_path / "run", threads=1, tasks=Dying(small, dead_from=1))
    with pytest.raises(SetupError, match=why):
        run.go(lambda step, figures: steps.append((step, figures)))
    assert [step for step, _ in steps] == [1]
    assert newest_state(tmp_path / "run") == tmp_path / "run" / "states" / "checkpoint-1"
    manifest = read_manifest(tmp_path / "run")
    assert manifest.state == "stopped"
    assert "retriever is dead" in manifest.sessions[-1].why


def test_dynamic_sampling_fills_the_batch_with_groups_that_differ(start: str, tmp_path: Path) -> None:
    small = _flat(brief(start, 1, seed=4, learning={"name": "dapo"}))
    tasks = Hopeless(small, hopeless=lambda _, attempt: attempt < 2)
    ((_, figures),) = _run(small, tmp_path / "run", tasks=tasks, around=Lucky.of)
    assert figures["rollouts"] >= 18  # both groups of the first two rounds have equal rewards
    assert figures["trainer/resample_rounds"] >= 2
    assert (figures["trainer/batch_filled"], figures["trainer/rows"]) == (1.0, 6.0)


def test_dynamic_sampling_has_no_second_round_where_all_groups_differ(start: str, tmp_path: Path) -> None:
    small = brief(start, 1, rollout={"group": 8}, learning={"name": "dapo"})  # by a penalty for length
    ((_, once),) = _run(small, tmp_path / "run")
    assert (once["rollouts"], once["trainer/batch_filled"], once["trainer/resample_rounds"]) == (16, 1.0, 0.0)


def test_a_bound_on_the_rounds_leaves_a_smaller_batch_and_reports_it(start: str, tmp_path: Path) -> None:
    small = _flat(brief(start, 1, rollout={"group": 2}, learning={"name": "dapo", "resample": 2}))
    tasks = Hopeless(small, hopeless=lambda _step, _attempt: True)
    ((_, never),) = _run(small, tmp_path / "run", tasks=tasks, around=Lucky.of)
    assert (never["rollouts"], never["trainer/rows"]) == (12, 0)
    assert (never["trainer/batch_filled"], never["trainer/resample_rounds"]) == (0.0, 2.0)


def test_questions_that_teach_nothing_stop_the_run_before_it_samples_for_ever(start: str, tmp_path: Path) -> None:
    learning = {"name": "dapo", "resample_patience": 2}
    small = _flat(brief(start, 3, seed=4, rollout={"prompts": 1, "group": 6}, learning=learning))
    tasks = Hopeless(small, hopeless=lambda step, _: step == 1)
    with pytest.raises(BatchNotFilled, match="at step 2: 3 rounds in a row"):
        _run(small, tmp_path / "run", tasks=tasks, around=Lucky.of)
    assert newest_state(tmp_path / "run") == tmp_path / "run" / "states" / "checkpoint-1"
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.state, "0 of 1 groups" in manifest.sessions[-1].why) == ("stopped", True)


def _flat(small: RlRecipe) -> RlRecipe:
    """Without the penalty for length, by which no two rollouts have the same reward."""
    return small.model_copy(update={"learning": small.learning.model_copy(update={"overlong": None})})


def test_a_step_in_which_nothing_is_learned_moves_no_weight(start: str, tmp_path: Path) -> None:
    small = brief(start, 2, seed=4, optimizer={"weight_decay": 0.1}, rollout={"prompts": 1, "group": 6})
    small = _flat(small)
    tasks = Hopeless(small, hopeless=lambda step, _: step == 1)
    steps = _run(small, tmp_path / "run", tasks=tasks, around=Lucky.of)
    assert [figures["trainer/rows"] > 0 for _, figures in steps] == [True, False]
    first, second = (_weights(tmp_path / "run" / "states" / f"checkpoint-{step}") for step in (1, 2))
    assert not _same(first, _weights(Path(start)))
    assert _same(first, second)


def test_the_reward_of_a_stage_is_the_one_that_is_learned_from(start: str, tmp_path: Path) -> None:
    staged = ({"name": "outcome", "until": 0.5}, {"name": "multisearch"})
    (_, first), (_, second) = _run(brief(start, 2, rollout=PAIR, reward=staged), tmp_path / "run")
    own = set(reward_of("multisearch").parts) - set(reward_of("outcome").parts)
    assert own
    assert not {f"reward/{part}" for part in own} & first.keys()
    assert {f"reward/{part}" for part in own} <= second.keys()


def test_traces_are_taken_back_line_by_line_whatever_ends_of_lines_they_hold(tmp_path: Path) -> None:
    path = tmp_path / TRACES
    rows = [f'{{"step": {step}, "trace": {{"text": "one\u2028two\u0085three"}}}}' for step in (1, 2, 3)]
    path.write_bytes(("\n".join(rows) + '\n{"step": 3, "tr').encode())
    small = recipe(3)
    with training_session(small, tmp_path, after=2):
        pass
    assert path.read_bytes() == ("\n".join(rows[:2]) + "\n").encode()
