"""Wikipedia: one request, the order of the search, what matched, and errors that come with status 200."""

from typing import Any

import pytest

from agent.errors import SourceError
from agent.sources.live.mediawiki import MAX_EXTRACT, MAX_QUERY
from agent.sources.live.queries import keywords
from tests.agent.sources.live.apiserver import Reply, json_reply
from tests.agent.sources.live.knowledge import answered, mediawiki


def page(number: int, title: str, index: int, extract: str = "", **more: Any) -> dict[str, Any]:
    url = f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}"
    return {"pageid": number, "ns": 0, "title": title, "index": index, "extract": extract, "fullurl": url} | more


FOUND = json_reply(
    {
        "batchcomplete": True,
        "continue": {"sroffset": 10, "continue": "-||"},
        "query": {
            "pages": [
                page(9, "Dune", 1, pageprops={"disambiguation": ""}, extract="Dune may refer to:"),
                page(30, "Frank Herbert", 3, "Frank Herbert was an American author."),
                page(700, "Dune (novel)", 2, "Dune is a 1965 novel.", touched="2026-11-01T00:00:00Z"),
                page(12, "Dune Sea", 4),
            ],
            "search": [
                {"ns": 0, "title": "Dune", "pageid": 9, "snippet": "<span class=\"searchmatch\">Dune</span> may", "timestamp": "2026-01-01T00:00:00Z"},
                {"ns": 0, "title": "Dune (novel)", "pageid": 700, "snippet": "is a 1965 novel.", "timestamp": "2026-10-02T03:04:05Z"},
                {"ns": 0, "title": "Frank Herbert", "pageid": 30, "snippet": "won the <span class=\"searchmatch\">Hugo</span> &amp; Nebula", "timestamp": "2025-05-06T07:08:09Z"},
                {"ns": 0, "title": "Dune Sea", "pageid": 12, "snippet": "a &quot;sea&quot; of <span class=\"searchmatch\">dune</span>s"},
            ],
            "searchinfo": {"suggestion": "june"},
        },
    }
)  # fmt: skip


def test_pages_come_in_the_order_of_the_search_and_lists_of_meanings_last():
    hits, _ = answered(mediawiki, FOUND, "dune")
    assert [hit.title for hit in hits.passages] == ["Dune (novel)", "Frank Herbert", "Dune Sea", "Dune"]
    assert [hit.rank for hit in hits.passages] == [1, 2, 3, 4]
    assert hits.backend == "mediawiki"
    assert not hits.notes, "a suggestion is of use only where nothing was found"


def test_a_passage_is_the_introduction_and_what_matched():
    hits, _ = answered(mediawiki, FOUND, "dune")
    assert [hit.text for hit in hits.passages[:3]] == [
        "Dune is a 1965 novel.",
        "Frank Herbert was an American author. … won the Hugo & Nebula",
        'a "sea" of dunes',
    ]
    first = hits.passages[0]
    assert (first.id, first.source, first.date) == ("wiki:en:700", "wiki", "2026-10-02")
    assert first.url == "https://en.wikipedia.org/wiki/Dune_(novel)"


def test_one_request_asks_for_all():
    _, requests = answered(mediawiki, FOUND, "dune herbert", limit=7)
    (only,) = requests
    assert (only.method, only.path) == ("GET", "/en/w/api.php")
    assert only.params == {
        "action": "query", "format": "json", "formatversion": "2", "generator": "search", "gsrsearch": "dune herbert",
        "gsrlimit": "7", "list": "search", "srsearch": "dune herbert", "srlimit": "7", "srprop": "snippet|timestamp",
        "srinfo": "suggestion", "prop": "extracts|info|pageprops", "exintro": "1", "explaintext": "1", "exlimit": "max",
        "inprop": "url", "ppprop": "wikibase_item|disambiguation", "redirects": "1", "maxlag": "5",
    }  # fmt: skip
    assert only.headers["user-agent"].startswith("cairn-search/")
    assert "httpx2/" in only.headers["user-agent"]


def test_no_more_pages_are_requested_than_come_with_introductions():
    _, requests = answered(mediawiki, FOUND, "dune", limit=100)
    assert requests[0].params["gsrlimit"] == requests[0].params["srlimit"] == "20"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Who directed the film Aurora Falls?", "directed film Aurora Falls"),
        ("birthplace of Lina Orr", "birthplace of Lina Orr"),
        ('intitle:"dune" -film herbert', 'intitle:"dune" -film herbert'),
        ('In what year did "The Thing" open?', '"The Thing" year open'),
        ("The Who", "The Who"),
        ("Who is it?", "Who is it"),
        ("w" * 200 + " " + "v" * 200, "w" * 200),
    ],
)
def test_a_question_keeps_its_telling_words_as_every_word_must_match(query: str, wanted: str):
    assert keywords(query, MAX_QUERY) == wanted


def test_a_language_chooses_the_wiki():
    hits, requests = answered(mediawiki, FOUND, "dune", lang="de")
    assert requests[0].path == "/de/w/api.php"
    assert hits.passages[0].id == "wiki:de:700"
    assert not hits.notes


def test_what_is_no_language_is_reported_and_reaches_no_host():
    hits, requests = answered(mediawiki, FOUND, "dune", lang="@e")
    assert requests[0].path == "/en/w/api.php"
    assert hits.notes == ("mediawiki knows no language '@e' and searched in 'en'",)


def test_filters_that_no_search_of_wikipedia_knows_are_reported():
    hits, _ = answered(mediawiki, FOUND, "dune", after="2026", before="2027", site="a.com", recent="day")
    assert hits.notes == tuple(
        f"mediawiki cannot filter by '{condition}'"
        for condition in ("after 2026", "before 2027", "site a.com", "recent day")
    )


@pytest.mark.parametrize(
    "empty",
    [
        {"batchcomplete": True},
        {"batchcomplete": "", "query": {"search": []}},
        {"batchcomplete": True, "query": {"search": [], "pages": []}},
    ],
)
def test_nothing_found_is_an_answer(empty: object):
    hits, _ = answered(mediawiki, json_reply(empty), "gobbilygook")
    assert (hits.passages, hits.notes) == ((), ())


def test_where_nothing_is_found_a_suggestion_is_reported():
    content: Any = {"query": {"search": [], "searchinfo": {"suggestion": "chess set"}}}
    hits, _ = answered(mediawiki, json_reply(content), "chest sett")
    assert hits.notes == ("mediawiki asks whether 'chess set' was meant",)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("maxlag", "rate"),
        ("ratelimited", "rate"),
        ("cirrussearch-too-busy-error", "rate"),
        ("cirrussearch-backend-error", "upstream"),
        ("internal_api_error_DBQueryError", "upstream"),
        ("readonly", "upstream"),
        ("readapidenied", "auth"),
        ("missingparam", "bad_query"),
        ("badvalue", "bad_query"),
        ("toomanyvalues", "bad_query"),
    ],
)
def test_an_error_with_status_200_has_the_kind_of_its_code(code: str, kind: str):
    content = {"error": {"code": code, "info": "Waiting for a database server: 5.8 seconds lagged."}}
    with pytest.raises(SourceError) as caught:
        answered(mediawiki, json_reply(content, retry_after="5"), "dune")
    error = caught.value
    assert (error.kind, error.retry_after) == (kind, 5.0)
    assert str(error) == f"mediawiki says {code}: Waiting for a database server: 5.8 seconds lagged."


@pytest.mark.parametrize("status", [301, 404])
def test_a_language_without_a_wiki_is_a_bad_query(status: int):
    with pytest.raises(SourceError, match="there is no wiki for 'jp'") as caught:
        answered(mediawiki, Reply(b"", status, {"location": "https://ja.wikipedia.org/"}), "dune", lang="jp")
    assert caught.value.kind == "bad_query"


@pytest.mark.parametrize(
    "shape",
    [
        {"query": []},
        {"query": {"pages": {"1": {}}}},
        {"query": {"pages": [{"pageid": 1}]}},
        {"query": {"search": [7]}},
        {"query": {"pages": [{"title": "x", "index": "first", "pageprops": 3}]}},
    ],
)
def test_another_shape_is_a_parse_error(shape: object):
    with pytest.raises(SourceError) as caught:
        answered(mediawiki, json_reply(shape), "dune")
    assert caught.value.kind == "parse"


def test_a_long_introduction_ends_with_a_sentence():
    sentence = "This is a sentence of forty characters.. "
    content = {"query": {"pages": [page(1, "Long", 1, sentence * 100), page(2, "Word", 2, "x" * 5000)]}}
    hits, _ = answered(mediawiki, json_reply(content), "long")
    assert hits.passages[0].text.endswith("characters..")
    assert MAX_EXTRACT / 2 < len(hits.passages[0].text) <= MAX_EXTRACT
    assert len(hits.passages[1].text) == MAX_EXTRACT
    assert hits.passages[1].text.endswith("x…")
