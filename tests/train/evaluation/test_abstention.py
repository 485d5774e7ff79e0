import re

import pytest

from train.evaluation.abstention import LABELS, LONGEST, OPENINGS, TURNS, abstains


@pytest.mark.parametrize(
    "answer",
    [
        "I do not know",
        "I don't know.",
        "I don’t know the answer to this question.",
        "We do not have enough information to tell.",
        "Unknown",
        "N/A",
        "Not stated.",
        "No answer found",
        "unanswerable",
        "There is no information about her birthplace in the passages.",
        "The passages do not mention where Lina Orr was born.",
        "The provided information does not say.",
        "It is not known who built the harbour.",
        "It cannot be determined from what was found.",
        "This question cannot be answered.",
        "Cannot be determined",
        "I could not find who directed it.",
        "I was unable to find an answer",
        "Sorry, I can't answer that.",
        "I'm not sure.",
        "Not enough information.",
        "Nothing was found.",
        "The answer is unknown.",
        "The answer is not stated in the passages.",
        "The answer is unclear.",
        "The answer is not available.",
        "The answer is unanswerable.",
        "The answer is impossible to determine.",
        "There is no information in the passages. The answer is not stated.",
        "I don't know what the answer is.",
        "I'm unable to answer",
        "I’m not able to answer this question.",
        "We're unable to determine that.",
        "The provided passages do not contain this information.",
        "The passages provided don't contain this information.",
        "The context does not contain this information.",
        "The pages that were found do not contain this information.",
        "Impossible to say",
        "I have no idea!",
    ],
)
def test_saying_that_one_does_not_know_is_an_abstention(answer: str):
    assert abstains(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " … ",
        "Trieste",
        "no",
        "None",
        "0",
        "No one",
        "Unknown Pleasures",
        "The Unknown Soldier",
        "I Know What You Did Last Summer",
        "I do not know for certain, but probably Trieste.",
        "It is not stated in the passages; however, the answer is Trieste",
        "I could not find it in the news. The answer is Trieste.",
        "I'm not sure, my best guess is Trieste",
        "The exact date is unclear, but it was 1944",
        "The answer is unclear, but it was 1944",
        "The answer is not stated in the passages. The answer is Trieste.",
        "The answer is not available, probably Trieste",
        "I'm unable to answer from the passages; however, it was 1944",
        "The passages do not contain this information, but it was Trieste",
        "The answer is Trieste",
        "The answer is not Trieste",
        "It is known as Tarn.",
        "The passages say that she was born in Trieste.",
        "He did not know her",
        "No Country for Old Men",
        "Not Fade Away",
        "I do not know " + "much of it and yet it happened " * 10,
    ],
)
def test_an_answer_that_answers_is_none_and_neither_is_an_empty_one(answer: str):
    assert not abstains(answer)


def test_what_counts_is_listed():
    assert all(abstains(label) for label in LABELS)
    assert all(re.compile(pattern) for pattern in (*OPENINGS, *TURNS))
    assert LONGEST == 50
