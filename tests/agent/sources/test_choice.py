"""Some of the sources by their names, and an `all` that asks no other."""

import asyncio

import pytest

from agent.errors import QuestionError
from agent.plan import DOCUMENTS
from agent.sources.choice import choose, names_of
from tests.conftest import Echo

SOURCES = {name: Echo(name) for name in ("web", "kg", "news", "all", DOCUMENTS)}


def test_all_asks_only_what_was_chosen():
    chosen = choose(SOURCES, ["web", "kg"])
    assert list(chosen) == ["web", "kg", "all", DOCUMENTS]
    assert {p.source for p in asyncio.run(chosen["all"].search("q", limit=9))} == {"web", "kg"}
    assert {p.source for p in asyncio.run(chosen[DOCUMENTS].search("q", limit=9))} == {"web"}


@pytest.mark.parametrize("names", [(), ("all",), ("web", "all")])
def test_no_names_or_all_is_everything(names: tuple[str, ...]):
    assert choose(SOURCES, names) == SOURCES


def test_one_source_answers_under_all_too_and_under_no_other_name():
    chosen = choose(SOURCES, [" KG ", "kg"])
    assert list(chosen) == ["kg", "all"]
    assert chosen["all"] is SOURCES["kg"]


def test_a_source_under_several_names_is_asked_once():
    echo = Echo("web")
    chosen = choose({"web": echo, "news": echo, "all": echo}, ["web", "news"])
    assert chosen["all"] is echo


@pytest.mark.parametrize("name", ["x", DOCUMENTS, ""])
def test_a_name_that_nobody_may_choose_is_an_error_that_tells_those_one_may(name: str):
    with pytest.raises(QuestionError, match=r"there are: web, kg, news$"):
        choose(SOURCES, [name])
    assert names_of(SOURCES) == ("web", "kg", "news")
