"""The layout keeps the bounds that docs/adr sets it."""

import pytest

from tests import house


def test_the_wheel_holds_little_data():
    assert house.data_bytes() < 8e6


def test_few_modules_are_loose():
    assert len(house.loose()) <= 16


def test_at_most_a_third_of_the_modules_have_one_importer():
    assert len(house.with_one_importer()) / len(house.modules()) < 1 / 3


def test_no_public_class_name_is_used_twice():
    assert not house.classes_used_twice()


def test_the_words_of_the_old_vocabulary_are_gone():
    assert not house.old_words(), "words that replaced them: docs/adr/0034-one-vocabulary-and-a-layout.md"


def test_tests_are_shorter_than_what_they_test():
    assert house.test_lines() / (house.lines() + house.lab_lines()) < 0.8


@pytest.mark.slow
def test_a_question_passes_few_files_on_its_way_to_the_loop():
    assert len(house.passed_by_ask()) <= 42
    assert len(house.passed_by_chat()) <= 12
