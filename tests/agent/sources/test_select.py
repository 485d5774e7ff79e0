"""What one request wants of all its searches reaches each of them, and no prompt."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent.errors import QuestionError
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.plan import DOCUMENTS, Filter
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.sources.filters import joined, read_filters, unhonoured
from agent.sources.fuse import FusedSource, fused
from agent.sources.select import choose, names_of, selected
from agent.trace import Searched, Trace
from agent.world import load_world
from tests.conftest import Broken, Echo, make_agent


@dataclass
class Listening:
    """A source that remembers its requests, and honours no filter."""

    name: str
    requests: list[tuple[str, tuple[Filter, ...]]] = field(default_factory=list[tuple[str, tuple[Filter, ...]]])
    credits_per_search: float = 0.0

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        self.requests.append((query, request.filters))
        found = Passage(id=f"{self.name}:{query}", source=self.name, title=query, text=f"About {query}.")
        return SearchResult((found,), notes=unhonoured(request.filters, honours=(), by=self.name))


def filters(**conditions: str) -> tuple[Filter, ...]:
    return tuple(Filter(name=name.rstrip("_"), value=value) for name, value in conditions.items())


def roll(agent: Agent) -> Trace:
    return asyncio.run(agent.run(agent.new_trace("Who directed it?")))


PLAN = "<think>Hm.</think>\n<search>\nA: the film (web, after 2020)\nB: the director (kg)\nC: both\n</search>"
ANSWER = "<evidence>\n- Orr. [1]\n</evidence>\n<answer>Orr</answer>"


def listening() -> dict[str, Listening]:
    return {name: Listening(name) for name in ("web", "news", "kg", "all")}


def agent_of(sources: dict[str, Listening]) -> Agent:
    return Agent(policy=ScriptedPolicy((PLAN, ANSWER)), protocol=protocol_named("cairn"), sources=sources)


def test_the_filters_of_a_request_reach_every_search_and_stand_in_the_trace() -> None:
    sources = listening()
    wanted = filters(site="a.org", before="2026-01-01")
    plain = agent_of(listening())
    agent = Agent(plain.policy, plain.protocol, sources, filters=wanted)
    trace = roll(agent)
    assert sources["kg"].requests == [("the director", wanted)]
    assert sources["web"].requests == [("the film", (*filters(after="2020"), *wanted))]
    assert sources["all"].requests == [("both", wanted)]
    assert trace.filters == wanted
    notes = [step.note for step in trace.steps if isinstance(step, Searched) and step.source == "kg"]
    assert notes == ["kg cannot filter by 'site a.org'; kg cannot filter by 'before 2026-01-01'"]
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


def test_what_the_policy_reads_and_writes_is_the_same_with_filters_as_without() -> None:
    plain = agent_of(listening())
    filtered = Agent(plain.policy, plain.protocol, listening(), filters=filters(site="a.org"))
    assert [s.text for s in roll(filtered).segments] == [s.text for s in roll(plain).segments]
    assert "filters" not in roll(plain).model_dump()


def test_only_the_chosen_sources_are_searched_and_answer_for_the_others() -> None:
    sources = listening()
    plain = agent_of(sources)
    trace = roll(Agent(plain.policy, plain.protocol, sources, only=("news",)))
    assert [query for query, _ in sources["news"].requests] == ["the film", "the director", "both"]
    assert [sources[name].requests for name in ("web", "kg", "all")] == [[], [], []]
    steps = {step.source: step for step in trace.steps if isinstance(step, Searched)}
    assert steps["kg"].note == "kg was not chosen: news was searched"
    assert [passage.source for passage in steps["kg"].passages] == ["news"]
    assert steps["all"].note == ""
    assert trace.only == ("news",)


def test_several_chosen_sources_are_fused_and_each_is_searched_once() -> None:
    sources = listening()
    sources["wiki"] = sources["web"]
    made = selected(sources, only=("web", "wiki", "kg"))
    hits = asyncio.run(made["news"].search(SearchRequest("q", limit=9)))
    assert [passage.source for passage in hits.passages] == ["web", "kg"]
    assert hits.notes == ("news was not chosen: web, wiki, kg were searched",)
    assert len(sources["web"].requests) == 1


def test_the_documents_beside_a_graph_stay_without_the_graph() -> None:
    sources = {**listening(), DOCUMENTS: Listening(DOCUMENTS)}
    made = selected(sources, only=("web", "kg"))
    found = asyncio.run(made[DOCUMENTS].search(SearchRequest("q", limit=9)))
    assert [passage.source for passage in found.passages] == ["web"]
    assert set(made) == set(sources)


def test_a_request_without_a_choice_gets_the_sources_themselves() -> None:
    sources = listening()
    assert selected(sources) is sources
    made = selected(sources, only=("all",), filters=filters(site="x"))
    assert asyncio.run(made["kg"].search(SearchRequest("q", limit=1))).passages


@pytest.mark.parametrize(
    ("own", "wanted", "together"),
    [
        (filters(after="2020"), filters(after="2020-05-01"), filters(after="2020-05-01")),
        (filters(after="2021"), filters(after="2020-05-01"), filters(after="2021")),
        (filters(before="2020"), filters(before="2020-05-01"), filters(before="2020-05-01")),
        (filters(before="2019-12"), filters(before="2020"), filters(before="2019-12")),
        (filters(recent="day"), filters(recent="month"), filters(recent="day")),
        (filters(site="evil.org"), filters(site="a.org"), filters(site="a.org")),
        (filters(site="www.sub.a.org"), filters(site="a.org"), filters(site="www.sub.a.org")),
        (filters(site="nota.org"), filters(site="a.org"), filters(site="a.org")),
        (filters(site="evil.org/x.a.org"), filters(site="a.org"), filters(site="a.org")),
        (filters(site="a.org/blog"), filters(site="www.a.org"), filters(site="a.org/blog")),
        (filters(site="a.org/blog/2026"), filters(site="a.org/Blog/"), filters(site="a.org/blog/2026")),
        (filters(site="a.org/blogs"), filters(site="a.org/blog"), filters(site="a.org/blog")),
        (filters(site="a.org"), filters(site="a.org/blog"), filters(site="a.org/blog")),
        (filters(lang="de"), filters(lang="en"), filters(lang="en")),
        (filters(not_="a.org"), (Filter(name="not", value="b.org"),), (*filters(not_="a.org"), Filter(name="not", value="b.org"))),
        (filters(site="a.org", after="2020"), (), filters(site="a.org", after="2020")),
    ],
)  # fmt: skip
def test_a_query_can_only_narrow_what_the_request_allows(
    own: tuple[Filter, ...], wanted: tuple[Filter, ...], together: tuple[Filter, ...]
) -> None:
    assert joined(own, wanted) == together
    read_filters(together)


def test_the_little_world_says_which_filters_it_cannot_honour() -> None:
    source = load_world("dev-v2").sources()["web"]
    every = asyncio.run(source.search(SearchRequest("river", limit=5)))
    host = every.passages[0].url.split("/")[2]
    hits = asyncio.run(source.search(SearchRequest("river", limit=5, filters=filters(lang="de"))))
    assert (hits.passages, hits.notes) == (every.passages, ("the little world cannot filter by 'lang de'",))
    without = asyncio.run(source.search(SearchRequest("river", limit=5, filters=filters(not_=host))))
    assert not any(host in passage.url for passage in without.passages)
    either = (Filter(name="site", value="nowhere.example"), Filter(name="site", value=host))
    there = asyncio.run(source.search(SearchRequest("river", limit=5, filters=either)))
    assert all(host in passage.url for passage in there.passages)
    nowhere = asyncio.run(source.search(SearchRequest("river", limit=5, filters=filters(site="nowhere.example"))))
    assert not nowhere.passages


# Some of the sources by their names, and an `all` that asks no other

SOURCES = {name: Echo(name) for name in ("web", "kg", "news", "all", DOCUMENTS)}


def test_all_asks_only_what_was_chosen():
    chosen = choose(SOURCES, ["web", "kg"])
    assert list(chosen) == ["web", "kg", "all", DOCUMENTS]
    every, documents = (asyncio.run(chosen[name].search(SearchRequest("q", limit=9))) for name in ("all", DOCUMENTS))
    assert {p.source for p in every.passages} == {"web", "kg"}
    assert {p.source for p in documents.passages} == {"web"}


@pytest.mark.parametrize("names", [(), ("all",), ("web", "all")])
def test_no_names_or_all_is_everything(names: tuple[str, ...]):
    assert choose(SOURCES, names) == SOURCES


def test_one_source_answers_under_all_too_and_under_no_other_name():
    chosen = choose(SOURCES, [" KG ", "kg"])
    assert list(chosen) == ["kg", "all"]
    assert chosen["all"] is SOURCES["kg"]


def test_a_source_under_several_names_is_searched_once():
    echo = Echo("web")
    chosen = choose({"web": echo, "news": echo, "all": echo}, ["web", "news"])
    assert chosen["all"] is echo


@dataclass
class Full:
    """A source that has as many passages as may be; counts its searches."""

    name: str
    state: str = "of these files"
    searches: int = 0

    async def search(self, request: SearchRequest) -> SearchResult:
        self.searches += 1
        found = (Passage(id=f"{self.name} {n}", source=self.name, title="", text=f"{n}") for n in range(request.limit))
        return SearchResult(tuple(found))


@pytest.mark.parametrize("only", [("web", "news"), ("all",)])
def test_a_library_beside_two_sources_is_one_of_three_in_all_and_searched_once(only: tuple[str, ...]):
    library, web, news = Full("library"), Full("web"), Full("news")
    sources: dict[str, Source] = {"web": web, "news": news}

    async def find(libraries: Sequence[str], files: Sequence[str]) -> tuple[tuple[str, ...], Full]:
        return tuple(libraries), library

    async def main() -> SearchResult:
        agent = replace(make_agent([], sources=sources | {"all": fused(sources, ["web", "news"])}), find_libraries=find)
        beside = await agent.with_libraries(["vs_1"], beside_sources=True)
        return await selected(beside.sources, only=only)["all"].search(SearchRequest("q", limit=6))

    found = asyncio.run(main())
    assert Counter(passage.source for passage in found.passages) == {"library": 2, "web": 2, "news": 2}
    assert (library.searches, web.searches, news.searches) == (1, 1, 1)


def test_no_part_of_what_is_fused_again_is_lost_because_another_one_has_its_name():
    inner = FusedSource({"wiki": Full("inner"), "web": Full("web")})
    outer: dict[str, Source] = {"other": inner, "wiki": Full("outer")}
    found = asyncio.run(fused(outer, ["wiki", "other"]).search(SearchRequest("q", limit=6)))
    assert Counter(passage.source for passage in found.passages) == {"outer": 2, "inner": 2, "web": 2}


def test_a_library_beside_a_source_that_fails_names_that_source():
    async def find(libraries: Sequence[str], files: Sequence[str]) -> tuple[tuple[str, ...], Full]:
        return tuple(libraries), Full("library")

    async def main() -> SearchResult:
        agent = replace(make_agent([], sources={"web": Broken(), "all": Broken()}), find_libraries=find)
        beside = await agent.with_libraries(["vs_1"], beside_sources=True)
        return await beside.sources["web"].search(SearchRequest("q", limit=1))

    assert asyncio.run(main()).lost == ("web",)


@pytest.mark.parametrize("name", ["x", DOCUMENTS, ""])
def test_a_name_that_is_not_for_choice_is_an_error_that_lists_those_that_are(name: str):
    with pytest.raises(QuestionError, match=r"choose from: web, kg, news$"):
        choose(SOURCES, [name])
    assert names_of(SOURCES) == ("web", "kg", "news")
