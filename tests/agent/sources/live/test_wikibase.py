"""Wikibase's values in words, from both JSON shapes; names in questions; what a query for edges looks like."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.live.mentions import MAX_MENTIONS, item_ids, mentions
from agent.sources.live.wikibase import format_time, read_claims, read_statements
from agent.sources.live.wikibase_api import incoming_query, is_sparql
from tests.agent.sources.live.knowledge import day, rest_value, statement


@pytest.mark.parametrize(
    ("time", "precision", "written"),
    [
        ("+1971-03-11T00:00:00Z", 11, "1971-03-11"),
        ("+1971-03-11T12:30:00Z", 14, "1971-03-11"),
        ("+1971-03-00T00:00:00Z", 10, "1971-03"),
        ("+1971-00-00T00:00:00Z", 9, "1971"),
        ("+0987-05-06T00:00:00Z", 11, "0987-05-06"),
        ("+1971-00-00T00:00:00Z", 8, "1970s"),
        ("+1900-00-00T00:00:00Z", 7, "19th century"),
        ("+1901-00-00T00:00:00Z", 7, "20th century"),
        ("+2100-00-00T00:00:00Z", 7, "21st century"),
        ("+1150-00-00T00:00:00Z", 7, "12th century"),
        ("+1500-00-00T00:00:00Z", 6, "2nd millennium"),
        ("-0044-03-15T00:00:00Z", 11, "44-03-15 BCE"),
        ("-0044-00-00T00:00:00Z", 9, "44 BCE"),
        ("-0300-00-00T00:00:00Z", 7, "3rd century BCE"),
        ("-13798000000-00-00T00:00:00Z", 3, "about 13,798,000,000 BCE"),
    ],
)
def test_a_time_is_written_as_far_as_it_is_known(time: str, precision: int, written: str):
    assert format_time(time, precision=precision) == written


@pytest.mark.parametrize(
    ("content", "data_type", "shown"),
    [
        ("Q5", "wikibase-item", "human"),
        ("Q404", "wikibase-item", "Q404"),
        ("Q5", "string", "Q5"),
        ("two\n lines", "string", "two lines"),
        ({"amount": "+170", "unit": "http://www.wikidata.org/entity/Q5"}, "quantity", "170 human"),
        ({"amount": "-3.5", "unit": "1"}, "quantity", "-3.5"),
        ({"latitude": 45.65, "longitude": -13.7, "precision": 0.1}, "globe-coordinate", "45.6500, -13.7000"),
        ({"language": "de", "text": "Über {}"}, "monolingualtext", "Über {}"),
        (day("+1971-03-11T00:00:00Z"), "time", "1971-03-11"),
    ],
)
def test_a_value_is_read_alike_from_both_shapes(content: Any, data_type: str, shown: str):
    entity = data_type == "wikibase-item"
    snak = {
        "snaktype": "value",
        "property": "P1",
        "datatype": data_type,
        "datavalue": {"value": {"entity-type": "item", "id": content} if entity else content},
    }
    claim = {"mainsnak": snak, "rank": "normal", "qualifiers": {"P1": [snak]}, "qualifiers-order": ["P1"], "id": "x"}
    (by_action,) = read_claims({"claims": {"P1": [claim]}})
    rest = statement("P1", content, data_type, qualifiers=[rest_value("P1", content, data_type)]) | {"id": "x"}
    (by_rest,) = read_statements({"P1": [rest]})
    assert by_action == by_rest
    assert by_rest.value.shown({"Q5": "human"}) == by_rest.qualifiers[0][1].shown({"Q5": "human"}) == shown


def test_of_one_property_the_preferred_come_first_and_the_deprecated_never():
    ranks = [("Q1", "normal"), ("Q2", "deprecated"), ("Q3", "preferred"), ("Q4", "normal")]
    found = read_statements({"P1": [statement("P1", name, rank=rank) for name, rank in ranks]})
    assert [s.value.entity for s in found] == ["Q3", "Q1", "Q4"]


@pytest.mark.parametrize("shape", [[], {}])
def test_an_item_without_statements_has_none(shape: object):
    assert read_statements(shape) == []
    assert read_claims({"id": "Q1", "claims": shape}) == []
    assert read_claims({"id": "Q1", "missing": ""}) == []


@pytest.mark.parametrize("shape", ["x", {"P1": {}}, {"P1": [7]}, {"P1": [{"property": {"id": "P1"}}]}, [1]])
def test_another_shape_is_refused(shape: object):
    with pytest.raises((ValueError, KeyError)):
        read_statements(shape)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("who directed Aurora Falls", ["Aurora Falls"]),
        ("films directed by Christopher Nolan", ["Christopher Nolan"]),
        ("Where was Lina Orr's mother born?", ["Lina Orr"]),
        ('who wrote "the dune"', ["the dune"]),
        ("Who directed The Lord of the Rings?", ["The Lord of the Rings"]),
        ("2001: A Space Odyssey director", ["2001: A Space Odyssey"]),
        ("Capital of France", ["Capital of France", "France"]),
        ("The capital of France", ["France"]),
        ("The Who members", ["The Who"]),
        ("In which city was Émile Zola born?", ["Émile Zola"]),
        ("Did Ada Low and Bo Hay marry?", ["Ada Low and Bo Hay", "Ada Low", "Bo Hay"]),
        ("Is the Eiffel Tower in Paris?", ["Eiffel Tower in Paris", "Eiffel Tower", "Paris"]),
        ("place of birth of albert einstein", ["albert einstein", "place of birth of albert einstein"]),
        ("albert einstein's birthplace", ["albert einstein", "albert einstein's birthplace"]),
        ("where was albert einstein born", ["albert einstein", "albert einstein born"]),
        ("what is the capital of france", ["france", "capital of france"]),
        ("aurora falls director", ["aurora falls director", "aurora falls"]),
        ("christopher nolan films", ["christopher nolan films", "christopher nolan"]),
        ("spouse marie curie", ["spouse marie curie", "marie curie"]),
        ("aurora falls film director", ["aurora falls film director", "aurora falls film", "aurora falls"]),
        ("dune", ["dune"]),
        ("爱因斯坦", ["爱因斯坦"]),
        ("?", []),
    ],
)
def test_the_names_in_a_question_are_found(question: str, names: list[str]):
    assert mentions(question) == names


@given(st.text(max_size=80))
def test_there_are_at_most_three_names_and_all_stand_in_the_question(text: str):
    found = mentions(text)
    assert len(found) <= MAX_MENTIONS
    plain = " ".join(text.split())
    assert all(name and name == name.strip() and name in plain for name in found if "’" not in text and "'" not in text)


def test_ids_of_items_are_seen():
    assert item_ids("is Q42 (Q42) older than Q1001 or Q0, FAQ7, Q7a?") == ["Q42", "Q1001"]


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("SELECT ?x WHERE { ?x ?y ?z }", True),
        ("# a note\nPREFIX wd: <http://x/>\nprefix : <http://y/>\nselect * { ?x ?y ?z } limit 3", True),
        ("ASK { wd:Q1 ?p ?o }", True),
        ("select committee members", False),
        ("ask Jeeves founder", False),
        ("DELETE WHERE { ?x ?y ?z }", False),
    ],
)
def test_sparql_is_distinguished_from_a_question(text: str, yes: bool):
    assert is_sparql(text) == yes


@given(st.sets(st.text(max_size=8), max_size=4))
def test_no_word_of_a_question_can_be_sparql(words: set[str]):
    plain = incoming_query("Q1", words=(), lang="en")
    query = incoming_query("Q1", words=words, lang="en")
    good = sorted(word for word in words if word.isalnum())
    pattern = f'"(^|[^a-z])({"|".join(good)})"'
    assert (pattern in query) == bool(good)
    named = f' ?p rdfs:label|skos:altLabel ?name. FILTER(LANG(?name) = "en" && REGEX(LCASE(STR(?name)), {pattern}))'
    assert query.replace(named, " ") == plain
