"""The outline: from the user's headings, from what a model wrote, or from what a search found."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.evidence import Passage
from agent.report.outline import MOST_SECTIONS, document_of, outline_of, question_of, read_outline
from tests.agent.report.library import QUESTION, passages


def passage(id: str, title: str, text: str, score: float = 0.0) -> Passage:
    return Passage(id=id, source="corpus", title=title, text=text, score=score)


def headings(question: str, found: list[Passage], most: int = 6) -> list[str]:
    return [section.heading for section in outline_of(question, found, most=most)[0].sections]


def test_each_document_that_was_found_is_a_section():
    assert headings(QUESTION, passages(), most=3) == ["Aurora Falls", "Lina Orr", "The old harbour of Trieste"]


def test_a_single_document_is_divided_at_its_headings_with_its_introduction_first():
    found = [
        passage("a.md#3", "Cairns › How to build one", "Stones are laid on stones to build cairns of any size."),
        passage("a.md#2", "Cairns › Where they stand", "Cairns stand on passes and along paths without trees."),
        passage("a.md#1", "Cairns", "Cairns are heaps of stones that show a path to walkers."),
    ]
    assert headings("cairns", found, most=2) == ["Cairns", "How to build one"]
    assert headings("cairns", found, most=6) == ["Cairns", "Where they stand", "How to build one"]


def test_a_document_without_headings_is_divided_by_the_names_that_some_passages_have():
    texts = [
        "The storm Arwen came from the north in November and lasted for three days.",
        "The storm Arwen was named by the weather service a day before.",
        "In Scotland, the storm Arwen felled trees. Scotland was without power for days.",
        "The schools of Scotland were closed while the storm Arwen lasted.",
        "In Denmark, the storm Arwen flooded harbours. Denmark closed its bridges.",
        "Ferries from Denmark waited until the storm Arwen was over.",
    ]
    found = [passage(f"s-{n}", "Storm Arwen", text) for n, text in enumerate(texts)]
    outline, made_from = outline_of("Storm Arwen", found, most=6)
    assert [section.heading for section in outline.sections] == ["Storm Arwen", "Scotland", "Denmark"]
    assert [p.id for p in made_from[1]] == ["s-2", "s-3"]
    assert outline.sections[1].question == "What about Scotland in Storm Arwen?"


def test_documents_of_one_name_in_several_sources_are_one_section():
    found = [passage("a", "Lina Orr", "Lina Orr directed films."), passage("b", "Lina Orr", "Lina Orr painted, too.")]
    assert headings("Who is Lina Orr?", found) == ["Lina Orr"]


def test_uploads_of_one_name_are_documents_of_their_own():
    ids = [f"file-{digit * 24}#1" for digit in "ab"]
    first, second = (document_of(passage(id, "Minutes", "The board met.")) for id in ids)
    assert first != second
    assert first == document_of(passage(ids[0].replace("#1", "#2"), "Minutes › Votes", "All agreed."))


def test_a_document_with_little_of_the_question_is_left_out():
    found = [
        passage("a", "Aurora Falls", "Aurora Falls is a film by the director Lina Orr.", 9.0),
        passage("b", "Trade in 1962", "In 1962 the director of a bank spoke of trade.", 8.0),
        passage("c", "Aurora", "Nothing of it.", 1.0),
    ]
    assert headings("the director of the film Aurora Falls in 1962", found) == ["Aurora Falls"]


def test_what_answers_the_question_at_once_comes_first():
    found = [
        passage("a.md#1", "Checks", "Cairn checks claims by rules, and each of them has a name."),
        passage("faq.md#7", "Questions › How does Cairn check claims?", "Cairn checks each claim by rules."),
    ]
    assert headings("How does Cairn check claims?", found)[0] == "How does Cairn check claims?"


def test_nothing_found_leaves_one_section_that_asks_the_question():
    outline, made_from = outline_of(QUESTION, [], most=6)
    assert [section.question for section in outline.sections] == [QUESTION]
    assert made_from == ((),)


@pytest.mark.parametrize(
    ("heading", "about", "question"),
    [
        ("Where was she born?", "Lina Orr", "Where was she born in Lina Orr?"),
        ("Where was Lina Orr born?", "Lina Orr", "Where was Lina Orr born?"),
        ("Lina Orr", "Lina Orr", "What is Lina Orr?"),
        ("Early life", "Who is Lina Orr?", "What is Early life in Lina Orr?"),
        ("What a check says", "Evidence", "What a check says in Evidence?"),
        ("Damage", "Please write a report on the storm Arwen.", "What is Damage in storm Arwen?"),
    ],
)
def test_a_heading_becomes_a_question_that_can_be_searched(heading: str, about: str, question: str):
    assert question_of(heading, about=about) == question


def test_lines_of_a_model_are_read_whatever_stands_before_and_behind_them():
    text = (
        "I could write | What is it?\n</think>\nSure! Here it is:\n**Title: Lina Orr**\n1. **The film** | What is Aurora Falls?\n- Section: Her life | "
        "Where was Lina Orr born\nThe film | Again?\nno line of ours\n"
    )
    outline = read_outline(text, QUESTION, most=6)
    assert outline is not None
    assert outline.title == "Lina Orr"
    assert [(section.heading, section.question) for section in outline.sections] == [
        ("The film", "What is Aurora Falls?"),
        ("Her life", "Where was Lina Orr born?"),
    ]


@pytest.mark.parametrize("text", ["", "I would rather not.", "| |", "a | ?", "{}\n[]\n```"])
def test_what_is_no_outline_is_none(text: str):
    assert read_outline(text, QUESTION, most=6) is None


@given(st.text(max_size=2_000), st.integers(1, MOST_SECTIONS))
def test_whatever_a_model_writes_is_bounded_and_on_one_line(text: str, most: int):
    outline = read_outline(text, QUESTION, most=most)
    if outline:
        assert 1 <= len(outline.sections) <= most
        for section in outline.sections:
            assert 0 < len(section.heading) <= 120
            assert 0 < len(section.question) <= 300
            said = section.heading + section.question
            assert not {unicodedata.category(c) for c in said} & {"Cc", "Cs", "Co", "Zl", "Zp"}
            assert not set(said) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u200b")


@given(
    st.lists(st.builds(passage, st.text(max_size=8), st.text(max_size=40), st.text(max_size=200)), max_size=12),
    st.text(min_size=1, max_size=60),
    st.integers(1, MOST_SECTIONS),
)
def test_whatever_was_found_makes_a_bounded_outline_the_same_each_time(found: list[Passage], question: str, most: int):
    outline, made_from = outline_of(question, found, most=most)
    assert 1 <= len(outline.sections) == len(made_from) <= most
    assert outline_of(question, found, most=most) == (outline, made_from)
