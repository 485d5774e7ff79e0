"""The floor's rules: which parts of a question are searched, and what a verbose reply comes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policies.ladder import plain
from agent.policies.ladder.moves import CitedSentence, SearchMove
from agent.policies.ladder.plain import choices_of, parts_of, wants_short, wants_yes_or_no
from agent.policies.ladder.state import SearchedRound, State, numbered

PASSAGES = (
    "[1] Silver Tide — Silver Tide is a film of 1987. It was directed by Ada Moss.\n"
    "[2] Ada Moss — Ada Moss (born 4 May 1931 in Bergen) is a director.\n"
    "  She lives in Oslo."
)


def state(question: str) -> State:
    return State(question, rounds=(SearchedRound(SearchMove(("x",)), PASSAGES),))


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Where was the director of Silver Tide born?", ("Silver Tide",)),
        ("Are both Silver Tide and Crude Set Drama films?", ("Silver Tide", "Crude Set Drama")),
        ("Who is older, Ada Moss or Lina van der Orr?", ("Ada Moss", "Lina van der Orr")),
        ("What is the population of Ada Moss's birthplace?", ("Ada Moss",)),
        ('Who sang "love me tender" first?', ("love me tender",)),
        ("what is entropy?", ()),
    ],
)
def test_the_names_and_quotations_of_a_question_are_searched_too(question: str, parts: tuple[str, ...]):
    assert parts_of(question) == parts
    assert plain.plan(question).queries[1:] == parts


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("Did Ada Moss direct Silver Tide?", ("yes", "no")),
        ("Which film came out first, 3 Dots or Dying God?", ("3 Dots", "Dying God")),
        ("Was Angus Wagner or Juan Falcón born first?", ("Angus Wagner", "Juan Falcón")),
        ("Who directed Silver Tide?", ()),
    ],
)
def test_a_question_may_offer_its_answers(question: str, choices: tuple[str, ...]):
    assert choices_of(question) == choices


@pytest.mark.parametrize(
    ("question", "said", "short"),
    [
        ("Where was Ada Moss born?", "The answer is: Bergen.", "Bergen"),
        ("Where was Ada Moss born?", "Bergen [2]", "Bergen"),
        ("Where was Ada Moss born?", 'Answer: "Bergen"', "Bergen"),
        (
            "Where was Ada Moss born?",
            "Ada Moss was born in the town of Bergen, in Norway.",
            "town of Bergen, in Norway",
        ),
        ("Did Ada Moss direct Silver Tide?", "Yes, Ada Moss directed it in 1987.", "yes"),
        ("Did both films come from Norway?", "The films came from different countries.", "no"),
        ("Are Ada Moss and Lina Orr directors?", "Ada Moss and Lina Orr are both directors.", "yes"),
        ("Did Ada Moss direct Silver Tide?", "The passages do not say who directed it.", "The passages do not say"),
        ("Which came first, Silver Tide or Dying God?", "The film that came first is Dying God (2008).", "Dying God"),
        ("Where was Ada Moss born?", "I do not know.", "I do not know"),
        (
            "Who is older, Lina Orr or Mira Toll?",
            "Lina Orr was born in 1950 and Mira Toll in 1931, so Mira Toll is older.",
            "Mira Toll",
        ),
        ("Who is older, Lina Orr or Mira Toll?", "Lina Orr is younger, therefore it is Mira Toll.", "Mira Toll"),
        ("Who is older, Lina Orr or Mira Toll?", "Mira Toll is much older in years than Lina Orr is.", "Mira Toll"),
        ("Who is older, Lina Orr or Mira Toll?", "Lina Orr was born in 1950.", "Lina Orr"),
        (
            "Who is older, Lina Orr or Mira Toll?",
            "Lina Orr was born in 1950 and Mira Toll in 1931.",
            "Lina Orr was born in 1950 and Mira Toll in 1931",
        ),
        (
            "Which film came out first, Aurora Falls or Long Road?",
            "Aurora Falls came out in 1987 and Long Road in 1979. The answer is Long Road.",
            "Long Road",
        ),
        (
            "Was Lina Orr born in Trieste?",
            "There is no information about her place of birth.",
            "There is no information about her place of birth",
        ),
        ("Is Mira Toll a publisher?", "No information is given about that.", "No information is given about that"),
        ("Is Mira Toll a publisher?", "It is not stated in the passages.", "It is not stated in the passages"),
        ("Is Mira Toll a publisher?", "She founded a press, so the answer is yes.", "yes"),
        ("Is Mira Toll a publisher?", "No, she is a painter.", "no"),
    ],
)
def test_a_verbose_reply_comes_to_its_short_answer(question: str, said: str, short: str):
    assert plain.reduced(said, question) == short


def test_an_open_question_keeps_its_sentences_and_their_marks():
    said = "Silver Tide is a film of 1987 [1]. Its director was born in Bergen [2]. It is fine."
    move = plain.answer_of(said, state("Explain who made Silver Tide."), short=False)
    assert move is not None
    assert move.text == said
    assert move.evidence == (
        CitedSentence("Silver Tide is a film of 1987.", (1,)),
        CitedSentence("Its director was born in Bergen.", (2,)),
    )


def test_the_cited_passage_is_quoted_before_others():
    move = plain.answer_of("Ada Moss [2]", state("Who directed Silver Tide?"), short=True)
    assert move is not None
    assert move.evidence == (CitedSentence("Ada Moss (born 4 May 1931 in Bergen) is a director.", (2,)),)


def test_passages_are_read_by_number_with_their_further_lines():
    assert list(numbered(PASSAGES)) == [1, 2]
    assert numbered(PASSAGES)[2].endswith("She lives in Oslo.")


@pytest.mark.parametrize(
    ("question", "short"),
    [("Who directed Silver Tide?", True), ("Explain how BM25 works.", False), ("Why is the sky blue?", False)],
)
def test_only_some_questions_want_a_few_words(question: str, short: bool):
    assert wants_short(question) == short


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_breaks_the_rules(question: str, said: str):
    assert len(parts_of(question)) <= 3
    assert isinstance(wants_yes_or_no(question), bool)
    assert plain.plan(question or "x").queries
    plain.reduced(said, question)
    plain.answer_of(said, state(question), short=wants_short(question))
