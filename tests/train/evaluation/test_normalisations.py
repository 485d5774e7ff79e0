import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.evaluation.metrics import cover, cover_anywhere, exact_match, f1, f1_hotpotqa
from train.evaluation.normalisations import DEFAULT, NORMALISATIONS, none, squad, triviaqa, unicode

texts = st.text(max_size=24)
words = st.text(alphabet="abtheé-. _'’A1中ß", max_size=14)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        #  text            squad          triviaqa       unicode        none
        ("Jay-Z", ("jayz", "jay z", "jay z", "Jay-Z")),
        ("U.S.", ("us", "u s", "u s", "U.S.")),
        ("  The  Tarn ", ("tarn", "tarn", "tarn", "The Tarn")),
        ("The The", ("the the", "the the", "the the", "The The")),
        ("café", ("café", "café", "cafe", "café")),
        ("ﬁlm Ⅳ", ("ﬁlm ⅳ", "ﬁlm ⅳ", "film iv", "ﬁlm Ⅳ")),
        ("Straße", ("straße", "straße", "strasse", "Straße")),
        ("don’t", ("don’t", "don t", "don t", "don’t")),
        ("snake_case", ("snakecase", "snake case", "snake case", "snake_case")),
        ("東京タワー", ("東京タワー", "東京タワー", "東 京 タ ワ ー", "東京タワー")),
        ("「東京」、", ("「東京」、", "「東京」、", "東 京", "「東京」、")),
        ("서울특별시", ("서울특별시", "서울특별시", "서울특별시", "서울특별시")),
        ("हिन्दी", ("हिन्दी", "हिन्दी", "हिन्दी", "हिन्दी")),
        ("1,000", ("1000", "1 000", "1 000", "1,000")),
        ("5 October 1987", ("5 october 1987",) * 3 + ("5 October 1987",)),
        ("100 €", ("100 €", "100 €", "100 €", "100 €")),
        ("C++", ("c", "c", "c++", "C++")),
        ("…", ("…", "…", "", "…")),
        ("", ("", "", "", "")),
    ],
)
def test_each_normalisation_is_what_its_name_says(text: str, expected: tuple[str, str, str, str]):
    assert (squad(text), triviaqa(text), unicode(text), none(text)) == expected


@pytest.mark.parametrize("name", NORMALISATIONS)
@given(text=texts)
def test_normalising_twice_changes_nothing(name: str, text: str):
    by = NORMALISATIONS[name]
    assert by(by(text)) == by(text)


@pytest.mark.parametrize("name", NORMALISATIONS)
@given(said=words, golds=st.lists(words, min_size=1, max_size=3), more=words)
def test_scores_are_bounded_agree_and_never_fall_with_another_gold(name: str, said: str, golds: list[str], more: str):
    by = NORMALISATIONS[name]
    em, overlap, whole = exact_match(said, golds, by=by), f1(said, golds, by=by), cover(said, golds, by=by)
    assert em <= overlap <= 1
    assert em <= whole <= cover_anywhere(said, golds, by=by)
    assert overlap > 0 or not whole
    assert f1(said, [*golds, more], by=by) >= overlap
    assert exact_match(said, [*golds, more], by=by) >= em
    assert cover(said, [*golds, more], by=by) >= whole


@pytest.mark.parametrize("name", ["squad", "triviaqa", "unicode"])
@given(said=words, gold=words)
def test_case_articles_and_spaces_change_no_score(name: str, said: str, gold: str):
    by = NORMALISATIONS[name]
    dressed = f"  The {said} ".upper().lower() if "ß" not in said else f" the {said} "
    before, after = by(said), by(dressed)
    if before and before not in ("a", "an", "the") and set(before.split()) - {"a", "an", "the"}:
        assert after == before
        assert f1(dressed, [gold], by=by) == f1(said, [gold], by=by)


@pytest.mark.parametrize("name", ["squad", "triviaqa", "unicode"])
@given(text=words.filter(lambda text: any(c.isalnum() for c in text)))
def test_punctuation_around_changes_nothing(name: str, text: str):
    by = NORMALISATIONS[name]
    assert by(f"({text})!") == by(text)


@pytest.mark.parametrize(
    ("said", "gold", "em", "overlap", "whole"),
    [
        ("Yes, they are.", "yes", 0, 1 / 2, 1),
        ("no", "No.", 1, 1, 1),
        ("nothing", "no", 0, 0, 0),
        ("in 1912", "1912", 0, 2 / 3, 1),
        ("1912–1915", "1912", 0, 0, 0),
        ("5 October 1987", "October 5, 1987", 0, 1, 0),
        ("1,000", "1000", 1, 1, 1),
        ("twelve", "12", 0, 0, 0),
        ("", "The", 0, 0, 0),
        ("the", "the", 1, 1, 1),
        ("北京", "北京市", 0, 0, 0),
    ],
)
def test_tricky_answers_under_squads_normalisation(said: str, gold: str, em: int, overlap: float, whole: int):
    figures = (exact_match(said, [gold]), f1(said, [gold]), cover(said, [gold]))
    assert figures == pytest.approx((em, overlap, whole))


@pytest.mark.parametrize(
    ("said", "gold", "em", "overlap", "whole"),
    [
        ("北京", "北京市", 0, 4 / 5, 0),
        ("在北京市。", "北京市", 0, 6 / 7, 1),
        ("Łódź", "łódź", 1, 1, 1),
        ("SAO PAULO", "São Paulo", 1, 1, 1),
        ("１９１２年", "1912年", 1, 1, 1),
    ],
)
def test_tricky_answers_in_any_script(said: str, gold: str, em: int, overlap: float, whole: int):
    figures = (exact_match(said, [gold], by=unicode), f1(said, [gold], by=unicode), cover(said, [gold], by=unicode))
    assert figures == pytest.approx((em, overlap, whole))


@pytest.mark.parametrize(
    ("said", "golds", "score"),
    [
        ("yes", ["yes"], 1),
        ("yes they did", ["yes"], 0),
        ("Yes.", ["no"], 0),
        ("no", ["no man's land"], 0),
        ("yes", ["no", "Yes"], 1),
        ("the noanswer", ["noanswer"], 1),
        ("Lina", ["yes", "Lina Orr"], 2 / 3),
    ],
)
def test_hotpotqas_f1_gives_nothing_for_half_a_yes(said: str, golds: list[str], score: float):
    assert f1_hotpotqa(said, golds) == pytest.approx(score)


def test_cover_by_characters_finds_what_whole_words_do_not():
    assert cover_anywhere("nothing", ["no"])
    assert not cover("nothing", ["no"])
    assert not cover_anywhere("nothing", ["", "!"])


def test_the_one_without_a_name_is_squads():
    assert NORMALISATIONS[DEFAULT] is squad
