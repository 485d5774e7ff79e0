"""The client of a language model: what is tried again, what is kept, and what its errors say and do not say."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from agent.errors import PolicyError, PolicyErrorKind, ReplyUnread, SetupError
from agent.outbound.address import OptionNames
from agent.outbound.llm import LlmClient
from agent.outbound.reply_cache import ReplyCache, reply_key
from agent.outbound.retries import BATCH, Retries
from tests.agent.sources.live.apiserver import ApiServer, json_reply

T = TypeVar("T")
KEY = "sk-very-secret-0123456789"
HELLO = [{"role": "user", "content": "Hello?"}]
Sent = int | str | dict[str, Any] | Exception | httpx2.Response


class Endpoint:
    """Sends what it is given, in order, the last one again and again; keeps requests and waits."""

    def __init__(self, *sends: Sent) -> None:
        self.sends = list(sends)
        self.requests: list[httpx2.Request] = []
        self.waits: list[float] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        sent = self.sends.pop(0) if len(self.sends) > 1 else self.sends[0]
        match sent:
            case Exception():
                raise sent
            case httpx2.Response():
                return sent
            case int():
                return httpx2.Response(sent, json={"error": {"message": f"busy, {KEY}"}})
            case str():
                return httpx2.Response(200, json=completion(sent))
            case dict():
                return httpx2.Response(200, json=sent)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def run(self, use: Callable[[LlmClient], Awaitable[T]], *, retries: Retries | None = None, **how: Any) -> T:
        async def scene() -> T:
            named: dict[str, Any] = {"base_url": "http://llm.test/v1", "model": "m", "api_key": KEY} | how
            client = LlmClient(
                **named,
                retries=replace(retries or Retries(), sleep=self.sleep),
                transport=httpx2.MockTransport(self),
            )
            async with asyncio.timeout(10), client:
                return await use(client)

        return asyncio.run(scene())

    def fails(self, **how: Any) -> PolicyError:
        with pytest.raises(PolicyError) as caught:
            self.run(lambda client: client.reply(HELLO), **how)
        return caught.value


class Pieces(httpx2.AsyncByteStream):
    """The same bytes without end."""

    def __init__(self, piece: bytes, *, seconds: float) -> None:
        self._piece, self._seconds = piece, seconds

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while True:
            yield self._piece
            await asyncio.sleep(self._seconds)


def completion(content: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {"choices": [choice | more], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


def read_number(reply: str) -> int:
    return int(reply)


def test_a_reply_is_requested_of_the_model_with_the_key_and_nothing_else_is_sent():
    endpoint = Endpoint("Hi.")
    said = endpoint.run(lambda client: client.reply(HELLO, temperature=0))
    assert (said.content, said.completion_tokens) == ("Hi.", 2)
    assert endpoint.bodies == [{"model": "m", "messages": HELLO, "temperature": 0}]
    (request,) = endpoint.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert str(request.url) == "http://llm.test/v1/chat/completions"


def test_what_the_user_wrote_into_the_address_is_sent_there_and_shown_nowhere():
    endpoint = Endpoint(500)
    error = endpoint.fails(base_url="http://me:hidden-word@llm.test/v1?token=also-hidden", retries=Retries(0))
    (request,) = endpoint.requests
    assert request.headers["authorization"].startswith("Basic ")
    assert request.url.params["token"] == "also-hidden"
    assert "hidden" not in str(error)


FAILURES: list[tuple[Sent, PolicyErrorKind, bool, bool]] = [
    # what is sent, its kind, whether a caller who waits has it tried again, and whether a batch does
    (429, "rate", True, True),
    (500, "server", True, True),
    (503, "server", True, True),
    (408, "timeout", True, True),
    (501, "refused", False, False),
    (400, "refused", False, False),
    (401, "refused", False, False),
    (404, "refused", False, False),
    (httpx2.ConnectError("no"), "connection", True, True),
    (httpx2.ReadError("gone"), "connection", False, True),
    (httpx2.ReadTimeout("slow"), "timeout", False, True),
    ({"error": {"message": "oh", "type": "server_error"}}, "server", False, True),
    ({"error": {"message": "oh", "type": "rate_limit_exceeded"}}, "rate", False, True),
    ({"choices": []}, "malformed", False, False),
    ({"choices": 7}, "malformed", False, False),
    (httpx2.Response(200, text="<html>"), "malformed", False, False),
    (httpx2.Response(307, headers={"location": "http://other.test/?leak=1"}), "refused", False, False),
]


@pytest.mark.parametrize(("sent", "kind", "again", "in_batches"), FAILURES)
def test_a_failure_has_a_kind_and_is_tried_again_only_where_that_may_help(
    sent: Sent, kind: PolicyErrorKind, *, again: bool, in_batches: bool
):
    for retries, tried in ((Retries(), again), (BATCH, in_batches)):
        endpoint = Endpoint(sent)
        error = endpoint.fails(retries=retries)
        assert error.kind == kind
        assert len(endpoint.requests) == (3 if tried else 1)
        assert KEY not in str(error)
        assert "leak" not in str(error)


def test_the_waits_grow_and_a_server_may_ask_for_longer_ones():
    endpoint = Endpoint(500)
    endpoint.fails(retries=Retries(4, first_wait=1))
    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(endpoint.waits))
    assert len(endpoint.waits) == 4
    endpoint = Endpoint(httpx2.Response(429, headers={"retry-after": "7"}), "Hi.")
    endpoint.run(lambda client: client.reply(HELLO))
    assert endpoint.waits == [7.0]


@pytest.mark.parametrize(("retries", "waits"), [(Retries(), []), (BATCH, [60.0, 60.0])])
def test_a_server_that_wants_a_long_wait_gets_it_from_batches_alone(retries: Retries, waits: list[float]):
    endpoint = Endpoint(httpx2.Response(429, headers={"retry-after": "100000"}))
    endpoint.fails(retries=retries)
    assert endpoint.waits == waits


def test_what_the_server_refuses_is_left_out_from_then_on():
    refusal = httpx2.Response(400, json={"error": {"message": "Unsupported parameter: 'seed'"}})
    endpoint = Endpoint(refusal, "Hi.")

    async def twice(client: LlmClient) -> None:
        await client.reply(HELLO, seed=0)
        await client.reply(HELLO, seed=0)

    endpoint.run(twice)
    assert ["seed" in body for body in endpoint.bodies] == [True, False, False]
    assert endpoint.waits == []


UNKNOWN: list[dict[str, Any]] = [
    # as OpenAI, Azure, Google, Groq, LiteLLM, vLLM and Mistral say it
    {"error": {"message": "Unsupported parameter: 'seed' is not supported with this model.", "param": "seed"}},
    {"error": {"message": "It is gone.", "param": "seed", "code": "unsupported_parameter"}},
    {"error": {"message": "Unknown parameter: 'seed'.", "code": "unknown_parameter"}},
    {"error": {"message": "Unrecognized request arguments supplied: seed, other"}},
    {"error": {"message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}},
    {"error": {"message": "property 'seed' is unsupported"}},
    {"error": {"message": "'seed' is not supported with this model"}},
    {"error": {"message": "Additional properties are not allowed ('seed' was unexpected)"}},
    {"error": {"message": "unknown field `seed`, expected one of `top_p`, `stop`"}},
    {"error": {"message": "litellm.UnsupportedParamsError: openai does not support parameters: ['n', 'seed'], for m"}},
    {"error": {"message": "openai doesn't support parameters: {'top_k': 2, 'seed': -1}, for model=m"}},
    {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs'}]"},
    {
        "message": {
            "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
        }
    },
    {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
]
VALUES: list[dict[str, Any]] = [
    {"error": {"message": "Unsupported value: 'seed' does not support -1 with this model.", "param": "seed"}},
    {"error": {"message": "only 1", "param": "seed", "code": {}}},
    {"error": {"message": "Invalid 'seed': integer below minimum value. Expected a value >= 0.", "param": "seed"}},
    {"error": {"message": "seed is too small: -1. This model supports at least 0.", "param": "seed"}},
    {"error": {"message": "m models don't support `seed`=-1. To drop unsupported openai params, set `drop_params`"}},
    {"error": {"message": "'seed' is not supported with more than 4 choices"}},
    {"error": {"message": "Unknown parameter: 'tools[0].strict'. Look at 'seed'."}},
    {"message": {"detail": [{"type": "greater_than_equal", "loc": ["body", "seed"], "msg": "Input should be >= 0"}]}},
    {
        "object": "error",
        "message": "[{'type': 'greater_than_equal', 'loc': ('body', 'seed'), 'msg': 'Input should be'}]",
    },
]


def two_requests(refusal: dict[str, Any], first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    """What of their parameters is sent, where the first is refused once."""
    endpoint = Endpoint(httpx2.Response(400, json=refusal), "Hi.")

    async def both(client: LlmClient) -> None:
        await client.reply(HELLO, **first)
        await client.reply(HELLO, **second)

    endpoint.run(both)
    return [{name: body[name] for name in body.keys() - {"model", "messages"}} for body in endpoint.bodies]


@pytest.mark.parametrize("refusal", UNKNOWN)
def test_a_parameter_that_the_server_does_not_know_is_not_sent_again(refusal: dict[str, Any]):
    sent = two_requests(refusal, {"top_p": 1, "seed": -1}, {"top_p": 1, "seed": 1})
    assert sent == [{"top_p": 1, "seed": -1}, {"top_p": 1}, {"top_p": 1}]


@pytest.mark.parametrize("refusal", VALUES)
def test_a_refused_value_of_one_request_leaves_the_next_requests_as_they_are(refusal: dict[str, Any]):
    assert two_requests(refusal, {"seed": -1}, {"seed": 1}) == [{"seed": -1}, {}, {"seed": 1}]


def test_a_value_that_was_refused_is_not_sent_again():
    refusal = {"error": {"message": "Invalid 'stop': array too long.", "param": "stop"}}
    sent = two_requests(refusal, {"stop": ["a", "b"], "seed": 0}, {"stop": ["a", "b"], "seed": 1})
    assert sent == [{"stop": ["a", "b"], "seed": 0}, {"seed": 0}, {"seed": 1}]


def test_too_many_tokens_in_one_request_take_the_bound_from_no_other():
    refusal = {"error": {"message": "max_tokens is too large: 99999. This model takes 4096.", "param": "max_tokens"}}
    sent = two_requests(refusal, {"max_tokens": 99_999}, {"max_tokens": 700})
    assert sent == [{"max_tokens": 99_999}, {}, {"max_tokens": 700}]


def test_a_reply_that_can_be_read_is_kept_and_not_requested_again(tmp_path: Path):
    path, key = tmp_path / "replies.jsonl", reply_key("m", "Hello?")
    endpoint = Endpoint("7")

    async def ask(client: LlmClient) -> int:
        return await client.ask(HELLO, read_number, key=key)

    for _ in range(2):  # as two runs
        assert endpoint.run(ask, cache=ReplyCache(path)) == 7
    assert len(endpoint.requests) == 1


def test_a_reply_that_cannot_be_read_is_not_kept_and_is_requested_again_on_request(tmp_path: Path):
    async def ask(client: LlmClient) -> tuple[int, tuple[int, int, int]]:
        number = await client.ask(HELLO, read_number, key="k")
        counts = client.counts
        return number, (counts.requests, counts.unread, counts.prompt_tokens)

    endpoint = Endpoint("seven", "7")
    with pytest.raises(ReplyUnread, match="invalid literal"):
        endpoint.run(ask, cache=ReplyCache(tmp_path / "replies.jsonl"))
    assert not (tmp_path / "replies.jsonl").exists()
    endpoint = Endpoint("seven", "7")
    retries = replace(BATCH, kinds=BATCH.kinds | {"malformed"})
    assert endpoint.run(ask, retries=retries) == (7, (2, 1, 14))


def test_a_kept_reply_that_can_no_longer_be_read_is_requested_again(tmp_path: Path):
    cache = ReplyCache(tmp_path / "replies.jsonl")
    cache.keep("k", "seven")
    endpoint = Endpoint("7")
    assert endpoint.run(lambda client: client.ask(HELLO, read_number, key="k"), cache=cache) == 7
    assert cache.get("k") == "7"


def test_a_reply_that_a_filter_withheld_is_a_refusal():
    endpoint = Endpoint(completion("7", finish_reason="content_filter"))
    with pytest.raises(PolicyError, match="content filter") as caught:
        endpoint.run(lambda client: client.ask(HELLO, read_number))
    assert caught.value.kind == "refused"


def test_an_endless_reply_ends_at_its_time():
    endpoint = Endpoint(httpx2.Response(200, stream=Pieces(b" ", seconds=0.01)))
    error = endpoint.fails(seconds=0.1)
    assert (error.kind, str(error)) == ("timeout", "the server at http://llm.test/v1 gave no answer within 0.1 seconds")


def test_a_reply_has_a_bound():
    error = Endpoint(httpx2.Response(200, stream=Pieces(b" " * 1024 * 1024, seconds=0))).fails()
    assert error.kind == "malformed"
    assert "sent too much: more than 4 MB" in str(error)


@pytest.mark.parametrize(("sent", "hint"), [(401, "set my_key to"), (404, "my_url should end in /v1"), (307, "my_url")])
def test_hints_name_what_the_user_sets(sent: int, hint: str):
    response = httpx2.Response(sent, headers={"location": "http://other.test"}) if sent == 307 else sent
    assert hint in str(Endpoint(response).fails(options=OptionNames("my_url", "my_key", "my_model")))


def test_what_is_no_address_is_refused_before_anything_is_sent():
    with pytest.raises(SetupError, match="not an http address"):
        LlmClient(base_url="localhost:8000", model="m")


def test_a_key_for_a_model_on_this_machine_goes_through_no_proxy(monkeypatch: pytest.MonkeyPatch):
    async def scene() -> tuple[ApiServer, ApiServer]:
        async with asyncio.timeout(10), ApiServer() as server, ApiServer() as proxy:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.base)
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            server.routes["*"] = json_reply(completion("Hi."))
            for base_url in (f"{server.base}/v1", "http://llm.test/v1"):
                async with LlmClient(base_url=base_url, model="m", api_key=KEY, retries=Retries(0)) as client:
                    with suppress(PolicyError):  # the proxy leads nowhere
                        await client.reply(HELLO)
            return server, proxy

    server, proxy = asyncio.run(scene())
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {KEY}"]
    assert ["llm.test" in request.target for request in proxy.requests] == [True]
