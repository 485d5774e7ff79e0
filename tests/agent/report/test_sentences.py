"""Which sentences of a page, and which claims, may be in a report."""

import pytest

from agent.evidence import Passage
from agent.report.sentences import plain, readable, sentences_of, supported
from agent.report.writing import read_section


def page(text: str) -> Passage:
    return Passage(id="a#1", source="corpus", title="A page", text=text)


def said(text: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(page(text))]


def test_prose_is_quoted_and_tables_code_lists_of_marks_and_headings_are_not():
    text = (
        "# A heading of the page.\n\nCairns are heaps of stones that show a path.\n\n| stone | weight |\n|---|---|\n"
        "| granite | 3 kg. |\n\n```sh\ncairn ask \"Where is the path of stones?\" and more.\n```\n"
        "- Walkers add one stone each when they pass.\nno capital and no stop at the end\n<!-- A comment is no prose. -->"
    )  # fmt: skip
    assert said(text) == ["Cairns are heaps of stones that show a path.", "Walkers add one stone each when they pass."]


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("A **cairn** is a `heap` of stones.", "A cairn is a heap of stones."),
        ("See the path ([Paths](paths.md)).", "See the path."),
        ("It says [the rules](rules.md#one) of stones.", "It says the rules of stones."),
        ("Stones were laid.[1] More came.[2]", "Stones were laid. More came."),
        ("Stones were laid here. [citation needed].", "Stones were laid here."),
        ("2. Lay the stone.", "Lay the stone."),
    ],
)
def test_marks_of_a_page_are_not_shown(marked: str, shown: str):
    assert plain(marked) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Short.",
        "it begins without a capital letter.",
        "It never ends, and then it stops without a stop",
        "One | two | three | four | five.",
        "See https://example.org/a for all of the rest.",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16.",
        "This has a (bracket that never closes in it.",
        f"{'Very long words and so on ' * 20}end.",
    ],
)
def test_what_cannot_be_read_alone_is_not_quoted(text: str):
    assert not readable(text)


def test_a_sentence_that_leans_on_another_knows_which():
    first, second = sentences_of(page("Lina Orr was a director of films. She was born in Trieste in 1931."))
    assert (first.leans, second.leans) == (False, True)
    assert second.before() == first


def test_a_leaning_sentence_whose_neighbour_cannot_be_quoted_has_none_before_it():
    (second,) = sentences_of(page("lina orr, no sentence\nShe was born in Trieste in 1931."))
    assert second.before() is None


def test_only_what_the_passages_support_is_found():
    orr = page("Lina Orr was born in Trieste in 1931.")
    found = supported("Lina Orr was born in Trieste.", "claim", [page("Nothing of it is here."), orr])
    assert found is not None
    assert found.passages == (orr,)
    assert [quote.number for quote in found.quotes] == [1]
    assert supported("Lina Orr was born in Naples.", "claim", [orr]) is None


def test_words_that_the_page_takes_back_are_not_quoted_as_a_claim():
    denied = page("It is not true that Lina Orr was born in Trieste in 1931.")
    assert supported("Lina Orr was born in Trieste in 1931.", "claim", [denied]) is None


def test_short_sentences_that_share_only_the_name_of_their_page_do_not_repeat_each_other():
    text = (
        "Lake Ormen is a lake in the north. The dam of Lake Ormen was designed by Petter Strand. "
        "The dam of Lake Ormen was designed by the engineer Petter Strand."
    )
    lake, dam, again = sentences_of(Passage(id="a#1", source="corpus", title="Lake Ormen › History", text=text))
    assert not dam.repeats([lake])
    assert again.repeats([lake, dam])


def test_sentences_about_other_years_or_sums_do_not_repeat_each_other():
    text = (
        "The total budget of the year 2021 was 500 euros. The total budget of the year 2022 was 700 euros. "
        "In the year 2021 the total budget was 500 euros in all."
    )
    first, other, again = sentences_of(Passage(id="a#1", source="corpus", title="Accounts", text=text))
    assert not other.repeats([first])
    assert again.repeats([first])


def test_what_a_model_thinks_before_it_writes_is_no_part_of_a_section():
    found = supported("Acme was led by Dr. Smith in 1990.", "quote", [page("Acme was led by Dr. Smith in 1990.")])
    assert found is not None
    text = "Acme comes first [1].\nI write it now.</think>\nDr. Smith led Acme in 1990. [1]"
    kept, refused = read_section(text, [found])
    assert ([one.text for one in kept], refused) == (["Dr. Smith led Acme in 1990."], [])
