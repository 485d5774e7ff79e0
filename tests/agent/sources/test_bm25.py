from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CorpusError
from agent.sources.bm25 import Bm25Index, query_stems, words

TEXTS = [
    "Lina Orr directed Aurora Falls.",
    "Aurora Falls is a waterfall in Norway.",
    "The director of the film was born in Trieste.",
    "Who are you? is a question.",
    "Café Müller, opened 1978",
    "東京は日本の首都です",
    "パリのハト",
    "हिन्दी की किताब",
    "मेरी कताब",
    "เมืองหลวงของไทย",
    "서울은 한국의 수도이다",
]
INDEX = Bm25Index.build(TEXTS)

some_text = st.text(alphabet="ab cd.é", max_size=12)


def rows(query: str, limit: int = 10) -> list[int]:
    return [row for row, _ in INDEX.search(query, limit)]


def test_the_text_with_the_rarer_words_comes_first():
    assert rows("who directed Aurora Falls") == [0, 1]
    assert rows("a film in Aurora")[0] == 2


def test_words_are_found_in_other_forms_case_and_without_accents():
    assert rows("DIRECTING") == [0]
    assert rows("cafe muller") == [4]


def test_a_character_of_chinese_or_japanese_is_a_word():
    assert rows("日本") == [5]
    assert rows("パリ") == [6]
    assert rows("バ") == []
    assert rows("ハ\u309a") == [6]


def test_marks_that_make_another_letter_count_and_those_of_a_reader_do_not():
    assert rows("किताब") == [7]
    assert words("हिन्दी की किताब।") == ["हिन्दी", "की", "किताब"]
    assert words("كِتَاب") == words("كتاب")
    assert words("שָׁלוֹם") == words("שלום")


def test_thai_and_korean_are_found_by_their_characters():
    assert rows("หลวงไทย") == [9]
    assert rows("서울")[0] == 10


def test_stop_words_count_only_where_there_is_nothing_else():
    assert query_stems("the director of it") == ["director"]
    assert rows("who are you") == [3]


def test_single_characters_and_digits_are_words():
    assert words("Vitamin C_2, x") == ["vitamin", "c", "2", "x"]


@pytest.mark.parametrize("query", ["", "…", "zebra", "the"])
def test_what_no_text_has_finds_nothing(query: str):
    assert Bm25Index.build(["a falcon", ""]).search(query, 5) == []


def test_an_index_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        Bm25Index.build([])


def test_texts_without_a_word_can_be_indexed():
    assert Bm25Index.build(["", "…"]).search("x", 3) == []


def test_equal_texts_come_in_the_order_of_their_rows():
    index = Bm25Index.build(["other things", *["a falcon", "the same falcon again"] * 100])
    assert [row for row, _ in index.search("falcon", 150)] == [*range(1, 201, 2), *range(2, 102, 2)]


@given(st.lists(some_text, min_size=1, max_size=12), some_text, st.integers(min_value=1, max_value=5))
def test_a_short_list_is_the_beginning_of_a_long_one(texts: list[str], query: str, limit: int):
    index = Bm25Index.build(texts)
    everything = index.search(query, len(texts))
    assert index.search(query, limit) == everything[:limit]
    assert all(score > 0 for _, score in everything)
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))
    wanted = set(query_stems(query))
    assert {row for row, _ in everything} == {
        i for i, text in enumerate(texts) if wanted & set(map(stem_of, words(text)))
    }


def stem_of(word: str) -> str:
    return query_stems(word)[0]


@given(st.permutations("lina orr film falls trieste".split()))
def test_the_order_of_the_words_changes_nothing(query: list[str]):
    assert INDEX.search(" ".join(query), 10) == INDEX.search("lina orr film falls trieste", 10)


def test_many_queries_give_what_each_gives():
    queries = ["aurora", "", "trieste"]
    assert INDEX.search_many(queries, 2) == [INDEX.search(query, 2) for query in queries]


def test_a_saved_index_finds_the_same(tmp_path: Path):
    INDEX.save(tmp_path)
    opened = Bm25Index.open(tmp_path)
    assert opened.search("who directed Aurora Falls", 5) == INDEX.search("who directed Aurora Falls", 5)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("harm", [Path.unlink, truncate])
@pytest.mark.parametrize("file", ["data.csc.index.npy", "vocab.index.json", "params.index.json"])
def test_a_damaged_index_is_an_error(tmp_path: Path, file: str, harm: Callable[[Path], None]):
    INDEX.save(tmp_path)
    harm(tmp_path / file)
    with pytest.raises(CorpusError, match="build it again"):
        Bm25Index.open(tmp_path)
