"""One model behind an OpenAI-compatible endpoint: requests, tries and errors. It knows no context and no protocol."""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, cast

import httpx2
import openai
import stamina

from agent.errors import PolicyError
from agent.outbound.address import Address
from agent.outbound.client import ANSWER_BYTES, EVENTS, TooLong, openai_client
from agent.outbound.completions import OddReply, error_of, json_of, object_of
from agent.outbound.events import event_data, whole_body
from agent.outbound.numbers import retry_after
from agent.outbound.retries import log_retries_without_words
from agent.policies.chat_errors import FOREIGN, refused_parameter, sentence

log_retries_without_words()

LONGEST_WAIT_SECONDS: Final = 30.0
"""A server that asks to be left alone for longer is not asked again."""
MOST_STOPS: Final = 4
"""Stop texts of a request: OpenAI's API takes no more, and vLLM's server holds to it. The first ones are sent; a turn
looks for all of them itself."""
_NO_KEY: Final = "none"
"""Servers that ask for no key get this one: the client wants some."""
_WAIT_SECONDS: Final = 0.5
_AGAIN: Final = (408, 409, 429, 500, 502, 503, 504)
_CLOSED: Final = "disconnected without sending a response"
"""What httpx says of a connection that the server had closed when the request came."""
_PATHS: Final = {"chat": "/chat/completions", "completions": "/completions"}
_TOKEN_BYTES: Final = 4096
"""Of a stream, for each token that was asked for: an event has some hundred."""
_ID_BYTES: Final = 16
"""Of a line, for each id of the prompt and of the turn: servers repeat the prompt's."""
_LINE_BYTES: Final = 1024 * 1024
_STREAM_ACCEPTED: Final = {"Accept": f"{EVENTS}, application/json"}


class Endpoint:
    """Sends requests for one model. A request is tried again only while no answer to it can have begun."""

    def __init__(self, *, base_url: str, model: str, api_key: str = "", seconds: float = 120, retries: int = 2) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            base_url: of the endpoint, usually ending in /v1. A user and a password in it are sent as HTTP's basic
                authentication, and its query with each request; neither is ever shown.
            model: name of the model there.
            api_key: empty where the server wants none.
            seconds: of silence before the server is given up.
            retries: of a request that the server did not take, or refused for the moment.

        Raises:
            SetupError: `base_url` is no http address.
        """
        self._address = Address.of(base_url)
        self.base_url = self._address.base
        """What may be shown of it."""
        self.model = model
        self._key = api_key
        self._seconds = seconds
        self._retries = retries
        self._client = openai_client(self._address, api_key=api_key or _NO_KEY, seconds=seconds)
        self._without: set[str] = set()
        """Parameters that this server does not take."""

    async def aclose(self) -> None:
        await self._client.close()

    async def models(self) -> list[dict[str, Any]]:
        """What the server lists, as it says it; nothing where it lists nothing.

        Raises:
            PolicyError: there is no server, or it refuses the key.
        """
        async with self._speaking():
            try:
                answer = await self._whole(lambda: self._client.get("/models", cast_to=httpx2.Response))
            except (openai.NotFoundError, OddReply):
                return []
            if why := error_of(answer):
                raise PolicyError(f"the server at {self.base_url} failed: {why}; look at its log")
            rows: Any = answer.get("data")
            listed = cast(list[Any], rows) if isinstance(rows, list) else []
            return [cast(dict[str, Any], row) for row in listed if isinstance(row, dict)]

    async def native(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Ask the server in its own API, beside OpenAI's; None where it has no such address.

        Args:
            path: from the server's root, as /api/show.
            body: posted as JSON; without it the address is read.

        Raises:
            PolicyError: there is no server, or it failed.
        """
        root = self.base_url.removesuffix("/v1")
        send = partial(self._client.get, f"{root}{path}", cast_to=httpx2.Response)
        if body is not None:
            send = partial(self._client.post, f"{root}{path}", body=dict(body), cast_to=httpx2.Response)
        async with self._speaking():
            try:
                return await self._whole(send)
            except (openai.APIStatusError, OddReply):
                return None

    async def try_once(self, kind: Literal["chat", "completions"], **parameters: Any) -> dict[str, Any] | None:
        """Ask without a stream; None where the server refuses such a request, or answers with no object.

        Raises:
            PolicyError: there is no server, or it failed.
        """
        async with self._speaking():
            try:
                return await self._whole(partial(self._create, kind, {"model": self.model} | parameters))
            except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError, OddReply):
                return None
            except openai.APIStatusError as error:
                if error.status_code in (405, 501):
                    return None
                raise

    @asynccontextmanager
    async def chat(
        self, messages: Sequence[Mapping[str, Any]], **parameters: Any
    ) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Start a turn of a chat; gives the stream of chunks as the server sends them.

        Leaving it closes the connection, unless it was read to its end.

        Raises:
            PolicyError: what went wrong and what to do; ContextFull where the chat is too long for the model.
        """
        request = {"model": self.model, "messages": messages, "stream": True} | parameters
        async with self._streamed("chat", request, ids=0) as events:
            yield events

    @asynccontextmanager
    async def complete(self, ids: Sequence[int], **parameters: Any) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Continue ids; gives the stream of events as the server sends them. Leaving it closes the connection.

        Raises:
            PolicyError: what went wrong and what to do; ContextFull where the prompt is too long for the model.
        """
        request = {"model": self.model, "prompt": list(ids), "stream": True} | parameters
        async with self._streamed("completions", request, ids=len(ids)) as events:
            yield events

    @asynccontextmanager
    async def _streamed(
        self, kind: Literal["chat", "completions"], request: dict[str, Any], *, ids: int
    ) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        tokens = int(request.get("max_tokens") or 0)
        begun: list[bool] = []
        async with self._speaking(begun):
            stream = await self._started(kind, request)
            begun.append(True)
            most_line = _LINE_BYTES + _ID_BYTES * (ids + tokens)
            async with stream:
                yield _events(stream.response, most_line=most_line, most_bytes=ANSWER_BYTES + _TOKEN_BYTES * tokens)

    async def _started(self, kind: Literal["chat", "completions"], request: dict[str, Any]) -> Any:
        """Send the request, and again without what the server refuses."""
        while True:
            sent = _adapted(request, without=self._without)
            try:
                return await self._tried(partial(self._create, kind, sent))
            except openai.APIStatusError as error:
                refused = refused_parameter(error, sent)
                if refused is None:
                    raise
                self._without.add(refused)

    async def _create(self, kind: Literal["chat", "completions"], request: Mapping[str, Any]) -> Any:
        """Send it as it is: the client's typed methods turn every request and every chunk over for longer."""
        stream = bool(request.get("stream"))
        return await self._client.post(
            _PATHS[kind],
            body=dict(request),
            cast_to=object if stream else httpx2.Response,
            stream=stream,
            stream_cls=openai.AsyncStream[object],
            options={"headers": _STREAM_ACCEPTED} if stream else {},
        )

    async def _whole(self, send: Any) -> dict[str, Any]:
        """An answer that comes at once; all of it within the time in which a stream may be silent."""
        try:
            async with asyncio.timeout(self._seconds):
                answer: httpx2.Response = await self._tried(send)
                return object_of(json_of(answer.content))
        except TimeoutError as error:
            raise PolicyError(
                f"the server at {self.base_url} gave no answer within {self._seconds:g} seconds"
            ) from error

    async def _tried(self, send: Any) -> Any:
        async for attempt in stamina.retry_context(on=_pause_after(), attempts=self._retries + 1, timeout=None):
            with attempt:
                return await send()
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _speaking(self, begun: Sequence[bool] = ()) -> AsyncGenerator[None]:
        """Turn the client's errors into sentences."""
        try:
            yield
        except FOREIGN as error:
            said = sentence(error, base_url=self.base_url, model=self.model, begun=bool(begun), seconds=self._seconds)
            raise self._discreet(said) from error
        except PolicyError as error:
            raise self._discreet(error) from error.__cause__

    def _discreet(self, error: PolicyError) -> PolicyError:
        """The error without the secrets, which a server may repeat in its own words."""
        return type(error)(self._address.hide(str(error), self._key))


def _pause_after() -> Any:
    usual = _WAIT_SECONDS

    def pause(error: Exception) -> float | Literal[False]:
        """Seconds until the next try; none where an answer may have begun: nobody samples the same turn twice."""
        nonlocal usual
        if not _may_try_again(error):
            return False
        asked = retry_after(error.response.headers) if isinstance(error, openai.APIStatusError) else None
        if asked is not None and asked > LONGEST_WAIT_SECONDS:
            return False
        wait = random.uniform(usual / 2, usual) if asked is None else asked
        usual *= 2
        return wait

    return pause


def _may_try_again(error: Exception) -> bool:
    match error:
        case openai.APIStatusError():
            return error.status_code in _AGAIN
        case openai.APIConnectionError():  # a timeout is one, too
            cause = error.__cause__
            closed = isinstance(cause, httpx2.RemoteProtocolError) and _CLOSED in str(cause)
            return closed or isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        case _:
            return False


def _adapted(request: dict[str, Any], *, without: set[str]) -> dict[str, Any]:
    """The request without some parameters; a server that refuses the old name of `max_tokens` gets the new one."""
    sent = {name: value for name, value in request.items() if name not in without}
    if "max_tokens" in without and "max_completion_tokens" not in without:
        sent["max_completion_tokens"] = request["max_tokens"]
    return sent


async def _events(response: httpx2.Response, *, most_line: int, most_bytes: int) -> AsyncGenerator[dict[str, Any]]:
    """The events of a stream, or the one object that a server sends instead.

    They are read here because one typed object for each token costs more than the token.
    """
    try:
        if "json" in response.headers.get("content-type", ""):
            yield _event(await whole_body(response, most_bytes=most_bytes))
            return
        async for data in event_data(response, most_line=most_line, most_bytes=most_bytes):
            yield _event(data)
    except TooLong:
        raise
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except httpx2.RequestError as error:
        raise openai.APIConnectionError(request=response.request) from error


def _event(data: bytes) -> dict[str, Any]:
    event = object_of(json_of(data), "an event")
    if why := error_of(event):
        raise PolicyError(f"the server failed in the middle of its turn: {why}; look at its log")
    return event
