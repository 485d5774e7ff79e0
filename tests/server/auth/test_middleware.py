"""What stands before every request, and errors of every kind as OpenAI objects."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from server.auth.middleware import SECURITY_HEADERS, Rules, host_name, pieces
from tests.server.live import QUESTION, in_memory, make_service

CHAT = "/v1/chat/completions"


def send(method: str, path: str, *, rules: Rules | None = None, **request: Any) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with asyncio.timeout(10), in_memory(make_service(), rules) as client:
            return await client.request(method, path, **request)

    return asyncio.run(run())


def error(response: httpx2.Response) -> Mapping[str, Any]:
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    return response.json()["error"]


@pytest.mark.parametrize(
    ("request_", "status", "code", "hint"),
    [
        ({"content": b"{not json", "headers": {"content-type": "application/json"}}, 400, "invalid_json", "fix it"),
        ({"content": b"[1]", "headers": {"content-type": "application/json"}}, 400, "invalid_body", "JSON object"),
        ({"content": b"{}", "headers": {"content-type": "text/plain"}}, 400, "invalid_body", "application/json"),
        ({"content": b"{\xff}", "headers": {"content-type": "application/json"}}, 400, "invalid_body", "JSON object"),
        ({}, 400, "invalid_body", "JSON object"),
        ({"json": {}}, 400, "missing_required_parameter", '"messages": [{"role": "user"'),
        ({"json": {"messages": QUESTION, "model": "gpt-9"}}, 404, "model_not_found", "choose from: cairn"),
    ],
)
def test_a_bad_request_is_answered_with_a_hint(request_: Any, status: int, code: str, hint: str) -> None:
    response = send("POST", CHAT, **request_)
    assert (response.status_code, error(response)["code"]) == (status, code)
    assert hint in error(response)["message"]


def test_nesting_without_end_is_a_bad_request() -> None:
    body = b'{"messages":' + b"[" * 100_000
    response = send("POST", CHAT, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert error(response)["code"] == "body_too_complex"


def test_half_a_surrogate_pair_breaks_nothing() -> None:
    headers = {"content-type": "application/json"}
    body = b'{"messages":[{"role":"user","content":"Who \\ud800?"}]}'
    assert send("POST", CHAT, content=body, headers=headers).status_code == 200
    body = b'{"model":"\\ud800","messages":[]}'
    assert error(send("POST", CHAT, content=body, headers=headers))["code"] == "model_not_found"


def test_an_unknown_path_and_a_wrong_method_say_what_there_is() -> None:
    lost = send("GET", "/v1/nothing")
    assert (lost.status_code, error(lost)["code"]) == (404, "unknown_url")
    assert "POST /v1/chat/completions" in error(lost)["message"]
    wrong = send("GET", CHAT)
    assert (wrong.status_code, error(wrong)["code"], wrong.headers["allow"]) == (405, "method_not_allowed", "POST")


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_over_the_limit_is_refused_by_name(*, chunked: bool) -> None:
    body = b'{"messages":"' + b"a" * 5000 + b'"}'

    async def pieces() -> AsyncGenerator[bytes]:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    headers = {"content-type": "application/json"}
    content: Any = pieces() if chunked else body
    response = send("POST", CHAT, rules=Rules(body_bytes=4000), content=content, headers=headers)
    assert (response.status_code, error(response)["code"]) == (413, "body_too_large")
    assert "4,000 bytes" in error(response)["message"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1", "localhost@x"]
)
def test_a_foreign_host_name_is_refused(host: str) -> None:
    response = send("GET", "/healthz", headers={"host": host})
    assert (response.status_code, error(response)["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
def test_this_machines_names_are_served(host: str) -> None:
    assert send("GET", "/healthz", headers={"host": host}).json() == {"status": "ok"}


def test_any_host_name_is_served_where_other_machines_may_ask() -> None:
    assert send("GET", "/healthz", rules=Rules(hosts=None), headers={"host": "cairn.example"}).status_code == 200


def test_a_page_of_another_origin_cannot_ask_and_the_own_page_can() -> None:
    foreign = send("POST", CHAT, json={"messages": QUESTION}, headers={"origin": "https://evil.example"})
    assert (foreign.status_code, error(foreign)["code"]) == (403, "origin_not_allowed")
    assert "access-control-allow-origin" not in foreign.headers
    own = send("POST", CHAT, json={"messages": QUESTION}, headers={"origin": "http://127.0.0.1"})
    assert own.status_code == 200


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer wrong", "Basic s3cret", "Bearer s3crét"])
def test_with_a_key_every_address_of_v1_asks_for_it(authorization: str | None) -> None:
    rules = Rules(key=SecretStr("s3cret"))
    headers = {} if authorization is None else {"authorization": authorization.encode()}
    for path in ("/v1/models", "/v1/nothing"):
        response = send("GET", path, rules=rules, headers=headers)
        assert (response.status_code, error(response)["code"]) == (401, "invalid_api_key")
        assert response.headers["www-authenticate"] == "Bearer"
    assert "s3cret" not in response.text
    assert send("GET", "/healthz", rules=rules).status_code == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/models", "/nothing", "/static/cairn.svg"])
def test_every_response_has_an_id_and_the_security_headers(path: str) -> None:
    response = send("GET", path)
    assert len(response.headers["x-request-id"]) == 32
    for name, value in SECURITY_HEADERS.items():
        assert response.headers[name] == value


def test_the_clients_own_request_id_is_kept_if_it_is_one() -> None:
    assert send("GET", "/healthz", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert send("GET", "/healthz", headers={"x-request-id": "no <b>"}).headers["x-request-id"] != "no <b>"


def test_a_refused_request_has_an_id_too() -> None:
    assert "x-request-id" in send("GET", "/", headers={"host": "evil.example"}).headers


def test_a_host_header_is_read_without_port_and_brackets() -> None:
    assert [host_name(host) for host in ("A.b:80", "[::1]:80", "", "[")] == ["a.b", "::1", "", ""]


@given(st.binary(max_size=40), st.integers(1, 9))
def test_a_long_body_leaves_in_pieces_that_are_the_body(body: bytes, size: int) -> None:
    message = {"type": "http.response.body", "body": body, "more_body": False}
    made = list(pieces(message, most_bytes=size))
    assert b"".join(piece["body"] for piece in made) == body
    assert all(len(piece["body"]) <= size for piece in made)
    assert [piece["more_body"] for piece in made] == [True] * (len(made) - 1) + [False]
