"""What a short text makes of the question before it, and what is left to the policy."""

from datetime import date

import pytest

from agent.loop.follow_up import FollowUp, read_follow_up, resolved

TODAY = date(2026, 11, 27)
SWEDEN = "What is the capital of Sweden?"


def filters(read: FollowUp | None) -> dict[str, str]:
    assert read is not None
    return {condition.name: condition.value for condition in read.filters}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("only the last two years", {"after": "2024-11-27"}),
        ("Only the last 3 months, please", {"after": "2026-08-29"}),
        ("in the last year", {"after": "2025-11-27"}),
        ("this year", {"after": "2026-01-01"}),
        ("since 2020", {"after": "2020"}),
        ("only sources from March 2021", {"after": "2021-03"}),
        ("before 2015?", {"before": "2015"}),
        ("from 2015 to 2020", {"after": "2015", "before": "2020"}),
        ("between 2015 and 2020", {"after": "2015", "before": "2020"}),
        ("just 2023", {"after": "2023", "before": "2023"}),
        ("show me only articles newer than 2 weeks", {"after": "2026-11-13"}),
        ("2019-2021 only", {"after": "2019", "before": "2021"}),
        ("and in 2023-24?", {"after": "2023", "before": "2024"}),
        ("only 1999-00", {"after": "1999", "before": "2000"}),
        ("only 2011-12", {"after": "2011-12", "before": "2011-12"}),
    ],
)
def test_a_period_narrows_the_question_before(text: str, wanted: dict[str, str]):
    read = read_follow_up(text, before=SWEDEN, today=TODAY)
    assert read
    assert read.question == SWEDEN
    assert filters(read) == wanted


@pytest.mark.parametrize("text", ["only the last fıve years", "since aprıl 2020"])
def test_a_letter_of_another_alphabet_is_no_number_and_no_month(text: str):
    assert read_follow_up(text, before=SWEDEN, today=TODAY) is None


@pytest.mark.parametrize(
    ("before", "text", "question"),
    [
        (SWEDEN, "and for Norway?", "What is the capital of Norway?"),
        (SWEDEN, "What about Norway?", "What is the capital of Norway?"),
        (SWEDEN, "how about in New Zealand", "What is the capital of New Zealand?"),
        (
            "Where was the director of Aurora Falls born?",
            "and Cedar Hill?",
            "Where was the director of Cedar Hill born?",
        ),
        ("Who won the cup in 1998?", "and in 2002?", "Who won the cup in 2002?"),
        ("Did Sweden vote with Norway in 1994?", "and with Denmark?", "Did Sweden vote with Denmark in 1994?"),
    ],
)
def test_another_name_takes_the_place_of_the_only_one(before: str, text: str, question: str):
    read = read_follow_up(text, before=before, today=TODAY)
    assert read == FollowUp(question)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("check the second claim again", 2),
        ("please verify claim 3", 3),
        ("Re-check the 1st statement", 1),
        ("double-check the last sentence", 0),
    ],
)
def test_a_claim_is_named_by_its_number(text: str, number: int):
    read = read_follow_up(text, before=SWEDEN, today=TODAY)
    assert read
    assert read.claim == number


@pytest.mark.parametrize(
    "text",
    [
        "And who is the king?",
        "what about it?",
        "and how many people live there?",
        "Who directed Aurora Falls since 2020?",
        "How long did the last two years take?",
        "check whether the claim is right",
        "and for Norway, which has two official languages, and for everyone who ever lived there or near there?",
        "",
    ],
)
def test_what_is_not_surely_a_change_is_left_as_it_is(text: str):
    assert read_follow_up(text, before=SWEDEN, today=TODAY) is None


@pytest.mark.parametrize(
    ("before", "text", "question"),
    [
        (
            "Who designed the dam of Lake Ormen?",
            "And the pumping station?",
            "Who designed the pumping station of Lake Ormen?",
        ),
        ("What is the capital of Sweden?", "and the population?", "What is the population of Sweden?"),
        ("When was the dam opened?", "What about the road?", "When was the road opened?"),
        ("Where was the ferry built?", "and the lighthouse?", "Where was the lighthouse built?"),
        ("How deep is the lake?", "And the river?", "How deep is the river?"),
    ],
)
def test_another_thing_takes_the_place_of_the_only_one(before: str, text: str, question: str):
    assert read_follow_up(text, before=before, today=TODAY) == FollowUp(question)


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("What is the name of the mountain in Kenya?", "and the river?"),
        ("When did the dam open?", "and the road?"),
        ("What is the best way to cook rice?", "and the cheapest?"),
        ("Who hands out laptops?", "and the keys?"),
    ],
)
def test_of_two_things_or_none_nothing_is_guessed(before: str, text: str):
    assert read_follow_up(text, before=before, today=TODAY) is None


def test_two_names_are_not_guessed_between():
    assert read_follow_up("and Denmark?", before="Did Sweden beat Norway?", today=TODAY) is None


def test_changes_add_up_over_the_turns_before():
    history = [(SWEDEN, "Stockholm"), ("only the last two years", "Stockholm")]
    read = resolved("and for Norway?", history, today=TODAY)
    assert read
    assert read.question == "What is the capital of Norway?"
    assert filters(read) == {"after": "2024-11-27"}
    later = resolved("since 2020", [*history, ("and for Norway?", "Oslo")], today=TODAY)
    assert later
    assert (later.question, filters(later)) == ("What is the capital of Norway?", {"after": "2020"})
    assert resolved("and for Norway?", [], today=TODAY) is None


@pytest.mark.parametrize("text", ["only from 2020-02-30", "only 2020-13", "between 2021-22 and 2023-24"])
def test_what_is_no_date_is_no_period(text: str):
    read = read_follow_up(text, before=SWEDEN, today=TODAY)
    assert read is None or not read.filters


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("check the second claim again", 2),
        ("Can you please double-check claim 2?", 2),
        ("verify the last statement", 0),
        ("Check whether the first point of the treaty was kept", None),
        ("can you confirm statement 3 of the constitution of Norway?", None),
    ],
)
def test_a_claim_is_checked_again_only_where_nothing_else_is_meant(text: str, claim: int | None):
    read = read_follow_up(text, before=SWEDEN, today=TODAY)
    assert (read.claim if read else None) == claim
