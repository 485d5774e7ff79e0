"""No part of a request is without a bound, and no address that costs something is without a slot: all of them, walked."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import BaseRoute

from server.app import create_app
from server.auth.middleware import COSTS
from server.evidence.tools import tool_list
from server.runs.manager import RunManager
from server.store import RunStore
from server.store.database import Database
from tests.server.live import make_service

WITHOUT_A_SLOT = {
    "/retrieve": "its own bounds, in queries, documents and bytes",
    "/mcp": "each search of it takes a slot",
    "/v1/responses/{id}/cancel": "it ends a run",
    "/v1/reports": "each run of it takes a slot",
    "/api/reports": "each run of it takes a slot",
    "/api/reports/{id}/cancel": "it ends a report",
    "/api/reports/{id}/answer_now": "it ends a report",
    "/api/runs/{id}/cancel": "it ends a run",
    "/api/runs/{id}/answer_now": "it ends a run",
}


def routes() -> Sequence[BaseRoute]:
    app: Any = create_app(make_service(run_manager=RunManager(RunStore(Database("memory")))))
    while not isinstance(app, FastAPI):
        app = app._app
    return app.routes


API = [route for route in routes() if isinstance(route, APIRoute)]


def unbounded(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """Texts, lists and free objects of a JSON schema that may have any length."""
    if schema.get("type") == "string" and not schema.keys() & {"maxLength", "enum", "const"} and not _closed(schema):
        yield f"{place}: a text"
    if schema.get("type") == "array" and "maxItems" not in schema and "prefixItems" not in schema:
        yield f"{place}: a list"
    if isinstance(schema.get("additionalProperties"), dict) and "maxProperties" not in schema:
        yield f"{place}: an object"
    for name, part in schema.items():
        if name in ("properties", "$defs"):
            for member, inner in part.items():
                yield from unbounded(inner, f"{place}.{member}")
        elif name in ("anyOf", "oneOf", "prefixItems"):
            for inner in part:
                yield from unbounded(inner, place)
        elif name in ("items", "additionalProperties", "propertyNames") and isinstance(part, dict):
            yield from unbounded(cast(dict[str, Any], part), f"{place}.*")


def _closed(schema: dict[str, Any]) -> bool:
    """A pattern that bounds the length by itself."""
    pattern = str(schema.get("pattern", ""))
    return pattern.startswith("^") and pattern.endswith("$") and not {"*", "+"} & set(pattern.replace(r"\.", ""))


WITH_BODIES = [route for route in API if route.dependant.body_params]


@pytest.mark.parametrize("route", WITH_BODIES, ids=lambda route: route.path)
def test_every_text_list_and_object_of_a_body_has_a_bound(route: APIRoute) -> None:
    for param in route.dependant.body_params:
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, param.field_info.annotation))
        assert list(unbounded(adapter.json_schema(mode="validation"), route.path)) == []


def test_the_bodies_that_are_walked_are_there() -> None:
    assert {route.path for route in WITH_BODIES} >= {"/v1/responses", "/v1/evidence", "/retrieve", "/api/runs"}


def test_every_argument_of_a_tool_has_a_bound() -> None:
    service = make_service()
    for tool in tool_list({service.agent.protocol.name: service.agent}):
        assert list(unbounded(tool["inputSchema"], tool["name"])) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "array", "items": {"type": "integer"}},
        {"properties": {"a": {"anyOf": [{"type": "string"}]}}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ],
)
def test_what_has_no_bound_is_noticed(schema: dict[str, Any]) -> None:
    assert list(unbounded(schema))


def test_every_address_that_costs_something_needs_a_slot() -> None:
    posts = {route.path for route in API if "POST" in (route.methods or ())} | {"/mcp"}
    assert {path for path in posts if not COSTS.fullmatch(path)} == set(WITHOUT_A_SLOT)
