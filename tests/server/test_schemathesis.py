"""Requests that are made from the schema against a live server: nothing breaks, and every answer is as described."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import httpx2
import pytest
import schemathesis
import schemathesis.checks
import schemathesis.specs.openapi.checks
from fastapi import FastAPI, Response
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from schemathesis.core.failures import FailureGroup

from server.runs.manager import RunManager
from server.store import RunStore
from server.store.database import Database
from tests.server.live import ANSWER, SEARCH, make_service
from tests.server.threaded import in_thread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

_EVERY: Any = schemathesis.checks
_OPENAPI: Any = schemathesis.specs.openapi.checks
CHECKS = [
    _EVERY.not_a_server_error,
    _OPENAPI.status_code_conformance,
    _OPENAPI.content_type_conformance,
    _OPENAPI.response_headers_conformance,
    _OPENAPI.response_schema_conformance,
]
EXAMPLES = 60
ENOUGH = 20
CHAT = ["POST /v1/chat/completions", "POST /v1/responses", "POST /v1/evidence", "POST /retrieve", "POST /api/runs"]
RUNS = [
    "GET /api/runs/{id}",
    "DELETE /api/runs/{id}",
    "GET /api/runs/{id}/events",
    "GET /api/runs/{id}/export",
    "POST /api/runs/{id}/cancel",
    "POST /api/runs/{id}/answer_now",
]
RESPONSES = ["GET /v1/responses/{id}", "DELETE /v1/responses/{id}", "POST /v1/responses/{id}/cancel"]
REPORTS = [label.replace("/api/runs", "/api/reports") for label in RUNS]
OURS = [
    *CHAT,
    *RUNS,
    *REPORTS,
    *("POST /v1/reports", "POST /api/reports", "GET /api/reports"),
    *RESPONSES,
    *("GET /api/runs", "GET /v1/models", "GET /v1/models/{model}", "GET /v1/tools"),
    *("GET /healthz", "GET /readyz", "GET /version"),
]
"""Every operation of a server with a store, which has them all."""


TURNS = (SEARCH, ANSWER, *("Trieste</answer>",) * 8)
"""Enough for every budget that a request may set."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    run_manager = RunManager(RunStore(Database("memory")))
    with in_thread(
        make_service(TURNS, answer_style="with_evidence", run_manager=run_manager, keep=run_manager.keep)
    ) as address:
        yield address


@pytest.fixture(scope="module")
def api(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.fixture(scope="module")
def ids(address: str) -> Iterator[Callable[[str], str]]:
    """Gives the id of a run or a response that has ended, for an operation that wants one; a new one each time."""
    question = {"messages": [{"role": "user", "content": "Where was she born?"}]}
    with httpx2.Client(base_url=address, trust_env=False, timeout=30) as client:

        def make(label: str) -> str:
            if label in RESPONSES:
                waits = label.endswith("cancel")
                said = client.post("/v1/responses", json={"input": "Where was she born?", "background": waits})
                return said.json()["id"]
            if label in REPORTS:
                id = client.post("/api/reports", json={"question": "Where was she born?"}).json()["id"]
                assert "event: end" in client.get(f"/api/reports/{id}/events").text
                return id
            id = client.post("/api/runs", json=question).json()["id"]
            assert "event: end" in client.get(f"/api/runs/{id}/events").text
            return id

        yield make


def operations(api: Any) -> dict[str, Any]:
    return {made.ok().label: made.ok() for made in api.get_all_operations()}


LEFT_OUT = ("n", "previous_response_id", "answer_with")
INSTEAD: dict[str, Any] = {
    "messages": [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Where was she born?"}],
    "input": [{"role": "user", "content": "Where was she born?"}],
    "question": "Where was she born?",
    "sections": ["Where was she born?", "Her films"],
    "sources": ["web"],
    "source": "web",
    "topk": 3,
    "search_after_date_filter": "2026-03-01",
    "search_before_date_filter": "3/1/2026",
    "search_domain_filter": ["nasa.gov", "-pinterest.com"],
}
"""What no schema can say: a question at the end, sources and days that there are."""
PLACES = ("before", "after", "last-event-id", "stream")
"""Parameters that only an earlier answer of the server gives, and one that is refused."""


def answerable(body: Any) -> Any:
    """A generated body whose question can be answered; the rest of it is kept."""
    if not isinstance(body, dict):
        return body
    given = cast(dict[str, Any], body)
    made = {name: value for name, value in given.items() if name not in LEFT_OUT}
    if made.get("stream") or made.get("store") is False:
        made.pop("background", None)
    return made | {name: value for name, value in INSTEAD.items() if made.get(name) is not None}


def fixed(case: Any, ids: Callable[[str], str]) -> None:
    """Put into a generated request what no schema can say."""
    case.body = answerable(case.body)
    for parameters in (case.query, case.headers):
        for name in [name for name in parameters or () if name.lower() in PLACES]:
            del parameters[name]
    if case.operation.label in (*RUNS, *REPORTS, *RESPONSES):
        case.path_parameters["id"] = ids(case.operation.label)


def tried(operation: Any, ids: Callable[[str], str]) -> Counter[int]:
    """How often each status came. What is not as it is described is raised."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=operation.as_strategy(), fix=st.sampled_from([True, True, False]), number=st.integers(0, 10**6))
    def ask(case: Any, *, fix: bool, number: int) -> None:  # the number lets one without parameters be sent again
        if fix:
            fixed(case, ids)
        response = case.call()
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    ask()
    return seen


@pytest.mark.parametrize("label", OURS)
def test_no_request_that_the_schema_allows_breaks_the_server_or_gets_another_answer(
    label: str, api: Any, ids: Callable[[str], str]
) -> None:
    seen = tried(operations(api)[label], ids)
    assert sum(count for status, count in seen.items() if status < 300) >= ENOUGH, seen


def test_every_operation_of_the_schema_is_tried(api: Any) -> None:
    assert set(operations(api)) == set(OURS)


# That it can fail


class Answer(BaseModel):
    number: int


def wrong_app() -> FastAPI:
    app = FastAPI()

    @app.get("/breaks", response_model=Answer)
    async def breaks(number: int) -> Response:
        return Response("{}", status_code=500, media_type="application/json")

    @app.get("/lies", response_model=Answer)
    async def lies(number: int) -> Response:
        return Response('{"number": "one"}', media_type="application/json")

    @app.get("/other", response_model=Answer)
    async def other(number: int) -> Response:
        return Response("1", media_type="text/plain")

    return app


@pytest.mark.parametrize("path", ["/breaks", "/lies", "/other"])
def test_an_operation_that_is_not_as_it_is_described_is_seen(path: str) -> None:
    wrong = schemathesis.openapi.from_asgi("/openapi.json", wrong_app())
    with pytest.raises(FailureGroup):
        tried(operations(wrong)[f"GET {path}"], lambda _: "")
