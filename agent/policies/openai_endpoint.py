"""One model behind an OpenAI-compatible endpoint: requests, tries and errors. It knows no context and no protocol."""

import json
import logging
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, cast

import httpx2
import openai
import stamina

from agent.errors import PolicyError
from agent.policies.chat_errors import FOREIGN, refused_parameter, sentence

logging.getLogger("stamina").addHandler(logging.NullHandler())

LONGEST_WAIT_SECONDS: Final = 30.0
"""A server that asks to be left alone for longer is not asked again."""
MOST_STOPS: Final = 4
"""Stop texts of a request: OpenAI's API takes no more, and vLLM's server holds to it. The first ones are sent; a turn
looks for all of them itself."""
_NO_KEY: Final = "none"
"""Servers that ask for no key get this one: the client wants some."""
_WAIT_SECONDS: Final = 0.5
_AGAIN: Final = (408, 409, 429, 500, 502, 503, 504)
_PATHS: Final = {"chat": "/chat/completions", "completions": "/completions"}


class Endpoint:
    """Sends requests for one model. A request is tried again only while no answer to it can have begun."""

    def __init__(self, *, base_url: str, model: str, api_key: str = "", seconds: float = 120, retries: int = 2) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            base_url: of the endpoint, usually ending in /v1.
            model: name of the model there.
            api_key: empty where the server wants none.
            seconds: of silence before the server is given up.
            retries: of a request that the server did not take, or refused for the moment.
        """
        self.base_url = base_url
        self.model = model
        self._seconds = seconds
        self._retries = retries
        self._client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key or _NO_KEY, timeout=seconds, max_retries=0)
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
                answer = await self._tried(lambda: self._client.get("/models", cast_to=object))
            except openai.NotFoundError:
                return []
        rows = cast(dict[str, Any], answer).get("data") if isinstance(answer, dict) else None
        return [row for row in cast(list[Any], rows) if isinstance(row, dict)] if isinstance(rows, list) else []

    async def try_once(self, kind: Literal["chat", "completions"], **parameters: Any) -> dict[str, Any] | None:
        """Ask without a stream; None where the server refuses such a request.

        Raises:
            PolicyError: there is no server, or it failed.
        """
        async with self._speaking():
            try:
                answer = await self._tried(partial(self._create, kind, {"model": self.model} | parameters))
            except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError):
                return None
            except openai.APIStatusError as error:
                if error.status_code in (405, 501):
                    return None
                raise
        return cast(dict[str, Any], answer) if isinstance(answer, dict) else None

    @asynccontextmanager
    async def chat(
        self, messages: Sequence[Mapping[str, Any]], **parameters: Any
    ) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Start a turn of a chat; gives the stream of chunks as the server sends them.

        Leaving it closes the connection, unless it was read to its end.

        Raises:
            PolicyError: what went wrong and what to do; ContextFull where the chat is too long for the model.
        """
        begun: list[bool] = []
        async with self._speaking(begun):
            request = {"model": self.model, "messages": messages, "stream": True} | parameters
            stream = await self._started("chat", request)
            begun.append(True)
            async with stream:
                yield _events(stream.response)

    @asynccontextmanager
    async def complete(self, ids: Sequence[int], **parameters: Any) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Continue ids; gives the stream of events as the server sends them. Leaving it closes the connection.

        Raises:
            PolicyError: what went wrong and what to do; ContextFull where the prompt is too long for the model.
        """
        begun: list[bool] = []
        async with self._speaking(begun):
            request = {"model": self.model, "prompt": list(ids), "stream": True} | parameters
            stream = await self._started("completions", request)
            begun.append(True)
            async with stream:
                yield _events(stream.response)

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
        many = openai.AsyncStream[object]
        return await self._client.post(_PATHS[kind], body=dict(request), cast_to=object, stream=stream, stream_cls=many)

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

    def _discreet(self, error: PolicyError) -> PolicyError:
        """The error without the key, which a server may repeat in its own words."""
        key = self._client.api_key
        text = str(error)
        return type(error)(text.replace(key, "***")) if key != _NO_KEY and key in text else error


def _pause_after() -> Any:
    usual = _WAIT_SECONDS

    def pause(error: Exception) -> float | Literal[False]:
        """Seconds until the next try; none where an answer may have begun: nobody samples the same turn twice."""
        nonlocal usual
        if not _may_try_again(error):
            return False
        asked = _asked_for(error)
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
            return isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        case _:
            return False


def _asked_for(error: Exception) -> float | None:
    """The seconds for which the server wants to be left alone, if it says so in seconds."""
    headers: Mapping[str, str] = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) * unit, 0.0)
        except (KeyError, ValueError):
            continue
    return None


def _adapted(request: dict[str, Any], *, without: set[str]) -> dict[str, Any]:
    """The request without some parameters; a server that refuses the old name of `max_tokens` gets the new one."""
    sent = {name: value for name, value in request.items() if name not in without}
    if "max_tokens" in without and "max_completion_tokens" not in without:
        sent["max_completion_tokens"] = request["max_tokens"]
    return sent


async def _events(response: httpx2.Response) -> AsyncGenerator[dict[str, Any]]:
    """The events of a stream; read here because one typed object for each token costs more than the token."""
    try:
        async for line in _lines(response):
            data = line[5:].strip() if line.startswith(b"data:") else b"[DONE]"
            if data == b"[DONE]":
                continue
            event = json.loads(data)
            if not isinstance(event, dict):
                raise json.JSONDecodeError("no object", data.decode("utf-8", "replace"), 0)
            if "error" in event:
                raise PolicyError(_said(cast(dict[str, Any], event)["error"]))
            yield cast(dict[str, Any], event)
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except httpx2.RequestError as error:
        raise openai.APIConnectionError(request=response.request) from error
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError("no UTF-8", "", 0) from error


async def _lines(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Lines of bytes: those of text would also end at the separators that JSON may hold as they are, such as U+2028."""
    held = b""
    async for piece in response.aiter_bytes():
        *lines, held = (held + piece).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            yield line
    yield held


def _said(error: Any) -> str:
    said = cast(dict[str, Any], error).get("message", error) if isinstance(error, dict) else error
    return f"the server failed in the middle of its turn: {' '.join(str(said).split())[:300]}; look at its log"
