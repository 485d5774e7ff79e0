"""Wikidata, live: names to items, their statements in words, edges that lead to an item, and the rule between them."""

from functools import partial
from typing import Any

import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest, ask
from agent.sources.live.wikidata import WikidataSource
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, json_reply
from tests.agent.sources.live.knowledge import (
    FakeWikidata,
    answered,
    binding,
    day,
    hit,
    lina,
    recorded,
    rest_value,
    rows,
    statement,
    wikidata,
    with_client,
)

FILM = binding(s="Q2001", sLabel="Aurora Falls", p="P57", pLabel="director")


def texts(question: str, world: FakeWikidata | None = None, *, limit: int = 10, **filters: str) -> list[str]:
    hits, _ = answered(wikidata, world or lina(), question, limit=limit, **filters)
    return [hit.text for hit in hits.passages]


def paths(requests: list[ApiRequest]) -> list[str]:
    return [
        request.path.rpartition("/v1")[2]
        if "rest.php" in request.path
        else f"{request.params.get('action', request.path)}"
        for request in requests
    ]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("birthplace of Lina Orr", "Lina Orr | place of birth | Trieste"),
        ("Where was Lina Orr born?", "Lina Orr | place of birth | Trieste"),
        ("when was lina orr born", "Lina Orr | date of birth | 1971-03-11"),
        ("Who is Lina Orr's wife?", "Lina Orr | spouse | Bo; Ada (start time 1999)"),
        ("who directed Aurora Falls", "Aurora Falls | director | Lina Orr"),
        ("running duration of the film Aurora Falls", "Aurora Falls | duration | 94 minute"),
        ("aurora falls film director", "Aurora Falls | director | Lina Orr"),
        ("country of the waterfall Aurora Falls", "Aurora Falls | country | Norway"),
        ("IMDb ID of Lina Orr", "Lina Orr | IMDb ID | nm001"),
        ("Q1001 place of birth", "Lina Orr | place of birth | Trieste"),
    ],
)
def test_the_fact_that_the_question_wants_comes_first(question: str, fact: str):
    assert texts(question)[0] == fact


def test_a_passage_says_where_its_fact_stands():
    hits, _ = answered(wikidata, lina(), "birthplace of Lina Orr")
    first = hits.passages[0]
    assert (first.source, first.url, first.rank) == ("kg", "http://api/wiki/Q1001#P19", 1)
    assert [hit.rank for hit in hits.passages] == list(range(1, len(hits.passages) + 1))
    assert len({hit.id for hit in hits.passages}) == len(hits.passages)
    assert hits.backend == "wikidata"


def test_files_deprecated_statements_and_identifiers_that_no_question_wants_are_left_out():
    found = " ".join(texts("all about Lina Orr"))
    assert "Bo" in found
    assert not [word for word in ("Nemo", "Lina.jpg", "nm001", "IMDb") if word in found]


def test_the_requests_for_one_question_are_few_and_as_documented():
    hits, requests = answered(wikidata, lina(), "birthplace of Lina Orr")
    assert paths(requests) == ["wbsearchentities", "/entities/items/Q1001/statements", "wbgetentities", "wbgetentities"]
    look_up, _, properties, values = requests
    wanted = {"search": "Lina Orr", "language": "en", "uselang": "en", "type": "item", "limit": "5", "format": "json"}
    assert wanted.items() <= look_up.params.items()
    assert set(properties.params["ids"].split("|")) == {"P19", "P569", "P26", "P580"}
    assert (properties.params["props"], values.params["props"]) == ("labels|aliases", "labels")
    assert set(values.params["ids"].split("|")) == {"Q546", "Q8", "Q9"}
    assert all(request.headers["user-agent"].startswith("cairn-search/") for request in requests)
    assert not hits.failures


def test_names_are_requested_once():
    async def use(source: WikidataSource, server: ApiServer) -> None:
        await source.search(SearchRequest("birthplace of Lina Orr", limit=5))
        before = len(server.requests)
        await source.search(SearchRequest("spouse of Lina Orr", limit=5))
        assert paths(server.requests[before:]) == ["wbsearchentities", "/entities/items/Q1001/statements"]

    with_client(wikidata, lina(), use)


def test_names_come_in_the_requested_language():
    hits, requests = answered(wikidata, lina(), "Lina Orr", lang="de")
    assert "lina orr | geburtsort | triest" in [hit.text.lower() for hit in hits.passages]
    assert {
        request.params[name] for request in requests for name in ("language", "languages") if name in request.params
    } == {"de"}
    assert not hits.notes


def test_what_cannot_be_honoured_is_reported():
    hits, requests = answered(wikidata, lina(), "Lina Orr", after="2026", lang="1!")
    assert hits.notes == (
        "wikidata cannot filter by 'after 2026'",
        "wikidata knows no language '1!' and searched in 'en'",
    )
    assert requests[0].params["language"] == "en"


def test_more_than_fifty_names_come_in_batches_and_never_more_than_three_requests_at_once():
    many = {f"P{n}": [statement(f"P{n}", f"Q{n}")] for n in range(1, 121)}
    names = {f"{kind}{n}": f"name {kind}{n}" for n in range(1, 121) for kind in "PQ"}
    world = FakeWikidata(search={"much": [hit("Q500", "Much")]}, statements={"Q500": many}, names=names)
    hits, requests = answered(wikidata, world, "Much", limit=200)
    batches = [len(request.params["ids"].split("|")) for request in requests if "ids" in request.params]
    assert batches == [50, 50, 20, 50, 50, 20]
    assert 40 < len(hits.passages) <= 100
    assert sum(len(hit.text) for hit in hits.passages) / 4 < 1024


def test_a_name_with_no_item_is_an_empty_answer():
    hits, requests = answered(wikidata, lina(), "birthplace of Nemo Whatever")
    assert hits.passages == ()
    assert paths(requests) == ["wbsearchentities"]


def test_an_item_that_was_merged_is_followed():
    world = lina()
    world.statements["Q1001"], world.statements["Q77"] = (
        Reply(b"", 308, {"location": "https://www.wikidata.org/w/rest.php/wikibase/v1/entities/items/Q77/statements"}),
        world.statements["Q1001"],
    )
    assert texts("birthplace of Lina Orr", world)[0] == "Lina Orr | place of birth | Trieste"


@pytest.mark.parametrize(
    "broken", [Reply(b"", 500), Reply(b"<html>"), Reply(b"", 404), json_reply({"P1": {"no": "list"}})]
)
def test_where_rest_fails_the_action_api_gives_the_same_and_the_failure_is_reported(broken: Reply):
    world = lina()
    world.statements["Q1001"] = broken
    world.claims["Q1001"] = {
        "id": "Q1001",
        "claims": {
            "P19": [
                {
                    "mainsnak": {
                        "snaktype": "value",
                        "property": "P19",
                        "datatype": "wikibase-item",
                        "datavalue": {"type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": 546}},
                    },
                    "rank": "normal",
                }
            ]
        },
    }
    hits, requests = answered(wikidata, world, "birthplace of Lina Orr")
    assert hits.passages[0].text == "Lina Orr | place of birth | Trieste"
    assert [failure.backend for failure in hits.failures] == ["wikidata REST"]
    assert paths(requests)[2] == "wbgetentities"
    assert requests[2].params["props"] == "claims"


def test_edges_that_lead_to_an_item_come_by_sparql_where_the_question_says_by():
    world = lina()
    world.sparql = rows(
        FILM,
        binding(s="Q2009", p="P57", pLabel="director"),
        binding(s="Q2010", sLabel="x"),
        binding(s="blank", p="P57"),
    )
    hits, requests = answered(wikidata, world, "films directed by Lina Orr")
    assert hits.passages[0].text == "Aurora Falls; Q2009 | director | Lina Orr"
    assert hits.passages[0].url == "http://api/wiki/Q2001#P57"
    (query,) = [request.form["query"] for request in requests if request.path == "/sparql"]
    assert "?s ?direct wd:Q1001." in query
    assert '"(^|[^a-z])(direct|film)"' in query
    assert "LIMIT 200" in query


@pytest.mark.parametrize(
    ("question", "incoming", "asks"),
    [
        ("films directed by Lina Orr", "auto", True),
        ("directed by lina orr", "auto", True),
        ("movies with Lina Orr", "auto", True),  # no property of hers says anything of movies
        ("birthplace of Lina Orr", "auto", False),
        ("Who is Lina Orr's husband?", "auto", False),  # an alias of a property
        ("Lina Orr", "auto", False),  # the question wants nothing of her
        ("Lina Orr", "always", True),
        ("films directed by Lina Orr", "never", False),
    ],
)
def test_sparql_is_queried_only_where_rest_cannot_know(question: str, incoming: str, asks: bool):
    world = lina()
    world.sparql = rows(FILM)
    hits, requests = answered(partial(wikidata, incoming=incoming), world, question)
    assert ("/sparql" in paths(requests)) == asks
    assert ("Aurora Falls | director | Lina Orr" in [hit.text for hit in hits.passages]) == asks


def test_what_rest_knew_stands_where_sparql_fails():
    world = lina()
    world.sparql = Reply(b"", 429, {"retry-after": "60"})
    hits, _ = answered(wikidata, world, "films directed by Lina Orr")
    assert "Lina Orr | place of birth | Trieste" in [hit.text for hit in hits.passages]
    assert [(f.backend, f.kind) for f in hits.failures] == [("wikidata SPARQL", "rate")]


def test_sparql_that_hangs_leaves_time_for_what_rest_knew():
    async def use(source: WikidataSource, server: ApiServer) -> None:
        hits = await ask(source, SearchRequest("films directed by Lina Orr", limit=5), seconds=1.2)
        assert "Lina Orr | place of birth | Trieste" in [hit.text for hit in hits.passages]
        assert [(f.backend, f.kind) for f in hits.failures] == [("wikidata SPARQL", "timeout")]

    world = lina()
    world.sparql = Reply(how="hang")
    with_client(wikidata, world, use)


def test_where_nothing_else_is_known_a_failure_of_sparql_is_the_failure():
    world = lina()
    world.statements["Q1001"] = {}
    with pytest.raises(SourceError) as caught:
        answered(wikidata, world, "films directed by Lina Orr")
    assert caught.value.kind == "upstream"


def test_a_query_in_sparql_is_sent_as_it_is():
    world = FakeWikidata(sparql=json_reply(recorded("wikidata/multi_vars_sparql_results.json")))
    query = "PREFIX x: <http://x/>\nSELECT ?entity ?year WHERE { ?entity x:year ?year } LIMIT 3"
    hits, requests = answered(wikidata, world, query, limit=2)
    assert [(hit.text, hit.url) for hit in hits.passages] == [
        ("entity: Ercole Patti | year: 1903", "https://www.wikidata.org/wiki/Q3731207"),
        ("entity: FAKE BNODE | year: 1970", ""),
    ]
    (sent,) = requests
    assert (sent.method, sent.form) == ("POST", {"query": query})
    assert sent.headers["accept"] == "application/sparql-results+json"


@pytest.mark.parametrize("kind", ["rate", "auth", "quota", "timeout"])
def test_a_refusal_of_rest_is_no_reason_to_ask_elsewhere(kind: str):
    status = {"rate": 429, "auth": 403, "quota": 402, "timeout": 408}[kind]
    world = lina()
    world.statements["Q1001"] = Reply(b"", status, {"retry-after": "5"})
    with pytest.raises(SourceError) as caught:
        answered(wikidata, world, "birthplace of Lina Orr")
    assert (caught.value.kind, caught.value.retry_after) == (kind, 5.0)


def test_a_statement_without_a_known_value_says_so():
    world = lina()
    world.statements["Q1001"] = {
        "P26": [statement("P26", None, kind="novalue")],
        "P19": [statement("P19", None, kind="somevalue", qualifiers=[rest_value("P580", day("+1971-00-00T00:00:00Z", 9), "time")])],
    }  # fmt: skip
    found: Any = texts("spouse and place of birth of Lina Orr", world)
    assert "Lina Orr | spouse | no value" in found
    assert "Lina Orr | place of birth | unknown value (start time 1971)" in found


def test_of_many_qualifiers_those_of_time_are_shown():
    said = [rest_value(f"P{n}", f"text {n}", "string") for n in range(1, 5)]
    when = [
        rest_value("P582", day("+2004-00-00T00:00:00Z", 9), "time"),
        rest_value("P580", day("+1999-00-00T00:00:00Z", 9), "time"),
    ]
    world = lina()
    world.statements["Q1001"] = {"P26": [statement("P26", "Q8", qualifiers=[*said, *when])]}
    assert "Lina Orr | spouse | Ada (P582 2004, start time 1999, P1 text 1)" in texts("spouse of Lina Orr", world)


def test_of_items_with_one_name_the_question_chooses_by_their_descriptions():
    world = lina()
    others = [hit(f"Q3{n}", "Aurora Falls", "village in Norway") for n in range(3)]
    world.sparql = rows()
    world.search["aurora falls"] = [*others, *world.search["aurora falls"]]
    assert texts("director of the film Aurora Falls", world)[0] == "Aurora Falls | director | Lina Orr"
    assert not [text for text in texts("director of Aurora Falls", world) if "director |" in text]


def test_an_item_of_just_that_name_outweighs_one_whose_name_only_begins_so():
    world = FakeWikidata(
        search={"ada": [hit("Q1", "Ada Lovelace")], "bo": [hit("Q2", "Bo")]},
        statements={name: {"P19": [statement("P19", "Q3")]} for name in ("Q1", "Q2")},
        names={"P19": "place of birth", "Q3": "London"},
    )
    found = texts("Were Ada and Bo born in one place?", world)
    assert found == ["Bo | place of birth | London", "Ada Lovelace | place of birth | London"]
