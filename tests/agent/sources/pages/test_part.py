"""The part of a page that becomes the passage."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.pages.part import PART_CHARS, SENTENCE_CHARS, best_part, sentences

FILLER = "Visitors came by boat in summer and by sledge in winter, and all of them signed the book. "
NEEDLE = "The lamp was replaced in 1903 by a paraffin burner from Bergen."


def page_with(needle: str, *, before: int, after: int) -> str:
    paragraph = FILLER * 4
    return "\n".join([paragraph] * before + [f"{FILLER}{needle} {FILLER}"] + [paragraph] * after)


@pytest.mark.parametrize(("before", "after"), [(0, 30), (15, 15), (30, 0), (0, 0)])
def test_the_part_holds_what_the_query_wants_and_its_neighbours(before: int, after: int):
    page = page_with(NEEDLE, before=before, after=after)
    part = best_part(page, "When was the lamp replaced by a burner?")
    assert NEEDLE in part.text
    assert FILLER.strip() in part.text
    assert page[part.start : part.end] == part.text
    assert part.score > 0
    assert len(part.text) > min(len(page), PART_CHARS) * 0.8


def test_what_the_query_wants_stands_near_the_beginning_of_its_part():
    part = best_part(page_with(NEEDLE, before=15, after=15), "paraffin burner")
    assert part.text.index(NEEDLE) < PART_CHARS / 3


def test_words_of_different_forms_meet():
    page = page_with("It replaces older burners.", before=9, after=9)
    assert "older burners" in best_part(page, "replaced burner").text


def test_two_rare_words_together_beat_one_often():
    often = "The lens was cleaned. " * 20
    together = "The lens came from Paris in 1884. "
    page = "\n".join([often, FILLER * 20, together, FILLER * 20])
    assert together.strip() in best_part(page, "lens from Paris", chars=400).text


def test_words_of_the_page_s_title_do_not_outweigh_the_rest_of_the_query():
    named = "Skerry Point has a lighthouse, and the Skerry Point lighthouse has a warden."
    page = "\n".join([named, FILLER * 30, NEEDLE, FILLER * 30])
    query = "Skerry lighthouse burner"
    assert NEEDLE not in best_part(page, query, chars=300).text
    assert NEEDLE in best_part(page, query, subject="The lighthouse on Skerry Point", chars=300).text


def test_a_page_without_the_words_gives_its_beginning():
    page = page_with(NEEDLE, before=15, after=15)
    part = best_part(page, "quantum chromodynamics")
    assert (part.start, part.score) == (0, 0.0)
    assert part.text.startswith(FILLER.strip())


def test_of_equal_parts_the_first_one_counts():
    page = "\n".join([NEEDLE, FILLER * 30, NEEDLE])
    assert best_part(page, "paraffin burner", chars=300).start == 0


@pytest.mark.parametrize("query", ["", "???", "the of and"])
def test_a_query_without_words_gives_the_beginning(query: str):
    assert best_part("Of one. And of two.", query).start == 0


def test_an_empty_page_has_no_part():
    assert best_part("", "lamp").text == ""
    assert best_part(" \n\n ", "lamp").text == ""


def test_sentences_end_where_readers_see_their_end():
    page = 'He said: "Go." Then 3.5 m of rope broke! Why?\nHeading\n\n灯台。光る。 End'
    assert [page[start:end] for start, end in sentences(page)] == [
        'He said: "Go."',
        "Then 3.5 m of rope broke!",
        "Why?",
        "Heading",
        "灯台。",
        "光る。",
        "End",
    ]


def test_a_stretch_without_an_end_is_cut_between_words():
    page = "word " * 500 + "x" * 1000
    pieces = [page[start:end] for start, end in sentences(page)]
    assert max(map(len, pieces)) <= SENTENCE_CHARS
    assert "".join("".join(pieces).split()) == "".join(page.split())
    assert all(set(piece.split()) <= {"word"} for piece in pieces[:6])


texts = st.text(alphabet=st.sampled_from("ab lamp.!?\n 灯。é\t"), max_size=800)


@given(texts, texts, st.integers(1, 300))
def test_a_part_is_a_piece_of_the_page_that_is_no_longer_than_requested(page: str, query: str, chars: int):
    part = best_part(page, query, chars=chars)
    assert page[part.start : part.end] == part.text
    assert len(part.text) <= chars
    assert bool(part.text) == bool(page.strip())


@given(texts)
def test_sentences_hold_every_word_once(page: str):
    spans = list(sentences(page))
    assert "".join("".join(page[start:end] for start, end in spans).split()) == "".join(page.split())
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_the_words_that_matter_are_found_wherever_they_stand():
    for at in range(0, 40, 3):
        assert NEEDLE in best_part(page_with(NEEDLE, before=at, after=40 - at), "paraffin burner from Bergen").text
