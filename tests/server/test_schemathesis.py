"""Requests that are made from the schema against a live server: nothing breaks, and every answer is as described."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest
import schemathesis
import schemathesis.checks
import schemathesis.specs.openapi.checks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.server.live import make_service
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
OURS = [
    "POST /v1/chat/completions",
    "POST /v1/responses",
    "GET /v1/models",
    "GET /v1/models/{model}",
    "POST /v1/evidence",
    "GET /v1/tools",
    "POST /retrieve",
    "GET /healthz",
    "GET /readyz",
    "GET /version",
]
"""Every operation of a server without a store."""


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    with in_thread(make_service(answer_style="with_evidence")) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def operations(api: Any) -> dict[str, Any]:
    return {made.ok().label: made.ok() for made in api.get_all_operations()}


LEFT_OUT = ("n", "previous_response_id", "answer_with")
INSTEAD: dict[str, Any] = {
    "messages": [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Where was she born?"}],
    "input": [{"role": "user", "content": "Where was she born?"}],
    "question": "Where was she born?",
    "sources": ["web"],
    "source": "web",
    "topk": 3,
    "search_after_date_filter": "2026-03-01",
    "search_before_date_filter": "3/1/2026",
    "search_domain_filter": ["nasa.gov", "-pinterest.com"],
}
"""What no schema can say: a question at the end, sources and days that there are."""


def answerable(body: Any) -> Any:
    """A generated body whose question can be asked; what else stands in it is kept."""
    if not isinstance(body, dict):
        return body
    given = cast(dict[str, Any], body)
    made = {name: value for name, value in given.items() if name not in LEFT_OUT}
    return made | {name: value for name, value in INSTEAD.items() if made.get(name) is not None}


@pytest.mark.parametrize("label", OURS)
def test_no_request_that_the_schema_allows_breaks_the_server_or_gets_another_answer(label: str, api: Any) -> None:
    operation = operations(api)[label]
    seen: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=operation.as_strategy(), mend=st.booleans())
    def ask(case: Any, *, mend: bool) -> None:
        if mend:
            case.body = answerable(case.body)
        response = case.call()
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    ask()
    done = sum(count for status, count in seen.items() if status < 300)
    assert done >= min(ENOUGH, sum(seen.values())), seen
    if operation.method.upper() == "POST":
        assert done >= ENOUGH, seen


def test_every_operation_of_the_schema_is_tried(api: Any) -> None:
    assert set(operations(api)) == set(OURS)
