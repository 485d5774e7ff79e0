"""What a request's body may hold is counted on its bytes, before it is parsed."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.http.bodies import DEPTH, VALUES, VALUES_AT, check_shape, shape
from server.http.errors import ApiError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["\\", '"', '\\"', ",", "[{", "\\\\"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=30,
)


def size(value: Any) -> int:
    """Values but the first of each list and object, and the lists and objects."""
    match value:
        case list() | dict():
            held: list[Any] = list(value.values() if isinstance(value, dict) else value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return 1 + max(0, len(held) - 1) + sum(map(size, held))
        case _:
            return 0


def depth(value: Any) -> int:
    match value:
        case list() | dict():
            held: list[Any] = list(value.values() if isinstance(value, dict) else value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return 1 + max(map(depth, held), default=0)
        case _:
            return 0


@given(JSON, st.booleans())
def test_values_and_depth_are_those_of_the_text_whatever_its_strings_hold(value: Any, ascii: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii).encode("utf-8", "replace")
    assert shape(body, most=10_000) == (size(value), depth(value))


def refusal(body: bytes, path: str = "/v1/evidence") -> str:
    with pytest.raises(ApiError) as refused:
        asyncio.run(check_shape(body, path=path))
    return str(refused.value.body["error"]["code"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * VALUES + b"1]",
        b"[" + b'"",' * VALUES + b'""]',
        b'{"a":' * (DEPTH + 1) + b"1" + b"}" * (DEPTH + 1),
        b"[" * 2_000_000,
    ],
    ids=["numbers", "strings", "deep", "deeper"],
)
def test_too_many_or_too_deep_values_are_refused(body: bytes) -> None:
    assert refusal(body) == "body_too_complex"


def test_commas_and_brackets_of_a_text_are_no_values() -> None:
    body = json.dumps({"question": "[1, 2], {3} \\ " * 100_000}).encode()
    asyncio.run(check_shape(body, path="/v1/evidence"))
    asyncio.run(check_shape(b'["' + b'\\",' * VALUES + b'"]', path="/v1/evidence"))


def test_a_call_of_a_tool_holds_less_than_a_batch_of_queries() -> None:
    body = b"[" + b"1," * VALUES_AT["/mcp"] + b"1]"
    asyncio.run(check_shape(body, path="/retrieve"))
    assert refusal(body, "/mcp") == "body_too_complex"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16", "utf-32"])
def test_text_in_which_nothing_can_be_counted_is_refused(encoding: str) -> None:
    assert refusal('{"question":"a"}'.encode(encoding)) == "invalid_body"
