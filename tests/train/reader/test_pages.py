"""The reader's words and pages: nothing is learned here."""

import random

from hypothesis import given
from hypothesis import strategies as st

from train.reader.pages import ReaderPage, Span, lay_out, whole_pages
from train.reader.words import FIRST_NAME, NAMES, NUMBER, ReaderVocabulary, split

PAGES = [
    ReaderPage("web Dune", "Frank Herbert wrote Dune in 1965."),
    ReaderPage("kg", "Frank Herbert | born in | Tacoma"),
]


@given(st.text())
def test_every_piece_stands_where_it_says(text: str):
    words = split(text)
    assert [word.text for word in words] == [text[word.start : word.end].lower() for word in words]
    left = text
    for word in reversed(words):
        left = left[: word.start] + left[word.end :]
    assert not any(character.isalnum() for character in left)


def test_a_vocabulary_holds_what_is_common_to_many_worlds_and_no_numbers():
    worlds = [["Lina Orr was born in 1965."], ["Ben Ash was born in 1965."], ["no one lives here"]]
    assert set(ReaderVocabulary.common(worlds, share=0.6).words) == {"was", "born", "in", "."}


def test_a_name_has_one_id_on_a_sheet_that_means_nothing_on_the_next():
    vocabulary = ReaderVocabulary(["was", "born", "in"])
    sheet = lay_out("Orr was born in 1965 Orr", [], most_words=99)
    ids = sheet.ids(vocabulary, random.Random(1))
    assert ids[0] == ids[-1]
    assert FIRST_NAME <= ids[0] < FIRST_NAME + NAMES
    assert ids[4] == NUMBER
    assert len(set(ids[1:4])) == 3
    assert {sheet.ids(vocabulary, random.Random(seed))[0] for seed in range(20)} != {ids[0]}


def test_an_answer_is_found_wherever_it_stands_but_never_across_two_texts():
    sheet = lay_out("Who is Frank Herbert?", PAGES, most_words=99)
    assert [sheet.written(span) for span in sheet.find("frank herbert")] == ["Frank Herbert"] * 3
    assert sheet.find("Tacoma Frank") == sheet.find("Dune Frank") == sheet.find("") == []
    assert sheet.find("Dune in 1965") == [Span(10, 12)]


def test_words_are_distinguished_by_their_place():
    sheet = lay_out("Who?", PAGES, most_words=99)
    assert sheet.kinds[:5] == [0, 0, 1, 1, 2]
    assert sheet.segments[:5] == [0, 0, 1, 1, 1]
    assert max(sheet.segments) == 2


def test_a_sheet_ends_where_the_model_does():
    sheet = lay_out("Who?", PAGES, most_words=6)
    assert [word.text for word in sheet.words] == ["who", "?", "web", "dune", "frank", "herbert"]


def test_only_whole_pages_are_given_and_no_later_one_jumps_the_queue():
    long, short = ReaderPage("", "x" * 50), ReaderPage("", "y")
    assert whole_pages([short, long, short], chars=20) == [short]
    assert whole_pages([short, short], chars=2) == [short, short]
    assert whole_pages([long], chars=49) == []


def test_equal_words_have_equal_keys_and_marks_have_none():
    sheet = lay_out("Orr, orr; 12 012", [], most_words=99)
    assert sheet.keys == [1, 0, 1, 0, 2, 3]
    assert sheet.values[-2:] == [12 / 4000, 12 / 4000]
