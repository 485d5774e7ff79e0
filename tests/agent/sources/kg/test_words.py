import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.kg.words import estimate_tokens, fold, meanings, readable, split, stem


@given(st.text())
def test_folding_twice_changes_nothing(text: str):
    assert fold(fold(text)) == fold(text)


def test_folding_any_letter_twice_changes_nothing():
    letters = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    assert [letter for letter in letters if fold(fold(letter)) != fold(letter)] == []


@given(st.text())
def test_a_folded_name_has_single_spaces_and_no_line_breaks(text: str):
    assert fold(text) == " ".join(fold(text).split())


@given(st.text().filter(str.strip))
def test_no_name_is_folded_to_nothing(text: str):
    assert fold(text)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("  José   ÑANDÚ ", "jose nandu"),
        ("Straße", "strasse"),
        ("Łódź", "lodz"),
        ("Ærøskøbing", "aeroskobing"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("东京", "东京"),
        ("İstanbul", "istanbul"),
        ("¯", "¯"),
        ("Ångström", "angstrom"),
        ("Nguyễn Tất Thành", "nguyen tat thanh"),
    ],
)
def test_case_accents_and_width_do_not_matter(name: str, folded: str):
    assert fold(name) == folded


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("starred_actors", "starred actors"),
        ("isLocatedIn", "is located in"),
        ("/people/person/place_of_birth", "people person place of birth"),
        ("place of birth", "place of birth"),
        ("hasIMDBRating", "has imdb rating"),
    ],
)
def test_relations_are_read_as_words(relation: str, words: str):
    assert readable(relation) == words


def test_a_possessive_is_its_owner():
    assert split("Jules Verne's") == ["jules", "verne"]


@pytest.mark.parametrize(
    ("question", "text"), [("wrote", "writer"), ("born", "birth"), ("act", "starred"), ("wife", "spouse")]
)
def test_words_of_one_meaning_meet(question: str, text: str):
    assert meanings([stem(question)]) & meanings([stem(text)])


def test_words_of_two_meanings_do_not_meet():
    assert not meanings([stem("born")]) & meanings([stem("died")])


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    st.text(alphabet=st.characters(exclude_categories=["Cs"])),
)
def test_a_longer_text_has_no_fewer_tokens(one: str, other: str):
    assert estimate_tokens(f"{one} {other}") == estimate_tokens(one) + estimate_tokens(other)
