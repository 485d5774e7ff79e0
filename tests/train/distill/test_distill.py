import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.trace.io import write_traces
from tests.train.distill.made import WORLD, questions, rollouts
from tests.train.sft.test_run import RECIPE
from train.distill.rows import read_rows
from train.safety.manifest import hash_of, read_manifest

pytestmark = [pytest.mark.train, pytest.mark.slow]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "traces.jsonl"
    write_traces(path, rollouts())
    return path


def distill(traces: Path, out: Path, *more: str) -> int:
    return run(["train", "distill", "--traces", str(traces), "--world", WORLD, "--out", str(out), *more])


def test_traces_become_rows_with_a_table_and_a_manifest(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distill(traces, tmp_path / "out") == 0
    rows = list(read_rows(tmp_path / "out" / "rows.jsonl"))
    printed = capsys.readouterr().out
    assert f"{len(rows)} of {len(rollouts())} rollouts kept" in printed
    assert "cairn chain" in printed
    manifest = read_manifest(tmp_path / "out")
    assert (manifest.kind, manifest.state) == ("distill", "done")
    assert manifest.figures["kept"] == len(rows)
    assert manifest.data["traces.jsonl"] == hash_of(traces)
    assert manifest.data["rows"] == hash_of(tmp_path / "out" / "rows.jsonl")
    assert {row.question for row in rows} <= {question.question for question in questions()}


def test_files_of_one_name_are_both_recorded_with_their_hashes(traces: Path, tmp_path: Path) -> None:
    other = tmp_path / "traces.jsonl"
    write_traces(other, rollouts()[:3])
    assert distill(traces, tmp_path / "out", "--traces", str(other)) == 0
    data = read_manifest(tmp_path / "out").data
    assert {data[str(traces)], data[str(other)]} == {hash_of(traces), hash_of(other)}
    assert distill(traces, tmp_path / "out") == 0
    assert set(read_manifest(tmp_path / "out").data) == {"questions", "traces.jsonl", "rows"}


def test_where_nothing_is_kept_the_error_names_the_most_frequent_reason(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distill(traces, tmp_path / "out", "--reward", "outcome", "--least", "total=9") == 1
    assert "most often because total of the reward is below 9" in capsys.readouterr().err
    assert read_manifest(tmp_path / "out").state == "stopped"


def test_a_sampling_that_traces_had_already_is_refused(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag in (["--tries", "4"], ["--temperature", "0.8"]):
        assert distill(traces, tmp_path / "out", *flag) == 2
        assert "are made already" in capsys.readouterr().err


def test_a_part_that_the_reward_does_not_have_is_refused(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distill(traces, tmp_path / "out", "--reward", "outcome", "--least", "merge=1") == 1
    assert "has no part 'merge'" in capsys.readouterr().err
    assert distill(traces, tmp_path / "out", "--least", "merge=1") == 1
    assert "name it with --reward" in capsys.readouterr().err


def test_no_list_is_taken_that_was_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CAIRN_WORLD", raising=False)
    assert run(["train", "distill", "--out", str(tmp_path / "out")]) != 0
    assert "name the questions" in capsys.readouterr().err


def test_a_policy_answers_where_there_are_no_traces_and_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["train", "distill", "--world", WORLD, "--limit", "4", "--tries", "2", "--temperature", "1"]
    assert run([*ask, "--out", str(tmp_path)]) == 0
    assert "of 8 rollouts kept" in capsys.readouterr().out
    before = (tmp_path / "rollouts" / "1" / "traces.jsonl").read_bytes()
    (tmp_path / "rollouts").rename(tmp_path / "asked")  # as an earlier version called it
    assert run([*ask, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "rollouts" / "1" / "traces.jsonl").read_bytes() == before


def test_a_question_that_failed_and_was_tried_again_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "distill", "--world", WORLD, "--limit", "4", "--out", str(tmp_path)]
    assert run(command) == 0
    for name, failed in (("traces", {"id": "other"}), ("results", {"status": "failed", "trace": "other"})):
        path = tmp_path / "rollouts" / "0" / f"{name}.jsonl"
        first, *others = path.read_text(encoding="utf-8").splitlines()
        before = json.dumps(json.loads(first) | failed)
        path.write_text("\n".join([before, first, *others, ""]), encoding="utf-8")
    assert run(command) == 0
    assert capsys.readouterr().out.count("of 4 rollouts kept") == 2


def test_supervised_training_learns_the_rows(traces: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    assert distill(traces, tmp_path / "out") == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(tokens=90_000), encoding="utf-8")
    rows = tmp_path / "out" / "rows.jsonl"
    arguments = ["train", "sft", "--recipe", str(recipe), "--rows", str(rows), "--out", str(tmp_path / "run")]
    assert run([*arguments, "--threads", "1"]) == 0
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert log[-1]["policy_loss"] < 0.8 * log[0]["policy_loss"]
    assert read_manifest(tmp_path / "run").data["rows rows.jsonl"] == hash_of(rows)
