"""What a check finds, where, and what it must never take for support."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.checks import check_claim
from agent.checks.tokens import sentences
from agent.evidence import Passage
from agent.trace import DOUBTED, Claim

TEXT = "Lina Orr is a director.  She was born in “Trieste”, in 1970. Orr lives in Rome; she never married."
ORR = Passage(id="1", source="wiki", title="Lina Orr", text=TEXT, number=1)
FALLS = Passage(id="2", source="wiki", title="Aurora Falls", text="Aurora Falls was directed by Lina Orr.", number=2)
SHOWN = {1: (ORR,), 2: (FALLS,)}
WORDS = "Lina Orr Trieste Rome she was not born in 1970 12 May | ( ) ; : , . ’s [3] — directed by and who Ünï 你好 \n".split(
    " "
)


def check(text: str, *cites: int) -> Claim:
    return check_claim(Claim(text=text, cites=cites or (1,)), SHOWN)


def test_words_of_the_passage_are_verbatim_whatever_their_case_quotes_and_spaces():
    claim = check('she was BORN in "Trieste", in 1970')
    assert claim.check == "verbatim"
    (quote,) = claim.quotes
    assert (quote.number, TEXT[quote.start : quote.end]) == (1, quote.text)
    assert quote.text == "She was born in “Trieste”, in 1970"


def test_a_paraphrase_is_close_and_quotes_the_sentence_that_supports_it():
    claim = check("The birthplace of Lina Orr is Trieste.")
    assert claim.check == "close"
    assert [quote.text for quote in claim.quotes] == ["She was born in “Trieste”, in 1970."]
    assert all(TEXT[quote.start : quote.end] == quote.text for quote in claim.quotes)


def test_a_claim_with_two_facts_needs_both_and_may_find_them_in_two_passages():
    both = check("Lina Orr directed Aurora Falls and was born in Trieste.", 1, 2)
    assert (both.check, [quote.number for quote in both.quotes]) == ("close", [1, 2])
    assert check("Lina Orr directed Aurora Falls and was born in Rome.", 1, 2).check == "not_found"
    assert check("Lina Orr directed Aurora Falls and was born in Trieste.", 2).check == "not_found"


@pytest.mark.parametrize("cites", [(), (7,), (7, 8)])
def test_a_claim_that_cites_nothing_that_was_shown_is_not_found(cites: tuple[int, ...]):
    claim = check_claim(Claim(text="She was born in Trieste.", cites=cites), SHOWN)
    assert (claim.check, claim.quotes) == ("not_found", ())


@pytest.mark.parametrize(
    "text",
    [
        "Lina Orr died in Trieste.",
        "Lina Orr was born in Rome.",
        "Lina Orr was born in 1971.",
        "It is not true that Lina Orr was born in Trieste.",
        "Marta Orr was born in Trieste.",
        "The painter Lina Orr was born in Trieste.",
        "Lina Orr was born in Trieste to Ada Orr.",
        "",
        "…",
    ],
)
def test_a_claim_with_one_thing_wrong_is_not_found(text: str):
    assert check(text).check == "not_found"


@pytest.mark.parametrize(
    "text", ["Lina Orr was not born in Trieste.", "Lina Orr married.", "Trieste was born in Lina Orr."]
)
def test_a_claim_of_which_the_passage_says_the_contrary_is_contradicted(text: str):
    assert (check(text).check, check(text).quotes) == ("contradicted", ())


def test_words_that_the_passage_takes_back_are_no_support():
    text = "It is not true that Lina Orr was born in Rome. Experts deny that Lina Orr lives in Paris."
    shown = {1: (Passage(id="1", source="web", title="", text=text),)}
    for claim in ("Lina Orr was born in Rome.", "Lina Orr lives in Paris."):
        assert check_claim(Claim(text=claim, cites=(1,)), shown).check in DOUBTED


def test_the_title_says_whom_a_page_is_about():
    page = Passage(
        id="1", source="wiki", title="Aurora Falls (film)", text="The film was directed by Lina Orr in 2025."
    )
    assert check_claim(Claim(text="Lina Orr directed Aurora Falls.", cites=(1,)), {1: (page,)}).check == "close"
    assert check_claim(Claim(text="Lina Orr directed Boreal Falls.", cites=(1,)), {1: (page,)}).check == "not_found"


@pytest.mark.parametrize(
    "text",
    [
        "Lina Orr, born: Trieste",
        "Lina Orr, born in: Trieste",
        "Lina Orr, occupation: director",
        "Aurora Falls, directed by: Lina Orr",
        "Boreal Run, country of origin: Italian",
        "Boreal Run, country of origin: Italy",
    ],
)
def test_a_claim_in_short_may_name_its_relation_by_a_verb_or_say_what_something_is(text: str):
    run = Passage(id="3", source="wiki", title="Boreal Run", text="Boreal Run is a 1938 Italian drama film.", number=3)
    assert check_claim(Claim(text=text, cites=(1, 2, 3)), {**SHOWN, 3: (run,)}).check == "close"


@pytest.mark.parametrize(
    "text",
    ["Lina Orr, born city: Trieste", "Aurora Falls, directed film: Lina Orr", "Aurora Falls, directed 1970: Lina Orr"],
)
def test_a_claim_in_short_whose_relation_is_no_known_one_is_never_contradicted(text: str):
    assert check(text, 1, 2).check != "contradicted"


def test_a_triple_is_a_sentence():
    triples = Passage(id="1", source="kg", title="", text="Lina Orr | mentor | Ada Holt\nAda Holt | spouse | Ivo Holt")
    shown = {1: (triples,)}
    assert check_claim(Claim(text="Ada Holt taught Lina Orr.", cites=(1,)), shown).check == "close"
    assert check_claim(Claim(text="Lina Orr taught Ada Holt.", cites=(1,)), shown).check == "contradicted"
    (quote,) = check_claim(Claim(text="Ivo Holt is married to Ada Holt.", cites=(1,)), shown).quotes
    assert quote.text == "Ada Holt | spouse | Ivo Holt"


def test_under_one_number_several_passages_may_stand():
    shown = {1: (FALLS, ORR)}
    claim = check_claim(Claim(text="Lina Orr was born in Trieste.", cites=(1,)), shown)
    assert (claim.check, claim.quotes[0].text) == ("close", "She was born in “Trieste”, in 1970.")


@given(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
)
def test_any_text_can_be_checked_and_a_quote_is_what_stands_at_its_place(text: str, said: str):
    passage = Passage(id="1", source="web", title="Lina Orr", text=text)
    claim = check_claim(Claim(text=said, cites=(1,)), {1: (passage,)})
    assert bool(claim.quotes) <= (claim.check not in DOUBTED)
    assert all(text[quote.start : quote.end] == quote.text for quote in claim.quotes)


@given(st.text(max_size=60), st.text(max_size=40))
def test_no_text_breaks_a_check(text: str, said: str):
    claim = check_claim(Claim(text=said, cites=(1,)), {1: (Passage(id="1", source="web", title=said, text=text),)})
    assert all(text[quote.start : quote.end] == quote.text for quote in claim.quotes)


@given(st.sampled_from(["She was born in Trieste.", "Orr lives in Rome", "Lina Orr is a director."]), st.data())
def test_a_sentence_of_the_passage_is_found_however_it_is_spaced_and_written(sentence: str, data: st.DataObject):
    passage = ORR.model_copy(update={"text": "Lina Orr is a director. She was born in Trieste. Orr lives in Rome."})
    spaces = data.draw(st.sampled_from([" ", "  ", "\n", "\t"]))
    said = re.sub(" ", spaces, data.draw(st.sampled_from([sentence, sentence.upper(), sentence.lower()])))
    assert check_claim(Claim(text=said, cites=(1,)), {1: (passage,)}).check == "verbatim"


def test_a_text_without_any_full_stop_is_read_in_pieces_that_lose_nothing():
    text = "Ada Orr married Ivo Holt and then " * 400 + "Lina Orr was born in Trieste"
    (quote,) = check_claim(
        Claim(text="Lina Orr comes from Trieste.", cites=(1,)), {1: (ORR.model_copy(update={"text": text}),)}
    ).quotes
    assert len(quote.text) <= 1500
    assert text[quote.start : quote.end] == quote.text
    assert quote.text.endswith("Lina Orr was born in Trieste")
    pieces = sentences(text)
    assert "".join(text[s.start : s.end] for s in pieces).replace(" ", "") == text.replace(" ", "")
