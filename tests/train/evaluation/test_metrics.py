import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.evaluation.metrics import cover, exact_match, f1, interval, mean, normalise, percentile

phrases = st.text(alphabet="ab the.A-é", max_size=14)
some_golds = st.lists(phrases, min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Lord of the Rings!", "lord of rings"),
        ("U.S.", "us"),
        ("Jay-Z", "jayz"),
        ("A", "a"),
        ("The The", "the the"),
        ("Theatre", "theatre"),
        ("…", "…"),
        ("!?", ""),
    ],
)
def test_normalisation_is_squads_but_never_leaves_an_article_empty(text: str, plain: str):
    assert normalise(text) == plain


@pytest.mark.parametrize("prediction", ["", " ", "!?"])
@pytest.mark.parametrize("golds", [["The"], ["!"], [""], ["Trieste", ""]])
def test_an_empty_prediction_is_wrong_whatever_the_gold_is(prediction: str, golds: list[str]):
    assert not exact_match(prediction, golds)
    assert f1(prediction, golds) == 0
    assert not cover(prediction, golds)


def test_any_of_several_golds_will_do():
    golds = ["Lina Orr", "L. Orr"]
    assert exact_match("l orr", golds)
    assert not exact_match("Lina", golds)
    assert f1("Lina", golds) == pytest.approx(2 / 3)


def test_f1_counts_each_word_as_often_as_it_stands():
    assert f1("new york york", ["new york"]) == pytest.approx(0.8)
    assert f1("york york", ["new york"]) == pytest.approx(0.5)


def test_cover_wants_whole_words_in_their_order():
    assert cover("It was Lina Orr, I think.", ["lina orr"])
    assert not cover("nothing", ["no"])
    assert not cover("Orr, Lina", ["Lina Orr"])


@given(phrases, some_golds)
def test_scores_are_bounded_and_agree(prediction: str, golds: list[str]):
    score = f1(prediction, golds)
    assert 0 <= score <= 1
    if exact_match(prediction, golds):
        assert score == 1
        assert cover(prediction, golds)
    if score == 0:
        assert not cover(prediction, golds)


@given(phrases, some_golds, phrases)
def test_another_gold_never_lowers_a_score(prediction: str, golds: list[str], more: str):
    assert f1(prediction, [*golds, more]) >= f1(prediction, golds)
    assert exact_match(prediction, [*golds, more]) >= exact_match(prediction, golds)
    assert cover(prediction, [*golds, more]) >= cover(prediction, golds)


@given(phrases)
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


@given(phrases.filter(normalise))
def test_the_gold_answer_itself_is_right(gold: str):
    assert exact_match(f" {gold.upper()}! ", [gold])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_interval_lies_within_the_values_and_repeats(values: list[float]):
    low, high = interval(values)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert interval(values) == (low, high)


def test_more_questions_make_the_interval_narrower():
    few, many = interval([0.0, 1.0] * 10), interval([0.0, 1.0] * 1000)
    assert few[0] < many[0] < 0.5 < many[1] < few[1]
    assert many[1] - many[0] == pytest.approx(0.0438, abs=0.004)  # 2 × 1.96 × sqrt(.25 / 2000)


def test_of_no_values_everything_is_nothing():
    assert (mean([]), interval([]), percentile([], 50)) == (0.0, (0.0, 0.0), 0.0)
