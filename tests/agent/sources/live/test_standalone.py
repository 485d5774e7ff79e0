"""Papers and code: what OpenAlex, PubMed, Semantic Scholar and GitHub are sent, and what is read."""

import asyncio
import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import SetupError, SourceError
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.http import make_client
from agent.sources.live.openalex import abstract_of
from agent.sources.live.standalone import StandaloneSource
from tests.agent.sources.live.apiserver import (
    ApiRequest,
    json_reply,
    text_reply,
)
from tests.agent.sources.live.backend_cases import FIXTURES, KEY, now, recorded
from tests.agent.sources.live.standalone_cases import KINDS, NAMES, NOTHING, failure, found, requests, searched
from tests.agent.sources.live.test_shapes import ANSWERS


def passages(name: str) -> list[tuple[str, str, str, str]]:
    return [(p.title, p.text, p.url, p.date) for p in searched(name, found(name)).passages]


def test_openalex_gives_works_with_abstracts_put_together_from_their_index():
    assert passages("openalex") == [
        (
            "The flow of Aurora Falls",
            "Lina Orr, Fisko Pornane · PeerJ · cited 1,234 times\nWe measure the flow of the We model of the falls.",
            "https://doi.org/10.7717/peerj.4375",
            "2018-02-13",
        ),
        ("A book without an abstract", "cited 0 times", "https://openalex.org/W1", "1998-01-01"),
    ]


def test_pubmed_gives_articles_with_abstracts_authors_and_journal():
    assert passages("pubmed") == [
        (
            "Falls of H. sapiens & their prevention",
            "Lina Orr, The Falls Group · Journal of falls · doi:10.1000/falls.1\n"
            "Background: Falls are frequent in older adults (CO2 excluded).\nResults: Exercise prevented 23 % of falls.",
            "https://pubmed.ncbi.nlm.nih.gov/38000001/",
            "2024-01-05",
        ),
        ("A letter without an abstract", "Letters", "https://pubmed.ncbi.nlm.nih.gov/38000002/", "2023-11"),
    ]


def test_semantic_scholar_gives_papers_and_a_summary_where_there_is_no_abstract():
    assert passages("semanticscholar") == [
        (
            "Construction of the Literature Graph of Waterfalls",
            "Waleed Ammar, Lina Orr · NAACL · cited 365 times\nWe describe a graph of waterfalls.",
            "https://doi.org/10.18653/V1/N18-3011",
            "2018-05-06",
        ),
        ("Only a summary", "A short summary by a model.", "https://www.semanticscholar.org/paper/2", "1999"),
    ]


def test_github_gives_repositories_and_issues_in_turns():
    assert passages("github") == [
        (
            "lina/falls",
            "repository · Python · 12,345 stars · MIT · water, sensors\nMeasures waterfalls",
            "https://github.com/lina/falls",
            "2026-10-01",
        ),
        (
            "The sensor stops at 0 °C",
            "issue · lina/falls · closed · 3 comments\nIt froze.\nInstall the heater of version 2.",
            "https://github.com/lina/falls/issues/7",
            "2026-11-02",
        ),
        ("No body", "issue · lina/falls · open · 0 comments\n", "https://github.com/lina/falls/issues/8", "2026-11-01"),
    ]


def test_the_body_of_an_issue_is_cut():
    long = {"items": [{"title": "t", "body": "word " * 5_000, "repository_url": "", "html_url": "https://a.org"}]}
    (passage, _) = searched("github", json_reply(long)).passages
    assert all(len(p.text) < 2_100 for p in (passage, _))


def test_openalex_is_searched_by_a_questions_words_with_days_and_language():
    (request,) = requests("openalex", "Who measured the flow of *Aurora* Falls?", where={"after": "2026-01", "before": "2026-03-05", "lang": "de"}, limit=500)  # fmt: skip
    assert (request.method, request.path) == ("GET", "/works")
    assert request.params | {"select": ""} == {
        "search": "measured flow Aurora Falls",
        "filter": "from_publication_date:2026-01-01,to_publication_date:2026-03-05,language:de",
        "per_page": "100",
        "select": "",
    }


def test_pubmed_is_searched_by_forms_and_both_days_are_sent_where_one_is_known():
    search, fetch = requests("pubmed", where={"recent": "year"}, key=KEY, limit=2)
    assert (search.method, search.path) == ("POST", "/entrez/eutils/esearch.fcgi")
    assert search.form == {
        "db": "pubmed", "tool": "cairn-search", "term": "aurora falls", "retmax": "2", "retmode": "json",
        "sort": "relevance", "datetype": "pdat", "mindate": "2025/11/21", "maxdate": "3000", "api_key": KEY,
    }  # fmt: skip
    assert fetch.path == "/entrez/eutils/efetch.fcgi"
    assert fetch.form | {"id": "38000001,38000002", "retmode": "xml"} == fetch.form


def test_semantic_scholar_is_searched_without_hyphens_which_match_nothing_there():
    (request,) = requests("semanticscholar", 'low-flow "aurora falls"', where={"before": "2020"}, key=KEY)
    assert request.path == "/graph/v1/paper/search"
    assert request.params | {"fields": ""} == {
        "query": "low flow aurora falls",
        "limit": "5",
        "fields": "",
        "publicationDateOrYear": ":2020-12-31",
    }
    assert request.headers["x-api-key"] == KEY


def test_github_is_searched_for_repositories_and_issues_of_a_time():
    repositories, issues = requests("github", where={"after": "2026"}, key=KEY)
    assert (repositories.path, repositories.params["q"]) == (
        "/search/repositories",
        "aurora falls pushed:2026-01-01..*",
    )
    assert (issues.path, issues.params["q"]) == ("/search/issues", "aurora falls is:issue updated:2026-01-01..*")
    assert issues.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in requests("github")[0].headers


@pytest.mark.parametrize(
    ("name", "where", "notes"),
    [
        ("openalex", {"kind": "science", "recent": "week"}, ()),
        ("openalex", {"kind": "news"}, ("openalex cannot filter by 'kind news'",)),
        ("pubmed", {"site": "a.org"}, ("pubmed cannot filter by 'site a.org'",)),
        ("github", {"kind": "science"}, ("github cannot filter by 'kind science'",)),
    ],
)
def test_a_filter_that_is_not_supported_is_named_and_hides_nothing(
    name: str, where: Mapping[str, str], notes: tuple[str, ...]
):
    hits = searched(name, found(name), where=where)
    assert hits.notes == notes
    assert hits.passages


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_result_is_an_answer(name: str):
    hits = searched(name, json_reply(NOTHING[name]))
    assert (hits.passages, hits.backend, hits.credits, hits.notes) == ((), name, 0.0, ())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("query", "limit"), [("", 3), ("  ", 3), ("aurora", 0)])
def test_nothing_is_requested_for_nothing(name: str, query: str, limit: int):
    seen: list[ApiRequest] = []
    assert searched(name, found(name), query, limit=limit, seen=seen).passages == ()
    assert not seen


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
def test_the_key_is_in_no_error_and_no_log_and_goes_where_the_api_takes_it(
    name: str, status: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    seen: list[ApiRequest] = []
    error = failure(name, text_reply(f"The key {KEY} is unknown: {KEY}", status), key=KEY, seen=seen)
    assert "VerySecret" not in "".join(traceback.format_exception(error))
    assert "HTTP Request" in caplog.text
    assert "VerySecret" not in caplog.text
    (request,) = seen
    places = {
        "header": KEY in " ".join(request.headers.values()),
        "body": KEY.encode() in request.body,
        "parameter": KEY in request.target,
    }
    where = {"openalex": "parameter", "pubmed": "body"}.get(name, "header")
    assert [place for place, there in places.items() if there] == [where]


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_cannot_be_one_is_refused_and_without_one_there_are_fewer_requests(name: str):
    kind: Callable[..., StandaloneSource] = KINDS[name]
    client = make_client()
    with pytest.raises(SetupError, match="key") as caught:
        kind(client, key="two words-Secret")
    assert "Secret" not in str(caught.value)
    slow, fast = kind(client).limits, kind(client, key=KEY).limits
    assert slow.requests / slow.per_seconds <= fast.requests / fast.per_seconds


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(answer=ANSWERS, index=st.dictionaries(st.text(max_size=3), st.lists(st.integers() | st.text(), max_size=3)))
def test_any_object_is_read_or_refused(name: str, answer: dict[str, object], index: dict[str, Any]):
    row = answer | {"display_name": "x", "title": "x", "abstract_inverted_index": index, "authorships": [answer, 3]}
    whole = answer | {"results": [row, 3], "data": [row], "items": [row, None], "esearchresult": answer}

    async def read() -> SearchResult | SourceError:
        body = json.dumps(whole).encode()
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
        async with httpx2.AsyncClient(transport=transport) as client:
            try:
                return await KINDS[name](client, now=now).search(SearchRequest("aurora", limit=4))
            except SourceError as error:
                return error

    got = asyncio.run(read())
    if isinstance(got, SourceError):
        assert got.kind == "parse"
    else:
        assert all(json.dumps(hit.model_dump(), ensure_ascii=False).encode() for hit in got.passages)
        assert all(not hit.url or hit.url.startswith("http") for hit in got.passages)


def test_an_index_of_words_that_is_none_is_no_abstract():
    assert abstract_of(None) == abstract_of([1]) == abstract_of({"a": 3, "b": ["x"]}) == ""
    assert len(abstract_of({"w": list(range(100_000))}).split()) == 3_000


@pytest.mark.parametrize("folder", NAMES)
def test_every_recorded_answer_has_its_provenance(folder: str):
    there = {path.name for path in (FIXTURES / folder).iterdir()} - {"PROVENANCE.json"}
    assert there == {row["file"] for row in recorded(f"{folder}/PROVENANCE.json")["files"]}
