"""What `/openapi.json` promises: every answer is described, and every error is OpenAI's object."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from tests.server.live import in_memory, make_service


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        async with in_memory(make_service()) as client:
            return (await client.get("/openapi.json")).json()

    return asyncio.run(ask())


def schemas_in(node: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema of an answer or a request, with its place."""
    if isinstance(node, list):
        for place, child in enumerate(cast(list[Any], node)):
            yield from schemas_in(child, f"{path}/{place}")
    if isinstance(node, dict):
        node = cast(dict[str, Any], node)
        if path.endswith("/schema") or ("/properties/" in path[-60:] and path.rsplit("/", 2)[-2] == "properties"):
            yield path, node
        for name, child in node.items():
            yield from schemas_in(child, f"{path}/{name}")


def test_no_schema_is_empty(schema: dict[str, Any]) -> None:
    says = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"}
    found = list(schemas_in(schema))
    assert len(found) > 100
    assert [path for path, node in found if not says & set(node)] == []


def test_every_operation_describes_its_success_and_its_errors(schema: dict[str, Any]) -> None:
    operations = [(path, method) for path, methods in schema["paths"].items() for method in methods]
    assert {"/v1/chat/completions", "/v1/responses", "/v1/models", "/retrieve", "/version"} <= {
        p for p, _ in operations
    }
    for path, method in operations:
        responses = schema["paths"][path][method]["responses"]
        assert "422" not in responses, path
        for errors in ("4XX", "5XX"):
            assert responses[errors]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/ErrorBody"
            }
        content = [
            c for status, r in responses.items() if status.startswith("2") for c in r.get("content", {}).values()
        ]
        assert all(media["schema"] for media in content), path
    assert "HTTPValidationError" not in schema["components"]["schemas"]


def test_the_models_that_there_are_stand_in_the_schema(schema: dict[str, Any]) -> None:
    models = make_service().models
    for name in ("CompletionRequest", "ResponseRequest"):
        assert schema["components"]["schemas"][name]["properties"]["model"]["enum"] == models
    (parameter,) = schema["paths"]["/v1/models/{model}"]["get"]["parameters"]
    assert parameter["schema"]["enum"] == models
