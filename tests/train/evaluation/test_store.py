import json
from pathlib import Path

import pytest

from agent.errors import CorpusError, SetupError
from agent.trace import Trace
from train.evaluation.result import QuestionResult
from train.evaluation.store import RESULTS, RUN, TRACES, opened, read_results

CARD = {"protocol": "cairn 1", "seed": "0"}


def result(name: str, prediction: str = "yes") -> QuestionResult:
    return QuestionResult(
        id=name, question="Who?", type="", hops=None, answers=("yes",), prediction=prediction, trace=f"t-{name}"
    )


def trace(name: str) -> Trace:
    return Trace(id=f"t-{name}", question="Who?", protocol="cairn", policy="p")


def keep(folder: Path, *names: str, prediction: str = "yes") -> None:
    with opened(folder, CARD) as run:
        for name in names:
            run.keep(result(name, prediction), trace(name))


def test_what_was_kept_is_there_when_the_run_goes_on(tmp_path: Path):
    keep(tmp_path / "run", "a", "b")
    with opened(tmp_path / "run", CARD) as run:
        assert list(run.results) == ["a", "b"]
        assert run.results["a"] == result("a")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {RUN, RESULTS, TRACES}


def test_every_line_is_handed_over_before_the_next_question_ends(tmp_path: Path):
    with opened(tmp_path, CARD) as run:
        for n, name in enumerate("abc", start=1):
            run.keep(result(name), trace(name))
            assert [r.id for r in read_results(tmp_path)] == list("abc"[:n])
            assert len((tmp_path / TRACES).read_bytes().splitlines()) == n


def test_of_a_question_that_ran_again_the_last_result_counts(tmp_path: Path):
    keep(tmp_path, "a", "b", prediction="no")
    keep(tmp_path, "a")
    with opened(tmp_path, CARD) as run:
        assert {name: r.prediction for name, r in run.results.items()} == {"a": "yes", "b": "no"}


@pytest.mark.parametrize("cut", [b"{", b'{"id": "c", "question": "Wh', b"x" * 200_000, b"\xc3"])
def test_a_last_line_that_was_cut_off_is_removed_and_nothing_else(tmp_path: Path, cut: bytes):
    keep(tmp_path, "a", "b")
    before = {name: (tmp_path / name).read_bytes() for name in (RESULTS, TRACES)}
    for name in before:
        with (tmp_path / name).open("ab") as file:
            file.write(cut)
    with opened(tmp_path, CARD) as run:
        assert list(run.results) == ["a", "b"]
        assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_file_that_is_one_cut_off_line_becomes_empty(tmp_path: Path):
    keep(tmp_path)
    (tmp_path / RESULTS).write_bytes(b"y" * 100_000)
    with opened(tmp_path, CARD) as run:
        assert run.results == {}


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path):
    keep(tmp_path, "a")
    with (tmp_path / RESULTS).open("ab") as file:
        file.write(b"{}\n")
    keep_path = (tmp_path / RESULTS).read_bytes()
    with pytest.raises(SetupError, match=r"results\.jsonl, line 2 is not a result"), opened(tmp_path, CARD):
        pass
    assert (tmp_path / RESULTS).read_bytes() == keep_path


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (CARD | {"seed": "1"}, "a run with seed = 0, and this one has 1; choose another --out"),
        ({"protocol": "cairn 1"}, "a run with seed = 0, and this one has nothing"),
        (CARD | {"judge": "m"}, "a run with judge = nothing, and this one has m"),
    ],
)
def test_another_run_is_refused_with_the_difference(tmp_path: Path, other: dict[str, str], why: str):
    keep(tmp_path, "a")
    with pytest.raises(SetupError, match=why), opened(tmp_path, other):
        pass


def test_a_setting_that_is_empty_is_the_same_as_one_that_is_not_there(tmp_path: Path):
    keep(tmp_path, "a")
    with opened(tmp_path, CARD | {"judge": ""}) as run:
        assert list(run.results) == ["a"]


def test_two_evaluations_do_not_write_into_one_folder(tmp_path: Path):
    with (
        opened(tmp_path, CARD),
        pytest.raises(SetupError, match="another evaluation is writing"),
        opened(tmp_path, CARD),
    ):
        pass


def test_results_without_their_card_are_not_taken_for_this_runs(tmp_path: Path):
    keep(tmp_path, "a")
    (tmp_path / RUN).unlink()
    with pytest.raises(SetupError, match=r"results without their run\.json"), opened(tmp_path, CARD):
        pass


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be written to"), opened(tmp_path / "file" / "run", CARD):
        pass


def test_what_the_evaluation_itself_raises_is_not_taken_for_the_folders(tmp_path: Path):
    with pytest.raises(CorpusError, match="mine"), opened(tmp_path, CARD):
        raise CorpusError("mine")
    with pytest.raises(OSError, match="mine"), opened(tmp_path, CARD):
        raise OSError("mine")


def test_the_card_is_for_people_too(tmp_path: Path):
    keep(tmp_path)
    assert json.loads((tmp_path / RUN).read_text("utf-8")) == CARD
