import pytest

from train.evaluation.choices import chosen, in_words, right_options, set_f1

TOWNS = ("Dell", "Tarn", "New Tarn", "Brell")


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("Tarn", {1}),
        ("tarn.", {1}),
        ("New Tarn", {2}),
        ("It was New Tarn, I think.", {2}),
        ("B", {1}),
        ("(b)", {1}),
        ("[C]", {2}),
        ("D.", {3}),
        ("Option B", {1}),
        ("The correct answer is: (C)", {2}),
        ("The answer is option C", {2}),
        ("Answer: Tarn", {1}),
        ("B) Tarn", {1}),
        ("(C) the one in the north", {2}),
        ("A, C", {0, 2}),
        ("A and D", {0, 3}),
        ("Dell and Brell", {0, 3}),
        ("E", set[int]()),
        ("", set[int]()),
        ("Rome", set[int]()),
        ("A town", set[int]()),
    ],
)
def test_an_option_is_named_by_letter_or_in_words(answer: str, places: set[int]):
    assert chosen(answer, TOWNS) == places


def test_initials_are_no_letters_of_options():
    writers = ("D. H. Lawrence", "T. S. Eliot")
    assert chosen("D. H. Lawrence", writers) == {0}
    assert chosen("T. S. Eliot wrote it", writers) == {1}
    assert chosen("J. R. Tolkien", writers) == set()


def test_options_that_are_letters_or_numbers_are_taken_in_words_first():
    assert chosen("C", ("A", "C", "D", "E")) == {1}
    assert chosen("B", ("A", "C", "D", "E")) == {1}
    assert chosen("4", ("2", "4")) == {1}


def test_the_right_options_are_found_in_words_or_by_letter():
    assert right_options(("tarn",), TOWNS) == {1}
    assert right_options(("Dell", "Brell"), TOWNS) == {0, 3}
    assert right_options(("B",), ("-", "+")) == {1}
    assert right_options(("Rome",), TOWNS) == set()
    assert right_options(("B",), ()) == set()


def test_f1_between_sets():
    assert set_f1(frozenset({0, 1}), frozenset({1})) == pytest.approx(2 / 3)
    assert set_f1(frozenset({0}), frozenset({0})) == 1
    assert set_f1(frozenset(), frozenset({0})) == 0


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("B", "Tarn"),
        ("(c)", "New Tarn"),
        ("Tarn", "Tarn"),
        ("A, C", "A, C"),
        ("Z", "Z"),
        ("B) the old one", "B) the old one"),
    ],
)
def test_a_mere_letter_is_read_as_its_option(answer: str, text: str):
    assert in_words(answer, TOWNS) == text
    assert in_words(answer, ()) == answer
