"""Expert iteration in the little world, with a small policy: rounds, resumption after a kill, the best by dev."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

import agent  # noqa: E402 - only where torch is
from agent import cli  # noqa: E402
from agent.errors import SetupError  # noqa: E402
from agent.trace.io import read_traces  # noqa: E402
from agent.world import load_world  # noqa: E402
from lab.shipped import HUB  # noqa: E402
from tests.docs.blocks import ROOT  # noqa: E402
from tests.train.iterate.small import QUESTIONS, as_toml, iterate_recipe  # noqa: E402
from tests.train.rl.small import recipe as rl_recipe  # noqa: E402
from train.common.recipe import read_recipe  # noqa: E402
from train.iterate.recipe import IterateRecipe, read_iterate_recipe  # noqa: E402
from train.iterate.record import PartRecord, best_of, read_records  # noqa: E402
from train.iterate.run import IterateRun  # noqa: E402
from train.models.adapters import read_adapter  # noqa: E402
from train.safety.manifest import hash_of, read_manifest  # noqa: E402

pytestmark = pytest.mark.train


class Killed(BaseException):
    """What no part of a run catches, as it catches no kill."""


def silent(what: str, done: int, total: int) -> None:
    """Shows nothing."""


KILLS = (
    "round-1: rollouts of a try",
    "round-1: trained tokens",
    "round-2: rollouts of a try",
    "round-2: dev questions",
)


def go_until_killed(run: IterateRun, *, seen: Counter[str]) -> bool:
    """Go on until one of these moves for the second time; False where it was killed there."""

    def show(what: str, done: int, total: int) -> None:
        seen[what] += 1
        if what in KILLS and seen[what] == 2:
            raise Killed

    try:
        return run.go(show, resume=seen.total() > 0)
    except (Killed, BaseExceptionGroup) as error:  # a group of tasks ends with a group of errors
        if isinstance(error, BaseExceptionGroup) and error.subgroup(Killed) is None:
            raise
        return False


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_that_is_killed_in_every_part_repeats_nothing_finished_and_ends_as_one_that_never_stopped(
    tmp_path: Path,
) -> None:
    torch.set_num_threads(1)
    recipe = iterate_recipe(tmp_path)
    straight = IterateRun(recipe, tmp_path / "straight")
    assert straight.go(silent)
    out, seen, kills = tmp_path / "killed", Counter[str](), 0
    while not go_until_killed(run := IterateRun(recipe, out), seen=seen):
        kills += 1
    assert kills == len(KILLS)
    figures = [record.model_dump(exclude={"seconds"}) for record in run.records]
    assert figures == [record.model_dump(exclude={"seconds"}) for record in straight.records]
    assert [record.rollouts for record in run.records] == [None, 2 * QUESTIONS, 2 * QUESTIONS]
    for name in ("round-1/sft/adapter", "round-2/sft/adapter", "hub"):
        assert hash_of(out / name / weights_in(name)) == hash_of(tmp_path / "straight" / name / weights_in(name))
    for seed in (2, 3, 4, 5):
        traces = list(read_traces(out / f"round-{seed // 2}" / "rollouts" / str(seed) / "traces.jsonl"))
        assert len({trace.question for trace in traces}) == len(traces) == QUESTIONS
    assert read_manifest(out).state == "done"
    first, second = (read_manifest(out / name / "sft") for name in ("round-1", "round-2"))
    assert (len(first.sessions), len(second.sessions)) == (2, 1), "one went on from its state, the other ran once"
    assert second.recipe["start"] == str(out / "round-1" / "sft" / "adapter"), "one adapter is trained further"
    assert second.data["rows rows.jsonl"] == hash_of(out / "round-2" / "rows.jsonl")


def test_a_run_does_not_go_on_with_another_recipe_of_its_training(tmp_path: Path) -> None:
    recipe = iterate_recipe(tmp_path)

    def kill(*_: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        IterateRun(recipe, tmp_path / "out").go(kill)
    recipe.sft.write_text(recipe.sft.read_text(encoding="utf-8") + "\n# as fast\n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"recipe.toml \(sft\) has changed since the run began"):
        IterateRun(recipe, tmp_path / "out").go(kill, resume=True)


def test_dev_questions_that_failed_give_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __init__(self, *_: object, **__: object) -> None: ...

        def run(self, *_: object) -> dict[str, float]:
            return {"em": 0.0, "n": 0, "infrastructure": 2}

    monkeypatch.setattr("train.iterate.run.Evaluation", Failing)
    with pytest.raises(SetupError, match=r"2 dev questions failed.*--resume"):
        IterateRun(iterate_recipe(tmp_path), tmp_path / "out").go(silent)
    assert not any(record.evaluated for record in read_records(tmp_path / "out"))


def test_reinforcement_learning_needs_no_start_of_its_own(tmp_path: Path) -> None:
    rl = tmp_path / "rl.toml"
    text = as_toml(rl_recipe(protocols=("multisearch",)))
    rl.write_text("".join(line for line in text.splitlines(True) if not line.startswith("start")), encoding="utf-8")
    recipe = iterate_recipe(tmp_path).model_copy(update={"rl": rl})

    def begun(what: str, done: int, total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        IterateRun(recipe, tmp_path / "out").go(begun)


@pytest.mark.parametrize("wrong", ["sft", "rl", "keep"])
def test_what_a_round_will_use_is_checked_before_anything_is_sampled(tmp_path: Path, wrong: str) -> None:
    recipe = iterate_recipe(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_text("nonsense = 1\n", encoding="utf-8")
    match wrong:
        case "keep":
            keep = recipe.keep.model_copy(update={"reward": "outcome", "least": {"nope": 1.0}})
            recipe = recipe.model_copy(update={"keep": keep})
        case _:
            recipe = recipe.model_copy(update={wrong: broken})

    def never(what: str, done: int, total: int) -> None:
        raise AssertionError(what)

    with pytest.raises(SetupError):
        IterateRun(recipe, tmp_path / "out").go(never)
    assert not (tmp_path / "out" / "rounds.jsonl").exists()


def weights_in(name: str) -> str:
    return "adapter_model.safetensors" if name.endswith("adapter") else "model.safetensors"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rounds_alternate_with_reinforcement_learning_and_the_command_prints_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("trl")
    rl = rl_recipe(1, rollout={"prompts": 1, "group": 2, "engine": "transformers"}, data={"people": 30})
    (tmp_path / "rl.toml").write_text(as_toml(rl), encoding="utf-8")
    anything = {"right": False, "supported": False}
    recipe = iterate_recipe(
        tmp_path, rl=str(tmp_path / "rl.toml"), sample={"tries": 1}, sft_from="start", keep=anything
    )
    (tmp_path / "iterate.toml").write_text(as_toml(recipe), encoding="utf-8")
    out = tmp_path / "out"
    command = ["train", "iterate", "--recipe", str(tmp_path / "iterate.toml"), "--out", str(out), "--threads", "1"]
    assert cli.run(command) == 0
    printed = capsys.readouterr().out
    assert "1, then RL" in printed
    assert f"trained: {out / 'hub'}" in printed.replace("\n", "")
    assert [record.name for record in read_records(out)] == ["round-0", "round-1", "round-1-rl", "round-2"]
    assert read_manifest(out / "round-1-rl" / "rl").recipe["start"] == str(out / "round-1" / "sft" / "hub")
    traces = read_traces(out / "round-2" / "rollouts" / "2" / "traces.jsonl")
    assert {trace.policy for trace in traces} == {"small-1-rl"}
    assert read_manifest(out / "round-2" / "sft").recipe["start"] == recipe.start
    report = (out / "report.md").read_text(encoding="utf-8")
    assert len([line for line in report.splitlines() if line.startswith("| ")]) == 5
    assert cli.run(command) == 1
    assert "already has a run" in capsys.readouterr().err


def test_dev_questions_that_are_sampled_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    recipe = iterate_recipe(tmp_path, dev={"agent": {}})
    with pytest.raises(SetupError, match=f"{QUESTIONS} of {QUESTIONS} dev questions are sampled, too"):
        IterateRun(recipe, tmp_path / "out").go(silent)
    assert not (tmp_path / "out" / "round-0").exists()


def test_dev_questions_that_reinforcement_learning_trains_on_are_refused(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    recipe = iterate_recipe(tmp_path)
    dev = load_world(str(tmp_path / "dev")).questions
    lines = [{"id": one.id, "question": one.question, "answers": one.answers} for one in dev[:2]]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rl = rl_recipe(1, rollout={"prompts": 1, "group": 2}, data={"questions": str(questions)})
    (tmp_path / "rl.toml").write_text(as_toml(rl), encoding="utf-8")
    recipe = recipe.model_copy(update={"rl": tmp_path / "rl.toml"})
    with pytest.raises(SetupError, match=f"2 of {QUESTIONS} dev questions are trained on by `rl`, too"):
        IterateRun(recipe, tmp_path / "out").go(silent)
    assert not (tmp_path / "out" / "round-0").exists()


def test_the_first_of_the_best_parts_is_kept() -> None:
    ems = [0.5, 0.7, 0.7, None]
    records = [PartRecord(round=at, part="sft", dev_em=em) for at, em in enumerate(ems)]
    assert best_of(records).round == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"agent": {"model": "x"}}, "'model' cannot be set for the agent here"),
        ({"dev": {"agent": {"policy": "openai"}}}, "it writes with each round's weights"),
        ({"keep": {"least": {"total": 1}}}, "are about a reward"),
    ],
)
def test_a_recipe_that_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    said: dict[str, Any] = {"kind": "iterate", "name": "x", "start": "x", "seed": 1, "rounds": 1, "sft": "x"}
    with pytest.raises(ValueError, match=why):
        IterateRecipe.model_validate({**said, "sample": {}, "dev": {}, **changes})


@pytest.mark.parametrize("name", ["iterate", "tiny_iterate"])
def test_the_shipped_recipes_can_be_read_with_those_that_they_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    recipe = read_iterate_recipe(Path("train/recipes") / f"{name}.toml")
    sft = read_recipe(recipe.sft)
    assert recipe.agent["protocol"] in sft.protocols
    start = read_adapter(Path(recipe.start))
    assert start is None or (
        sft.adapter is not None and (start.rank, start.alpha) == (sft.adapter.rank, sft.adapter.alpha)
    )
    assert recipe.rules().each >= 1


def test_what_is_kept_is_judged_by_the_protocol_of_a_file(tmp_path: Path) -> None:
    text = (Path(agent.__file__).parent / "protocols" / "multisearch.toml").read_text(encoding="utf-8")
    for file in (Path(agent.__file__).parent / "protocols").glob("multisearch.*.txt"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    own = tmp_path / "mine.toml"
    own.write_text(text.replace('name = "multisearch"', 'name = "mine"'), encoding="utf-8")
    said: dict[str, Any] = {"kind": "iterate", "name": "x", "start": str(HUB), "seed": 1, "rounds": 1, "sft": "x"}
    said |= {"sample": {}, "dev": {}, "keep": {"reward": "outcome"}, "agent": {"protocol": str(own)}}
    rules = IterateRecipe.model_validate(said).rules()
    assert rules.protocol is not None
    assert rules.protocol.name == "mine"
    assert rules.reward is not None
    assert rules.reward.tools.protocol == rules.protocol
    assert IterateRecipe.model_validate({**said, "agent": {"protocol": "multisearch"}}).rules().protocol is None


def test_the_start_of_an_adapter_is_merged_into_its_model_once(tmp_path: Path) -> None:
    """small-v1 is an adapter, too."""
    from train.models.pretrained import open_pretrained

    begun = open_pretrained(str(HUB), adapter=read_recipe(ROOT / "train/recipes/iterate_sft.toml").adapter, bf16=False)
    (tmp_path / "adapter").mkdir()
    begun.save_adapter(tmp_path / "adapter")
    recipe = iterate_recipe(tmp_path, start=str(tmp_path / "adapter"), dev={"agent": {}})
    run = IterateRun(recipe, tmp_path / "out")
    with pytest.raises(SetupError, match="are sampled, too"):
        run.go(silent)
    assert (tmp_path / "out" / "round-0" / "hub" / "model.safetensors").is_file()
    config = json.loads((tmp_path / "out" / "round-0" / "hub" / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "qwen3"
