"""What operators see: metrics under the names that dashboards know, one log line a request and a run, readiness."""

import asyncio
import io
import json
import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.errors import PolicyError, SourceError
from agent.evidence import Passage
from agent.policies.scripted import ScriptedPolicy
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.pages.blocked import report_blocked
from server.chat.service import Service
from server.telemetry import health
from server.telemetry.logs import set_up_logs
from server.telemetry.redact import Redactor
from server.telemetry.watch import Observer, WatchedRun
from tests.server.live import ANSWER, QUESTION, SEARCH, HangingPolicy, Nothing, in_memory, make_service, serving

CHAT = "/v1/chat/completions"
Samples = dict[tuple[str, ...], float]


def measured(text: str) -> dict[str, Samples]:
    """By name: the samples by the values of their labels, in the order of the labels' names."""
    found: dict[str, Samples] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "le")
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def after(service: Service, *asks: tuple[str, str, Any]) -> tuple[dict[str, Samples], str]:
    async def run() -> str:
        async with asyncio.timeout(20), in_memory(service) as client:
            for method, path, body in asks:
                await client.request(method, path, json=body)
            return (await client.get("/metrics")).text

    text = asyncio.run(run())
    return measured(text), text


def with_sources(source: Any) -> Service:
    service = make_service((SEARCH, ANSWER))
    return replace(service, agent=replace(service.agent, sources={"web": source, "kg": source, "all": source}))


def test_the_names_and_labels_are_those_of_the_contract() -> None:
    asks = [("POST", CHAT, {"messages": QUESTION, "stream": stream}) for stream in (True, False)]
    found, text = after(make_service(), *asks)
    assert found["cairn_requests_total"]["200", CHAT] == 2
    assert found["cairn_request_duration_seconds_count"][(CHAT,)] == 2
    assert found["cairn_time_to_first_token_seconds_count"][()] == 2
    assert found["cairn_runs_active"][()] == 0
    assert found["cairn_search_requests_total"] == {("found", "web"): 2, ("found", "kg"): 2}
    assert set(found["cairn_search_duration_seconds_count"]) == {("web",), ("kg",)}
    assert set(found["cairn_tokens_total"]) == {("prompt",), ("environment",), ("reasoning",), ("answer",)}
    assert min(found["cairn_tokens_total"].values()) > 0
    assert found["cairn_runs_total"] == {("answered",): 2}
    for name in ("cairn_runs_cancelled_total", "cairn_cache_hits_total", "cairn_fetch_blocked_total"):
        assert f"# TYPE {name.removesuffix('_total')} counter" in text or f"# TYPE {name} counter" in text


def test_metrics_hold_no_word_of_a_question_and_no_path_of_a_stranger() -> None:
    asks = [("POST", CHAT, {"messages": QUESTION}), ("GET", "/no-such-path", None), ("GET", "/static/../x", None)]
    found, text = after(make_service(), *asks)
    assert found["cairn_requests_total"]["404", "other"] >= 1
    assert not re.search("Aurora|Trieste|no-such-path", text)


def test_refused_requests_are_counted_too() -> None:
    found, _ = after(make_service(), ("POST", CHAT, {"messages": []}), ("GET", CHAT, None))
    assert {code for code, route in found["cairn_requests_total"] if route == CHAT} == {"400", "405"}


@dataclass
class Cached:
    """A source that had looked before."""

    async def search(self, request: SearchRequest) -> SearchResult:
        report_blocked("robots")
        report_blocked("slow")
        return SearchResult((Passage(id="1", source="web", title="T", text="She comes from Trieste."),), cached="stale")


@dataclass
class Failing:
    """A source that always fails."""

    async def search(self, request: SearchRequest) -> SearchResult:
        raise SourceError("no more credits", kind="quota")


def test_cache_hits_and_pages_that_were_left_alone_are_counted() -> None:
    found, _ = after(with_sources(Cached()), ("POST", CHAT, {"messages": QUESTION}))
    assert found["cairn_cache_hits_total"] == {("searches_stale",): 2}
    assert found["cairn_fetch_blocked_total"] == {("robots",): 2}


@pytest.mark.parametrize(("source", "outcome"), [(Failing(), "quota"), (Nothing(), "empty")])
def test_the_outcome_of_a_search_is_its_failure_or_that_nothing_was_found(source: Any, outcome: str) -> None:
    found, _ = after(with_sources(source), ("POST", CHAT, {"messages": QUESTION}))
    assert {labels[0] for labels in found["cairn_search_requests_total"]} == {outcome}


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_run_that_is_cut_short_is_counted_by_who_did_it(who: str) -> None:
    async def run() -> dict[str, Samples]:
        policy = HangingPolicy()
        service = make_service()
        service = replace(service, agent=replace(service.agent, policy=policy))
        async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
            pending = asyncio.create_task(client.post(CHAT, json={"messages": QUESTION}, timeout=None))
            await policy.requested.wait()
            assert measured((await client.get("/metrics")).text)["cairn_runs_active"][()] == 1
            if who == "client":
                pending.cancel()
            else:
                service.watch.stopping = True
                service.runs.end()
            await policy.let_go.wait()
            await asyncio.gather(pending, return_exceptions=True)
            await service.watch.idle()
            return measured((await client.get("/metrics")).text)

    found = asyncio.run(run())
    assert found["cairn_runs_cancelled_total"] == {(who,): 1}
    assert found["cairn_runs_active"][()] == 0


def test_an_observer_that_breaks_breaks_no_run(caplog: pytest.LogCaptureFixture) -> None:
    class Bad(Observer):
        def saw(self, run: WatchedRun, step: Any) -> None:
            raise ZeroDivisionError("in the telemetry")

    found, _ = after(make_service(observers=(Bad(),)), ("POST", CHAT, {"messages": QUESTION}))
    assert found["cairn_runs_total"] == {("answered",): 1}
    assert "in the telemetry" in caplog.text


@pytest.fixture
def lines() -> io.StringIO:
    """The log as it is set up in production, written here."""
    out = io.StringIO()
    set_up_logs(secrets={"hunter2-hunter2"}, form="json", level="info", stream=out)
    return out


def test_a_request_and_its_run_have_a_line_each_with_the_same_id(lines: io.StringIO) -> None:
    async def run() -> None:
        async with in_memory(make_service()) as client:
            await client.post(CHAT, json={"messages": QUESTION}, headers={"x-request-id": "mine-7"})
            await client.get("/healthz")

    asyncio.run(run())
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["message"] for line in logged] == ["run ended", f"POST {CHAT} 200"]
    assert [line["request_id"] for line in logged] == ["mine-7", "mine-7"]
    assert logged[0]["reason"] == "answered"
    assert logged[0]["searches"] == 2
    assert logged[1]["seconds"] > 0
    assert "Aurora" not in lines.getvalue()


@pytest.mark.parametrize("stream", [True, False])
def test_a_bug_is_logged_once_with_its_request(lines: io.StringIO, *, stream: bool) -> None:
    async def run() -> None:
        async with in_memory(make_service((ZeroDivisionError("a bug"),))) as client:
            body = {"messages": QUESTION, "stream": stream}
            await client.post(CHAT, json=body, headers={"x-request-id": "mine-8"})

    asyncio.run(run())
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    (bug,) = [line for line in logged if "exception" in line]
    assert "ZeroDivisionError: a bug" in bug["exception"]
    assert bug["request_id"] == "mine-8"


def test_a_library_that_sets_its_own_level_is_heard_from_its_warnings_on(lines: io.StringIO) -> None:
    library = logging.getLogger("some.library")
    library.setLevel(logging.DEBUG)
    library.info("GET https://api.example/?q=1")
    library.warning("it is late")
    assert [json.loads(line)["message"] for line in lines.getvalue().splitlines()] == ["it is late"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_line_holds_a_secret_however_it_came_there(form: Any, lines: io.StringIO) -> None:
    out = io.StringIO()
    set_up_logs(secrets={'s3cret-"quoted"/x', "hunter2-hunter2"}, form=form, stream=out)
    log = logging.getLogger("server.test")
    log.warning("plain hunter2-hunter2")
    log.warning("in a URL https://api.example/?q=1&key=hunter2%2Dhunter2 s3cret-%22quoted%22%2Fx")
    log.warning("unknown to us: Authorization: Bearer sk-abcdef, https://user:pa55word@host/x, api_key=qwertz12")
    log.warning("extra", extra={"url": "hunter2-hunter2", "more": {"deep": ['s3cret-"quoted"/x']}})
    try:
        raise ValueError('s3cret-"quoted"/x and hunter2-hunter2')
    except ValueError:
        log.exception("trouble")
    for secret in ("hunter2-hunter2", "s3cret", "sk-abcdef", "pa55word", "qwertz12"):
        assert secret not in out.getvalue()
    assert out.getvalue().count("[secret]") >= 8


@pytest.mark.parametrize("form", ["json", "console"])
def test_half_a_surrogate_pair_loses_no_line(form: Any, lines: io.StringIO, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+", encoding="utf-8") as out:
        set_up_logs(secrets=set(), form=form, stream=out)
        logging.getLogger("server.test").warning("half \ud800 of it")
        out.seek(0)
        assert "half ? of it" in out.read()


def test_a_redactor_leaves_other_text_alone() -> None:
    text = "The key to the city; token of love. https://example.org/a?page=2 bearer"
    assert Redactor({"", "abc"})(text) == text


def ready(service: Service) -> tuple[int, dict[str, Any]]:
    async def run() -> tuple[int, dict[str, Any]]:
        async with in_memory(service) as client:
            answer = await client.get("/readyz")
            return answer.status_code, answer.json()

    return asyncio.run(run())


@dataclass(frozen=True)
class FarPolicy(ScriptedPolicy):
    """A policy whose engine is elsewhere."""

    why: str = ""

    async def probe(self) -> None:
        if self.why == "hangs":
            await asyncio.Event().wait()
        if self.why:
            raise PolicyError(self.why)


def test_a_server_is_ready_when_its_engine_and_a_source_answer() -> None:
    service = make_service()
    assert ready(service) == (200, {"status": "ready", "source": "all", "engine": "scripted"})
    far = replace(service, agent=replace(service.agent, policy=FarPolicy(())))
    assert ready(far)[0] == 200
    gone = replace(service, agent=replace(service.agent, policy=FarPolicy((), why="nothing answers at the endpoint")))
    status, said = ready(gone)
    assert (status, said["status"], said["kind"]) == (503, "not ready", "engine")
    assert "nothing answers" in said["why"]


def test_many_probes_at_once_ask_the_engine_once_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    class Counting(FarPolicy):
        async def probe(self) -> None:
            calls.append(0.0)
            await asyncio.sleep(0.6)

    async def run() -> list[int]:
        service = make_service()
        async with in_memory(replace(service, agent=replace(service.agent, policy=Counting(())))) as client:
            answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
            return [answer.status_code for answer in [*answers, await client.get("/readyz")]]

    monkeypatch.setattr(health, "PROBE_TTL_SECONDS", 0.5)  # less than the probe takes
    assert set(asyncio.run(run())) == {200}
    assert len(calls) < 5


def test_one_source_of_several_is_enough_and_none_is_not() -> None:
    service = make_service()
    some = {"all": Failing(), "web": Nothing()}
    assert ready(replace(service, agent=replace(service.agent, sources=some)))[0] == 200
    status, said = ready(with_sources(Failing()))
    assert (status, said["kind"]) == (503, "quota")


@dataclass
class OutOfDate:
    """A source that answers, and says that something is wrong with it."""

    problem: str

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult()


def test_a_source_that_has_a_problem_is_ready_and_says_so() -> None:
    why = "the changes of docs cannot be searched yet"
    status, said = ready(with_sources(OutOfDate(why)))
    assert (status, said["status"], said["notices"]) == (200, "ready", [why])
    assert "notices" not in ready(with_sources(OutOfDate("")))[1]


def test_the_version_is_reported() -> None:
    async def run() -> dict[str, Any]:
        async with in_memory(make_service()) as client:
            return (await client.get("/version")).json()

    assert asyncio.run(run())["name"] == "cairn-search"
