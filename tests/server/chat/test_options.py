"""What a request says beside its question: filters, sources, budgets, and no search at all."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent.evidence import Passage
from agent.loop.agent import Agent, Budgets
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import unhonoured
from agent.trace import Trace
from agent.trace.attempts import UNSEARCHED
from server.chat.request import ChatRequest
from server.chat.service import Service
from server.http.errors import ApiError
from tests.server.live import ANSWER, QUESTION, SEARCH, in_memory, make_service


@dataclass
class Listening:
    """A source that remembers its requests, and honours dates alone."""

    name: str
    requests: list[tuple[tuple[str, str], ...]] = field(default_factory=list[tuple[tuple[str, str], ...]])

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requests.append(tuple((f.name, f.value) for f in request.filters))
        found = [Passage(id=request.query, source=self.name, title=request.query, text=f"About {request.query}.")]
        return SearchResult(tuple(found), notes=unhonoured(request.filters, honours={"after", "before"}, by=self.name))


PAPERS = ("openalex", "arxiv", "pubmed", "semanticscholar")


def listening() -> dict[str, Listening]:
    return {name: Listening(name) for name in ("web", "arxiv", "kg", "all")}


def service_of(sources: Mapping[str, Listening], kept: list[Trace] | None = None) -> Service:
    agent = Agent(policy=ScriptedPolicy((SEARCH, ANSWER)), protocol=protocol_named("cairn"), sources=sources)
    traces: list[Trace] = [] if kept is None else kept
    return make_service(agent=agent, keep=traces.append)


def post(service: Service, **body: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with asyncio.timeout(20), in_memory(service) as client:
            request = {"model": "cairn", "messages": QUESTION} | body
            response = await client.post("/v1/chat/completions", json=request)
            return {"status": response.status_code} | response.json()

    return asyncio.run(run())


def filters_of(**said: Any) -> list[tuple[str, str]]:
    request = ChatRequest.model_validate({"messages": [], **said})
    return [(f.name, f.value) for f in request.filters(listening())]


@pytest.mark.parametrize(
    ("said", "filters"),
    [
        ({}, []),
        ({"search_domain_filter": ["nasa.gov", "-pinterest.com"]}, [("site", "nasa.gov"), ("not", "pinterest.com")]),
        ({"search_domain_filter": ["https://NASA.gov/page", "- .gov"]}, [("site", "nasa.gov"), ("not", "gov")]),
        ({"search_recency_filter": "month"}, [("recent", "month")]),
        ({"search_recency_filter": "hour"}, [("recent", "day")]),
        ({"search_after_date_filter": "3/1/2025"}, [("after", "2025-03-01")]),
        ({"search_before_date_filter": "2025-12-24"}, [("before", "2025-12-24")]),
        ({"search_mode": "web"}, []),
        ({"search_mode": "academic"}, []),
        ({"search_mode": "academic", "sources": ["web"]}, [("kind", "science")]),
        ({"search_mode": "sec"}, [("kind", "finance")]),
        ({"search_domain_filter": None, "search_recency_filter": None, "sources": None, "budgets": None}, []),
    ],
)
def test_perplexitys_names_become_filters(said: dict[str, Any], filters: list[tuple[str, str]]) -> None:
    assert filters_of(**said) == filters


def test_the_filters_of_a_request_reach_every_search_and_what_cannot_honour_them_says_so() -> None:
    sources, kept = listening(), list[Trace]()
    got = post(service_of(sources, kept), search_domain_filter=["a.org"], search_after_date_filter="2025-01-01")
    assert got["status"] == 200
    wanted = (("site", "a.org"), ("after", "2025-01-01"))
    assert (sources["web"].requests, sources["kg"].requests) == ([wanted], [wanted])
    (trace,) = kept
    assert [(f.name, f.value) for f in trace.filters] == list(wanted)
    assert [s.note for s in trace.steps if s.kind == "searched"] == [
        "web cannot filter by 'site a.org'", "kg cannot filter by 'site a.org'",
    ]  # fmt: skip
    assert not any("a.org" in segment.text for segment in trace.segments)


def test_only_chosen_sources_are_searched() -> None:
    sources = listening()
    assert post(service_of(sources), sources=["ARXIV "])["status"] == 200
    assert [len(source.requests) for source in sources.values()] == [0, 2, 0, 0]


@pytest.mark.parametrize(
    ("there", "searched"),
    [
        (("web", "kg", "arxiv"), ("arxiv",)),
        (("web", "kg", "pubmed", "semanticscholar", "github"), ("pubmed", "semanticscholar")),
        ((*PAPERS, "web", "kg"), PAPERS),
        (("web", "kg"), ("web", "kg")),
    ],
)
def test_academic_searches_every_source_of_papers(there: tuple[str, ...], searched: tuple[str, ...]) -> None:
    sources = {name: Listening(name) for name in (*there, "all")}
    kept = list[Trace]()
    assert post(service_of(sources, kept), search_mode="academic")["status"] == 200
    papers = "web" not in searched
    assert {name for name, source in sources.items() if source.requests} == {*searched}
    assert kept[0].only == (searched if papers else ())
    assert [(one.name, one.value) for one in kept[0].filters] == ([] if papers else [("kind", "science")])


def test_a_budget_of_a_request_ends_the_rollout() -> None:
    kept = list[Trace]()
    post(service_of(listening(), kept), budgets={"searches": 1})
    assert kept[0].usage.searches == 1
    assert [step.why for step in kept[0].steps if step.kind == "skipped"] == ["the budget of searches has ended"]


TOKENS = {"max_tokens": 1024}, {"max_completion_tokens": 1024}, {"budgets": {"tokens": 1024}}


@pytest.mark.parametrize("said", TOKENS)
def test_as_many_tokens_as_are_held_back_for_the_answer_still_leave_a_turn_that_searches(said: dict[str, Any]) -> None:
    sources = listening()
    service = service_of(sources)
    service = replace(service, agent=replace(service.agent, budgets=Budgets(answer_tokens=1024)))
    got = post(service, **said)
    assert got["choices"][0]["finish_reason"] == "stop"
    assert got["usage"]["num_search_queries"] == 2
    assert got["choices"][0]["message"]["content"].startswith("Trieste")
    assert UNSEARCHED not in got["choices"][0]["message"]["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_forced_before_any_search_says_so(stream: bool) -> None:
    sources = listening()
    service = service_of(sources)
    thoughts = "<think>" + "Let me think about it. " * 9
    service = replace(service, agent=replace(service.agent, policy=ScriptedPolicy((thoughts, "Trieste</answer>"))))

    async def run() -> str:
        async with in_memory(service) as client:
            body = {"model": "cairn", "messages": QUESTION, "max_tokens": 100, "stream": stream}
            said = (await client.post("/v1/chat/completions", json=body)).text
        if not stream:
            return json.loads(said)["choices"][0]["message"]["content"]
        chunks = [json.loads(frame.removeprefix("data: ")) for frame in said.split("\n\n")[:-2]]
        return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])

    assert asyncio.run(run()) == f"Trieste\n\n{UNSEARCHED}"
    assert not any(source.requests for source in sources.values())


def test_a_chat_that_is_cut_says_nothing_about_searches() -> None:
    service = service_of(listening())
    policy = ScriptedPolicy(("A title that goes on and on",), instructed=True)
    service = replace(service, agent=replace(service.agent, policy=policy))
    got = post(service, model="cairn-chat", max_tokens=7)
    assert got["choices"][0]["message"]["content"] == "A title"
    assert got["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"sources": ["Bing"]}, "There is no source 'bing'; choose from: web, arxiv, kg"),
        ({"budgets": {"dollars": 1}}, "'budgets.dollars' cannot be used"),
        ({"budgets": {"seconds": 0}}, "'budgets.seconds' cannot be used"),
        ({"search_domain_filter": ["no domain"]}, "write a domain like 'nasa.gov'"),
        ({"search_domain_filter": ["a.org"] * 21}, "'search_domain_filter' cannot be used"),
        ({"search_after_date_filter": "2025-02-30"}, "write the day as 2026-03-01"),
        ({"search_after_date_filter": "soon"}, "'search_after_date_filter' cannot be used"),
        ({"search_recency_filter": "decade"}, "'search_recency_filter' cannot be used"),
        ({"profile": "word"}, "'profile' cannot be used"),
    ],
)
def test_an_option_that_cannot_be_met_is_refused_with_a_hint(said: dict[str, Any], hint: str) -> None:
    got = post(service_of(listening()), **said)
    assert got["status"] == 400
    assert hint in got["error"]["message"]


def test_sources_that_are_not_there_are_an_error_of_the_request() -> None:
    request = ChatRequest.model_validate({"messages": [], "sources": ["x"]})
    with pytest.raises(ApiError) as refused:
        request.only(listening())
    assert refused.value.body["error"]["param"] == "sources"


def test_without_a_search_a_trained_policy_answers_at_once_and_the_answer_says_so() -> None:
    sources = listening()
    service = service_of(sources)
    turns = (SEARCH, "Trieste</answer>")
    service = replace(service, agent=replace(service.agent, policy=ScriptedPolicy(turns)))
    got = post(service, disable_search=True)
    assert got["choices"][0]["message"]["content"] == "Trieste\n\nThis was answered without a search."
    assert not any(source.requests for source in sources.values())
    assert (got["usage"]["num_search_queries"], got["citations"]) == (0, [])


def test_without_a_search_a_chat_model_answers_by_itself_and_the_answer_says_so() -> None:
    seen: list[str] = []

    def turn(context: str) -> str:
        seen.append(context)
        return "<think>Easy.</think>\nTrieste"

    service = service_of(listening())
    service = replace(service, agent=replace(service.agent, policy=ScriptedPolicy(turn, instructed=True)))
    got = post(service, disable_search=True)
    assert got["choices"][0]["message"]["content"] == "Trieste\n\nThis was answered without a search."
    assert "<search>" not in seen[0]
    titled = post(service, disable_search=True, model="cairn-chat")
    assert titled["choices"][0]["message"]["content"] == "Trieste"


def test_null_means_left_out() -> None:
    options = dict.fromkeys(ChatRequest.model_fields.keys() - {"messages"})
    assert post(make_service(), **options)["model"] == "cairn"
    assert post(make_service(), messages=None)["error"]["code"] == "missing_required_parameter"


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_is_not_kept_where_the_request_says_so(stream: bool) -> None:
    kept: list[Trace] = []

    async def run() -> None:
        async with in_memory(make_service(keep=kept.append)) as client:
            for store in (False, None, True):
                body = {"messages": QUESTION, "stream": stream, "store": store}
                (await client.post("/v1/chat/completions", json=body)).raise_for_status()

    asyncio.run(run())
    assert len(kept) == 2
