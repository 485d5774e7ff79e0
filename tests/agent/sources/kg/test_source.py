import asyncio
import multiprocessing
import os
from pathlib import Path

import pytest

from agent.errors import SetupError, SourceError
from agent.plan import Filter
from agent.settings import load_settings
from agent.sources.base import Closable, SearchRequest, SearchResult, ask
from agent.sources.kg.build import build_graph
from agent.sources.kg.rank import LIMIT, TOKENS
from agent.sources.kg.source import KgSource
from agent.sources.kg.words import estimate_tokens
from tests.agent.sources.kg.graphs import make_graph

HUB = 2000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("kg"))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [(f"film {n}", f"r{n % 40}", "Drama") for n in range(HUB)] + [("Drama", "invented by", "Aristotle")]
    rows += [(f"play {n}", "subject", "Drama") for n in range(150)]
    return make_graph(tmp_path_factory.mktemp("hub"), rows)


def search(
    path: Path, *queries: str, limit: int = 100, packed: bool = True, filters: tuple[Filter, ...] = ()
) -> list[SearchResult]:
    """Every query at once."""

    async def run() -> list[SearchResult]:
        source = KgSource.open(path, packed=packed)
        async with asyncio.timeout(20):
            tasks = [ask(source, SearchRequest(query, limit=limit, filters=filters), seconds=10) for query in queries]
            found = await asyncio.gather(*tasks)
            await source.aclose()
        return found

    return asyncio.run(run())


def texts(hits: SearchResult) -> list[str]:
    return [passage.text for passage in hits.passages]


def test_a_question_is_answered_with_its_triples_best_first(path: Path):
    born, acted, wrote = search(
        path, "Where was Lina Orr born?", "what films did Tom Vance act in", "who wrote The Writer"
    )
    assert texts(born) == [
        "Lina Orr | place of birth | Trieste",
        "Lina Orr | place of death | Graz",
        "Aurora Falls | directed by | Lina Orr",
    ]
    assert texts(acted) == ["Aurora Falls; Night Ferry | starred actors | Tom Vance"]
    assert texts(wrote) == ["The Writer | written by | Bo Lund", "The Writer | directed by | Ann Writer"]


def test_passages_say_where_they_are_from(path: Path):
    (hits,) = search(path, "Lina Orr")
    assert hits.backend == "graph"
    assert {p.source for p in hits.passages} == {"kg"}
    assert [p.rank for p in hits.passages] == [1, 2, 3]
    assert {p.title for p in hits.passages} == {""}


def test_the_limit_counts_passages_and_many_triples_fit_into_one(path: Path):
    (hits,) = search(path, "who acted in Aurora Falls", limit=1)
    assert texts(hits) == ["Aurora Falls | starred actors | Ida Bell; Tom Vance"]


def test_each_triple_may_be_a_passage(path: Path):
    (hits,) = search(path, "who acted in Aurora Falls", packed=False, limit=2)
    assert texts(hits) == ["Aurora Falls | starred actors | Ida Bell", "Aurora Falls | starred actors | Tom Vance"]


def test_a_question_about_nothing_that_is_there_finds_nothing(path: Path):
    assert [texts(hits) for hits in search(path, "who is Napoleon Bonaparte", "")] == [[], []]


def test_a_filter_that_a_graph_cannot_honour_is_said(path: Path):
    (hits,) = search(path, "Lina Orr", filters=(Filter(name="after", value="2020"),))
    assert hits.notes == ("the knowledge graph cannot filter by 'after 2020'",)


def test_an_entity_with_very_many_triples_stays_in_bounds_and_is_searched_by_relation(hub: Path):
    invented, subject, anything = search(hub, "who invented Drama", "the subject of which plays is Drama", "Drama")
    assert texts(invented)[0] == "Drama | invented by | Aristotle"
    assert texts(subject)[0].endswith(" | subject | Drama")
    for hits in (invented, subject, anything):
        assert sum(len(text.split("; ")) for text in texts(hits)) <= LIMIT
        assert sum(map(estimate_tokens, texts(hits))) <= TOKENS
    assert len(texts(subject)[0].split("; ")) == LIMIT


def test_many_tasks_share_one_source(path: Path):
    alone = [texts(hits) for name in ("Lina Orr", "Tom Vance", "Ida Bell") for hits in search(path, name)]
    together = search(path, *["Lina Orr", "Tom Vance", "Ida Bell"] * 50)
    assert [texts(hits) for hits in together] == alone * 50


def test_the_event_loop_goes_on_while_the_graph_is_searched(path: Path):
    ticks = 0

    async def run() -> None:
        nonlocal ticks
        source = KgSource.open(path)
        search = asyncio.create_task(source.search(SearchRequest("Lina Orr", limit=5)))
        while not search.done():
            ticks += 1
            await asyncio.sleep(0)
        await source.aclose()

    asyncio.run(run())
    assert ticks > 1


def test_a_closed_source_opens_again_when_it_is_searched(path: Path):
    async def run() -> list[SearchResult]:
        source = KgSource.open(path)
        assert isinstance(source, Closable)
        found = [await source.search(SearchRequest("Lina Orr", limit=1))]
        await source.aclose()
        await source.aclose()
        found.append(await source.search(SearchRequest("Lina Orr", limit=1)))
        await source.aclose()
        return found

    first, second = asyncio.run(run())
    assert first == second != []


def test_a_source_survives_a_fork(path: Path):
    source = KgSource.open(path)
    before = source.find("Lina Orr")
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        theirs.send(source.find("Lina Orr") == before)
        os._exit(0)
    theirs.close()
    assert ours.poll(20)
    assert ours.recv() is True
    os.waitpid(child, 0)
    assert source.find("Lina Orr") == before
    asyncio.run(source.aclose())


def test_a_graph_that_is_replaced_answers_on_from_the_old_one(tmp_path: Path):
    path = make_graph(tmp_path)
    source = KgSource.open(path)
    before = source.find("Lina Orr")
    make_graph(tmp_path, [("Lina Orr", "r", "x")])
    assert source.find("Lina Orr") == before
    asyncio.run(source.aclose())
    assert [triple.tail for triple in source.find("Lina Orr")] == ["x"]
    asyncio.run(source.aclose())


def test_a_graph_that_vanishes_is_a_source_error(tmp_path: Path):
    path = make_graph(tmp_path)

    async def run() -> None:
        source = KgSource.open(path)
        path.unlink()
        with pytest.raises(SourceError, match="no graph at"):
            await source.search(SearchRequest("Lina Orr", limit=1))
        await source.aclose()

    asyncio.run(run())


def test_a_missing_graph_is_reported_when_it_is_opened(tmp_path: Path):
    with pytest.raises(SetupError, match="build one with: cairn kg build"):
        KgSource.open(tmp_path / "none.kg")


@pytest.mark.parametrize(
    ("file", "question", "answer"),
    [
        ("kg_countries/triples.tsv", "what does slovakia border", "austria"),
        ("kg_yago310_slice/triples.tsv", "which team does Mikheil Khutsishvili play for", "FC Merani Tbilisi"),
        ("kg_wikidata_labeled/triples.jsonl", "who performed Get Low", "Dillon Francis"),
    ],
)
def test_real_graphs_are_read_and_answer(file: str, question: str, answer: str, tmp_path: Path):
    data = load_settings().data / file
    if not data.exists():
        pytest.skip("the data set is not here")
    card = build_graph([data], tmp_path / "g.kg")
    assert card.bad_lines == 0
    (hits,) = search(tmp_path / "g.kg", question)
    assert answer in hits.passages[0].text
