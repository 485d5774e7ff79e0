"""The layout keeps the bounds that docs/adr sets it."""

from pathlib import Path
from typing import Final

import pytest

from tests import house

TESTS: Final = Path(__file__).parent


def test_the_wheel_holds_little_data():
    assert house.data_bytes() < 8e6


def test_few_modules_are_loose():
    assert len(house.loose()) <= 16


def test_at_most_a_fifth_of_the_modules_have_one_importer():
    assert len(house.with_one_importer()) / len(house.modules()) <= 1 / 5


def test_no_public_class_name_is_used_twice():
    assert not house.classes_used_twice()


def test_the_words_of_the_old_vocabulary_are_gone():
    assert not house.old_words(), "words that replaced them: docs/adr/0034-one-vocabulary-and-a-layout.md"


def test_tests_are_shorter_than_what_they_test():
    assert house.test_lines() / (house.lines() + house.lab_lines()) < 0.8


@pytest.mark.slow
def test_a_question_passes_few_files_on_its_way_to_the_loop():
    assert len(house.passed_by_ask()) <= 40
    assert len(house.passed_by_chat()) <= 12


def test_make_slow_reads_every_file_that_has_a_slow_test():
    marked = {path for path in TESTS.rglob("*.py") if "mark.slow" in path.read_text(encoding="utf-8")}
    elsewhere = {TESTS / "train" / "environments" / "trainers.py"}  # for `make trainers`
    assert len(marked) > 40
    assert {path for path in marked if not path.name.startswith("test_")} == elsewhere


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config):
    left_out = [pattern for pattern in pytestconfig.getini("norecursedirs") if "*" not in pattern]
    folders = {part for path in TESTS.rglob("test_*.py") for part in path.relative_to(TESTS).parts[:-1]}
    assert not folders & set(left_out)
