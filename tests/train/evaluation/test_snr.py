import pytest

from agent.trace import Gathered, Merged, Searched
from tests.train.evaluation.traces import FERRY, HARBOUR, MARN, QUESTION, passage, trace_of, whole
from train.evaluation.gold import GoldBook
from train.evaluation.snr import Signal, block_snr, distinctive_answers, passages_snr, snr_of


def test_a_passage_is_signal_if_it_is_gold_or_holds_the_answer():
    signal = Signal(QUESTION, [HARBOUR, FERRY])
    other = passage("other", "Dell is a village.")
    assert [signal.is_passage(p) for p in (HARBOUR, FERRY, other)] == [True, False, True]
    assert not signal.is_passage(passage("x", "Dellwood is a town."))


def test_yes_no_and_single_letters_say_nothing():
    for gold in ("yes", "No.", "l", "7"):
        question = QUESTION.model_copy(update={"answers": (gold,), "supporting": ()})
        assert distinctive_answers(question) == []
        assert snr_of(question, whole()) == {"snr_query": None, "snr_information": None, "snr_merge": None}
    assert distinctive_answers(QUESTION.model_copy(update={"answers": ("no", "Dell", "12")})) == ["Dell", "12"]


def test_a_sentence_is_signal_if_it_holds_the_answer_or_stands_mostly_in_gold():
    signal = Signal(QUESTION, [HARBOUR, FERRY])
    assert signal.is_sentence("She comes from Dell, I think.")
    assert signal.is_sentence("Tarn Harbour was built by Ilse Marn [1].")
    assert not signal.is_sentence("The ferry to Brell leaves at noon [2].")
    assert not signal.is_sentence("[1]")


def test_gold_that_was_not_found_is_read_in_the_book():
    sentence = "Ilse Marn was an engineer."
    assert not Signal(QUESTION, []).is_sentence(sentence)
    assert Signal(QUESTION, [], GoldBook.of([QUESTION], [MARN])).is_sentence(sentence)


def test_shares_are_of_words_and_what_is_missing_is_left_out():
    signal = Signal(QUESTION, [HARBOUR])
    assert passages_snr([HARBOUR, FERRY], signal) == pytest.approx(11 / 19)
    assert block_snr("It was built by Ilse Marn. It rains.\nMissing: where she was born", signal) == pytest.approx(
        6 / 8
    )
    assert block_snr("Still missing: everything", signal) is None
    assert passages_snr([], signal) is None


def test_a_merge_that_drops_the_noise_is_better_than_what_it_was_made_of():
    clean = trace_of(
        Searched(round=1, node="A", source="web", query="q", passages=(HARBOUR, FERRY)),
        Gathered(round=1, passages=(HARBOUR, FERRY)),
        Merged(text="Tarn Harbour was built by Ilse Marn [1]."),
    )
    found = snr_of(QUESTION, clean)
    assert found["snr_merge"] == 1.0
    assert found["snr_information"] is not None
    assert found["snr_information"] < 1.0


def test_without_a_merge_there_is_no_figure_for_it():
    assert snr_of(QUESTION, trace_of(Gathered(round=1, passages=(FERRY,)))) == {
        "snr_query": None,
        "snr_information": 0.0,
        "snr_merge": None,
    }
