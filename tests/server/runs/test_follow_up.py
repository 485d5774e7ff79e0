"""Questions that follow up a kept run: what is searched again, what is used again, and what is checked again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest

from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.limits import Limits
from agent.sources.live import arxiv, gnews
from agent.sources.resilience.cached import Cached
from agent.sources.resilience.resilient import PLUGIN
from server.chat.service import Service
from tests.server.runs.replicas import all_events, client_of, keeping_service, start

ORR = "Lina Orr was born in Trieste."
FALLS = "Aurora Falls was directed by Lina Orr."
SEARCH = "<search>\nA: director of Aurora Falls (web)\n</search>"
ANSWER = (
    "<evidence>\n- Aurora Falls was directed by Lina Orr. [1]\n- Lina Orr was born in Rome. [1]\n</evidence>\n"
    "<answer>Lina Orr</answer>"
)


@dataclass(frozen=True)
class Counted:
    """Finds two passages, and keeps what it was searched for."""

    requests: list[SearchRequest] = field(default_factory=list[SearchRequest])
    credits_per_search: float = 0.0
    texts: dict[str, str] = field(default_factory=lambda: {"falls": FALLS, "orr": ORR})

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requests.append(request)
        found = (Passage(id=id, source="web", title=id, text=text) for id, text in self.texts.items())
        return SearchResult(tuple(found))


def service_of(source: Counted) -> Service:
    service = keeping_service("memory", turns=(SEARCH, ANSWER))
    return replace(service, agent=replace(service.agent, sources={"web": source, "all": source}))


def conversation(*bodies: dict[str, Any], source: Counted, credits: float = 0.0) -> list[dict[str, Any]]:
    """Questions, each of which follows up the one before; gives their traces."""

    async def run() -> list[dict[str, Any]]:
        async with client_of(service_of(replace(source, credits_per_search=credits))) as client:
            traces = [await traced(client)]
            for body in bodies:
                traces.append(await traced(client, **({"follows": traces[0]["id"]} | body)))
            return traces

    return asyncio.run(run())


async def traced(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    id = await start(client, **body)
    await all_events(client, id)
    return (await client.get(f"/api/runs/{id}")).json()["trace"]


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def searched(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for step in trace["steps"] if step["kind"] == "searched"]


def test_what_the_run_before_searched_is_used_again_and_the_trace_says_so():
    source = Counted()
    first, again = conversation(said("and Aurora Falls?"), source=source)
    assert [step["cached"] for step in searched(first)] == [""]
    assert [step["cached"] for step in searched(again)] == ["reused"]
    assert len(source.requests) == 1
    assert again["follow_up"] == {"text": "and Aurora Falls?", "run": first["id"], "claim": "", "context": "summary"}
    assert again["question"] == first["question"]


def test_what_was_found_in_other_sources_is_not_used_again():
    async def run() -> list[list[str]]:
        source = Counted()
        service = service_of(source)
        service = replace(service, agent=replace(service.agent, sources={"web": source, "kg": source}))
        async with client_of(service) as client:
            first = await traced(client, sources=["web"])
            bodies: list[dict[str, Any]] = [{"sources": ["web"]}, {"sources": ["kg"]}, {}]
            later = [await traced(client, follows=first["id"], **body) for body in bodies]
            return [[step["cached"] for step in searched(trace)] for trace in later]

    assert asyncio.run(run()) == [["reused"], [""], [""]]


HOUR = 3600.0
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("limits", "young", "old"),
    [
        (gnews.LIMITS, 0.2 * HOUR, 0.3 * HOUR),
        (arxiv.LIMITS, 6 * DAY, 8 * DAY),
        (Limits(), 0.9 * DAY, 1.1 * DAY),
        (None, 0.9 * DAY, 1.1 * DAY),
    ],
)
def test_what_is_older_than_its_source_keeps_answers_is_searched_again(limits: Limits | None, young: float, old: float):
    assert reused_after(young, limits)
    assert not reused_after(old, limits)


def test_a_source_that_keeps_no_answers_is_searched_again():
    assert not reused_after(0.0, PLUGIN)


def test_what_is_older_than_the_period_that_is_searched_for_is_searched_again():
    body = {"search_recency_filter": "day"}
    assert reused_after(0.9 * DAY, arxiv.LIMITS, **body)
    assert not reused_after(1.1 * DAY, arxiv.LIMITS, **body)
    assert reused_after(1.1 * DAY, arxiv.LIMITS, search_recency_filter="week")


def test_what_an_earlier_run_found_gets_no_younger_by_being_used_again():
    async def run() -> list[str]:
        service = service_of(Counted())
        async with client_of(service) as client:
            traces = [await traced(client)]
            for _ in range(2):
                traces.append(await traced(client, follows=traces[-1]["id"]))
                await aged(service, 0.6 * DAY)
            return [step["cached"] for trace in traces for step in searched(trace)]

    assert asyncio.run(run()) == ["", "reused", ""]


def reused_after(seconds: float, limits: Limits | None, **body: Any) -> bool:
    """Whether a follow-up of a run that began so long ago uses its search again."""

    async def run() -> bool:
        source = Counted()
        service = service_of(source)
        kept = Cached(source, name="web", store=None, limits=limits) if limits else source
        service = replace(service, agent=replace(service.agent, sources={"web": kept, "all": kept}))
        async with client_of(service) as client:
            first = await traced(client, **body)
            await aged(service, seconds)
            (again,) = searched(await traced(client, follows=first["id"], **body))
            assert len(source.requests) == (1 if again["cached"] else 2)
            return again["cached"] == "reused"

    return asyncio.run(run())


async def aged(service: Service, seconds: float) -> None:
    """Have all runs begun so much earlier."""
    assert service.run_manager is not None
    async with service.run_manager.store.database.writing() as connection:
        await connection.exec_driver_sql(f"UPDATE runs SET created = created - {seconds}")


def test_a_period_is_searched_again_with_its_filter():
    source = Counted()
    first, narrowed = conversation(said("only since 2020"), source=source)
    assert narrowed["question"] == first["question"]
    assert narrowed["filters"] == [{"name": "after", "value": "2020"}]
    assert [step["cached"] for step in searched(narrowed)] == [""]
    assert [[(f.name, f.value) for f in request.filters] for request in source.requests] == [[], [("after", "2020")]]


def test_a_claim_is_checked_again_against_what_it_cited_and_what_is_found_now():
    source = Counted()
    _, right, wrong = conversation(said("check the first claim again"), said("check claim 2 again"), source=source)
    assert right["follow_up"]["claim"] == "Aurora Falls was directed by Lina Orr."
    (claim,) = next(step for step in right["steps"] if step["kind"] == "evidenced")["claims"]
    assert claim["check"] == "verbatim"
    answers = [step for step in right["steps"] if step["kind"] == "answered"]
    assert answers[0]["text"].startswith("Supported: a passage says it in these words [1].")
    assert answers[0]["by"] == "loop"
    (claim,) = next(step for step in wrong["steps"] if step["kind"] == "evidenced")["claims"]
    assert claim["check"] == "contradicted"
    assert [step["cached"] for step in searched(wrong)] == ["", ""], "nothing is used again for a check"


def test_a_claim_is_checked_against_a_document_as_it_is_now():
    source = Counted()

    async def run() -> dict[str, Any]:
        async with client_of(service_of(source)) as client:
            first = await traced(client)
            source.texts["falls"] = "Aurora Falls was directed by Tom Berg."
            return await traced(client, **{"follows": first["id"]} | said("check the first claim again"))

    trace = asyncio.run(run())
    (claim,) = next(step for step in trace["steps"] if step["kind"] == "evidenced")["claims"]
    assert claim["check"] == "contradicted"
    assert FALLS not in [passage["text"] for passage in trace["passages"]]


@dataclass
class InTurn:
    """Finds one passage after the other, then nothing."""

    texts: list[str]

    async def search(self, request: SearchRequest) -> SearchResult:
        texts, self.texts = self.texts[:1], self.texts[1:]
        return SearchResult(tuple(Passage(id=text, source="web", title="", text=text) for text in texts))


def test_a_claim_is_checked_against_what_its_numbers_meant_where_each_round_numbers_its_own():
    source = InTurn([FALLS, ORR])
    found = "<evidence>\n- Lina Orr was born in Trieste. [1]\n</evidence>\n<answer>Trieste</answer>"
    service = keeping_service("memory", turns=(SEARCH, SEARCH, found))
    by_round = service.agent.protocol.model_copy(update={"numbering": "round"})
    agent = replace(service.agent, protocol=by_round, sources={"web": source, "all": source})

    async def run() -> dict[str, Any]:
        async with client_of(replace(service, agent=agent)) as client:
            first = await traced(client)
            assert [(passage["number"], passage["text"]) for passage in first["passages"]] == [(1, FALLS), (1, ORR)]
            return await traced(client, **{"follows": first["id"]} | said("check the first claim again"))

    assert [passage["text"] for passage in asyncio.run(run())["passages"]] == [ORR]


@pytest.mark.parametrize(("budgets", "searches"), [({"searches": 0}, 0), ({"searches": 1}, 1), ({"credits": 1}, 0)])
def test_a_check_keeps_to_the_budgets(budgets: dict[str, Any], searches: int):
    source = Counted()
    body = said("check the first claim again") | {"budgets": budgets}
    _, again = conversation(body, source=source, credits=2.0)
    assert len(searched(again)) == searches
    (claim,) = next(step for step in again["steps"] if step["kind"] == "evidenced")["claims"]
    assert claim["check"] == "verbatim", "what it cited then is still there"


def test_a_claim_that_is_not_there_is_refused():
    async def test(client: httpx2.AsyncClient) -> None:
        first = await traced(client)
        refused = await client.post("/api/runs", json=said("check claim 9 again") | {"follows": first["id"]})
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == "The answer before has no claim 9; it has 2."
        unknown = await client.post("/api/runs", json=said("since 2020") | {"follows": "nothing"})
        assert unknown.status_code == 404

    with_client(test)


def test_the_policy_is_given_as_much_of_the_run_before_as_is_chosen():
    source = Counted()
    bodies = [said("Who is her mother?") | {"context": context} for context in ("summary", "evidence", "all")]
    _, summary, evidence, everything = conversation(*bodies, source=source)
    assert summary["history"] == [["Where was the director of Aurora Falls born?", "Lina Orr"]]
    assert (
        evidence["history"][-1][1] == "Lina Orr\n- Aurora Falls was directed by Lina Orr.\n- Lina Orr was born in Rome."
    )
    assert everything["history"][-1][1].endswith(f"[1] falls: {FALLS}\n[2] orr: {ORR}")


def with_client(test: Callable[[httpx2.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with client_of(service_of(Counted())) as client:
            await test(client)

    asyncio.run(run())
