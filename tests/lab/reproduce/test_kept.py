"""Answers beside the page: a study in an empty folder goes on from them, and from nothing that another plan gave."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.errors import SetupError
from lab.reproduce.design import Side
from lab.reproduce.evaluating import read_answers
from lab.reproduce.findings import as_figures, findings_of
from lab.reproduce.jobs import Job, jobs_for, needed
from lab.reproduce.kept import ANSWERS_FILE, keep, take
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import all_arms
from lab.reproduce.run import reproduce
from lab.reproduce.study import Study
from lab.reproduce.verdict import figures
from tests.lab.reproduce import small
from tests.lab.reproduce.small import small_study

pytestmark = pytest.mark.train

EM = {"em": [1.0, 0.0, 1.0], "searches": [2.0, 1.0, 4.0]}


def all_jobs(study: Study) -> list[Job]:
    return jobs_for(study, list(all_arms().values()))


def study_with_answers(folder: Path) -> Study:
    """One whose two arms were answered, kept beside a page in `docs`."""
    folder.mkdir()
    study = small_study(folder)
    for arm in ("top-1", "top-3"):
        small.keep(study, arm, 1, EM)
    keep(study, all_jobs(study), Ledger(study.out), folder / "docs")
    return study


def test_an_empty_folder_gets_the_answers_and_the_figures_are_the_same(tmp_path: Path) -> None:
    study = study_with_answers(tmp_path / "first")
    before = as_figures(study, findings_of(study, Ledger(study.out)))
    shutil.rmtree(study.out)
    ledger = Ledger(study.out)
    assert take(study, all_jobs(study), ledger, tmp_path / "first" / "docs") == 2
    assert as_figures(study, findings_of(study, Ledger(study.out))) == before
    answers = read_answers(study.answers_folder("top-3", 1)) or {}
    assert list(figures(Side(arm="top-3", metric="searches"), answers).values()) == [2.0, 1.0, 4.0]


def test_what_another_plan_gave_is_not_taken_and_what_the_folder_has_is_left(tmp_path: Path) -> None:
    study_with_answers(tmp_path / "first")
    docs = tmp_path / "first" / "docs"
    (tmp_path / "other").mkdir()
    other = small_study(tmp_path / "other", questions=5)
    assert take(other, all_jobs(other), Ledger(other.out), docs) == 0
    (tmp_path / "same").mkdir()
    same = small_study(tmp_path / "same")
    small.keep(same, "top-1", 1, {"em": [0.0]})
    assert take(same, all_jobs(same), Ledger(same.out), docs) == 1
    assert len(read_answers(same.answers_folder("top-1", 1)) or {}) == 1


def test_what_is_kept_of_other_jobs_stays(tmp_path: Path) -> None:
    study = study_with_answers(tmp_path / "first")
    docs = tmp_path / "first" / "docs"
    some = [job for job in all_jobs(study) if job.name == "evaluated/top-3/1"]
    keep(study, some, Ledger(study.out), docs)
    shutil.rmtree(study.out)
    assert take(study, all_jobs(study), Ledger(study.out), docs) == 2


def test_a_training_whose_answers_are_all_there_is_not_made_again(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    names = ("dag-trained", "dag-web-alone")
    jobs = jobs_for(study, [all_arms()[name] for name in names])
    assert {job.kind for job in jobs} == {"start", "trained", "evaluated"}
    for name in names:
        small.keep(study, name, 1, EM)
    said: list[str] = []
    reproduce(study, jobs, processes=0, say=said.append)
    assert said == []
    left = [job for job in jobs if job.name != "evaluated/dag-trained/1"]
    assert needed(left) == left
    assert [job.kind for job in needed(left[:2])] == []


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    study = study_with_answers(tmp_path / "first")
    (tmp_path / "first" / "docs" / ANSWERS_FILE).write_bytes(b"no archive")
    with pytest.raises(SetupError, match=r"answers\.jsonl\.xz cannot be read"):
        take(study, all_jobs(study), Ledger(study.out), tmp_path / "first" / "docs")
