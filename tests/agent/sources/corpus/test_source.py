import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import pytest

from agent.errors import CorpusError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.corpus import source as corpus
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.folder import RECORDS
from agent.sources.corpus.source import CARD, CorpusSource, IndexCard, build_index, cached_index, read_card

DOCUMENTS: list[dict[str, str]] = [
    {
        "id": "f",
        "title": "Aurora Falls",
        "text": "A film by Lina Orr.",
        "url": "https://www.film.org/a",
        "date": "2025",
    },
    {"id": "n1", "title": "News", "text": "The film premieres.", "url": "https://news.example/1", "date": "2026-03-02"},
    {
        "id": "n2",
        "title": "News",
        "text": "The film was delayed.",
        "url": "https://news.example/2",
        "date": "2026-04-01",
    },
    {"id": "u", "title": "", "text": "No one knows when this film was made: the film."},
]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write(tmp_path / "documents.jsonl", DOCUMENTS)


def write(path: Path, documents: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path


@pytest.fixture
def source(documents: Path, tmp_path: Path) -> CorpusSource:
    build_index([documents], tmp_path / "index")
    return CorpusSource(tmp_path / "index", today=lambda: date(2026, 4, 5))


def search(source: CorpusSource, query: str, *filters: Filter, limit: int = 10) -> SearchResult:
    async def run() -> SearchResult:
        async with asyncio.timeout(10):
            return await source.search(SearchRequest(query, limit=limit, filters=filters))

    return asyncio.run(run())


def ids(passages: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def test_a_passage_is_the_document_with_its_rank_and_score(source: CorpusSource):
    first, *rest = search(source, "Who made Aurora Falls?").passages
    assert first == Passage(
        id="f",
        source="corpus",
        title="Aurora Falls",
        text="A film by Lina Orr.",
        url="https://www.film.org/a",
        date="2025",
        score=first.score,
        rank=1,
    )
    assert [p.rank for p in rest] == list(range(2, len(rest) + 2))
    assert all(p.score < first.score for p in rest)


def test_the_title_counts_more_than_the_text(tmp_path: Path):
    path = write(
        tmp_path / "d.jsonl",
        [{"id": "text", "title": "Birds", "text": "falcon"}, {"id": "title", "title": "Falcon", "text": "birds"}],
    )
    build_index([path], tmp_path / "index")
    assert ids(CorpusSource(tmp_path / "index").find("falcon", limit=2)) == ["title", "text"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Mercury", "named"),
        ("what is mercury?", "planet"),
        ("Terms › What is Mercury?", "planet"),
        ("What's mercury poisoning?", "more"),
        ("Where does one buy Mercury?", "much"),
    ],
)
def test_a_passage_whose_title_is_the_query_comes_first(query: str, first: str, tmp_path: Path):
    rows = [
        {"id": "much", "title": "Mercury Records", "text": "Mercury, Mercury, Mercury. " * 3},
        {"id": "more", "title": "Mercury poisoning", "text": "Mercury is poisonous. " * 3},
        {"id": "planet", "title": "Terms › What is Mercury?", "text": "A planet."},
        {"id": "named", "title": "Mercury (planet)", "text": "It is near to the sun. " * 40},
    ]
    build_index([write(tmp_path / "documents.jsonl", rows)], tmp_path / "index")
    found = CorpusSource(tmp_path / "index").find(query, limit=2)
    assert ids(found)[0] == first
    assert [passage.rank for passage in found] == [1, 2]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (Filter(name="after", value="2026-03-02"), {"n1", "n2", "u"}),
        (Filter(name="after", value="2026-03-03"), {"n2", "u"}),
        (Filter(name="after", value="2025-06"), {"f", "n1", "n2", "u"}),
        (Filter(name="before", value="2026-03-02"), {"f", "n1", "u"}),
        (Filter(name="before", value="2026"), {"f", "n1", "n2", "u"}),
        (Filter(name="before", value="2024-12"), {"u"}),
        (Filter(name="recent", value="week"), {"n2", "u"}),
        (Filter(name="not", value="news.example"), {"f", "u"}),
        (Filter(name="site", value="film.org"), {"f"}),
        (Filter(name="site", value="www.news.example"), {"n1", "n2"}),
        (Filter(name="site", value="ilm.org"), set[str]()),
        (Filter(name="lang", value="de"), {"f", "n1", "n2", "u"}),
    ],
)
def test_filters_are_honoured_where_a_document_says_what_they_ask(
    source: CorpusSource, condition: Filter, left: set[str]
):
    found = search(source, "film", condition)
    assert set(ids(found.passages)) == left
    assert [p.rank for p in found.passages] == list(range(1, len(found.passages) + 1))


def test_a_filter_does_not_cost_places_in_the_list(source: CorpusSource):
    only = Filter(name="site", value="news.example")
    assert ids(search(source, "film aurora lina", only, limit=2).passages) == ["n1", "n2"]


def test_a_filter_that_no_document_can_be_measured_by_hides_nothing_and_is_said(tmp_path: Path):
    build_index([write(tmp_path / "d.jsonl", [{"id": "a", "text": "film"}])], tmp_path / "index")
    wanted = {"site": "x.org", "not": "y.org", "after": "2026", "recent": "week", "lang": "de"}
    conditions = [Filter(name=name, value=value) for name, value in wanted.items()]
    found = search(CorpusSource(tmp_path / "index"), "film", *conditions)
    assert ids(found.passages) == ["a"]
    assert found.notes == (
        "corpus cannot filter by 'lang de'",
        "corpus cannot filter by 'site x.org': none of its documents has an address",
        "corpus cannot filter by 'not y.org': none of its documents has an address",
        "corpus cannot filter by 'after 2026': none of its documents has a date",
        "corpus cannot filter by 'recent week': none of its documents has a date",
    )


def test_a_filter_that_is_honoured_needs_no_note(source: CorpusSource):
    found = search(source, "film", Filter(name="after", value="2026"), Filter(name="site", value="news.example"))
    assert (found.notes, found.backend) == ((), "corpus")


def test_a_large_index_gives_the_same_from_a_thread(source: CorpusSource, monkeypatch: pytest.MonkeyPatch):
    here = search(source, "film")
    monkeypatch.setattr(corpus, "THREAD_ROWS", 1)
    assert search(source, "film") == here


def test_the_card_says_what_is_in_the_index(documents: Path, tmp_path: Path):
    card = build_index([documents], tmp_path / "index")
    assert card == read_card(tmp_path / "index")
    assert (card.documents, card.dated, card.with_url) == (4, 3, 3)


def test_other_things_are_never_overwritten(documents: Path, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(CorpusError, match="other files in it"):
        build_index([documents], tmp_path / "mine")
    with pytest.raises(CorpusError, match="is a file"):
        build_index([documents], documents)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def remove(path: Path) -> None:
    path.unlink()


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def other_version(path: Path) -> None:
    path.write_text('{"version": 1}', encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "harm", "why"),
    [
        (CARD, remove, "not an index: it has no index.json"),
        (CARD, shorten, "index.json cannot be read"),
        (CARD, other_version, "has the version 1, this one reads 2"),
        ("data/documents.jsonl", remove, "documents.jsonl is missing"),
        ("data/offsets.npy", shorten, "offsets.npy is missing or has another size"),
        ("data/bm25/data.csc.index.npy", shorten, "data.csc.index.npy is missing or has another size"),
    ],
)
def test_a_folder_that_is_no_index_is_a_sentence_with_the_fix(
    source: CorpusSource, tmp_path: Path, file: str, harm: Callable[[Path], None], why: str
):
    harm(tmp_path / "index" / file.replace("data/", f"{source.card.data}/"))
    with pytest.raises(CorpusError) as caught:
        CorpusSource(tmp_path / "index")
    assert why in str(caught.value)
    assert "build it with: cairn index build CORPUS --out" in str(caught.value)


def test_a_missing_path_is_a_sentence(tmp_path: Path):
    with pytest.raises(CorpusError, match="there is no index folder"):
        CorpusSource(tmp_path / "gone")
    with pytest.raises(CorpusError, match="there is no file or folder"):
        CorpusSource.open(tmp_path / "gone", cache=tmp_path)


def test_documents_open_through_the_cache_and_are_indexed_once(documents: Path, tmp_path: Path):
    def opened() -> CorpusSource:
        return CorpusSource.open(documents, cache=tmp_path / "cache")

    first, second = opened(), opened()
    assert first.data == second.data
    assert ids(first.find("aurora", limit=1)) == ["f"]
    write(documents, DOCUMENTS[1:])
    third = opened()
    assert ids(third.find("aurora", limit=1)) == []
    assert cached_index([documents], cache=tmp_path / "cache") == third.data.parent
    assert ids(first.find("aurora", limit=1)) == ["f"], "who holds the old one open goes on with it"


def test_a_reader_that_comes_between_two_indices_opens_the_newer_one(
    source: CorpusSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It has read the older card when the newer index takes its place and the older one is removed."""
    older, times = source.card, iter([True])

    def read(folder: Path) -> IndexCard:
        return older if next(times, False) else read_card(folder)

    build_index([write(tmp_path / "new.jsonl", [{"id": "x", "text": "a falcon"}])], tmp_path / "index")
    assert not source.data.exists()
    monkeypatch.setattr(corpus, "read_card", read)
    assert ids(CorpusSource(tmp_path / "index").find("falcon film", limit=5)) == ["x"]


def test_parts_of_two_indices_are_no_index(source: CorpusSource, tmp_path: Path):
    other = build_index([write(tmp_path / "n.jsonl", [{"id": "x", "text": "a"}])], tmp_path / "other")
    shutil.copy(tmp_path / "other" / other.data / RECORDS, source.data / RECORDS)
    with pytest.raises(CorpusError, match="is damaged"):
        CorpusSource(tmp_path / "index")


def test_what_is_stored_is_what_was_read(source: CorpusSource):
    stored = {p.id: p for p in source.find("film", limit=10)}
    for document in (StoredPassage.model_validate(d) for d in DOCUMENTS):
        passage = stored[document.id]
        assert (passage.title, passage.text, passage.url, passage.date) == (
            document.title,
            document.text,
            document.url,
            document.date,
        )
