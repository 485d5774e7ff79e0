"""One language model behind an OpenAI-compatible endpoint: requests, tries, kept replies and typed errors.

It is the only client for chat completions: of the policy, of the filter, of the judge and of whatever else asks a
model. It knows no context and no protocol.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Self, TypeVar, cast

import httpx2
import openai

from agent.errors import PolicyError, ReplyUnread
from agent.outbound.address import Address, OptionNames
from agent.outbound.client import ANSWER_BYTES, EVENTS, STREAM_BYTES, TooLong, event_data, openai_client, whole_body
from agent.outbound.completions import CompletionPart, OddReply, json_of, object_of, read_chat
from agent.outbound.llm_errors import FOREIGN, ErrorContext, error_in, policy_error, refused_parameter
from agent.outbound.reply_cache import ReplyCache
from agent.outbound.retries import Retries

Kind = Literal["chat", "completions", "responses"]
T = TypeVar("T")

MOST_STOPS: Final = 4
"""Stop texts of a request: OpenAI's API takes no more, and vLLM's server holds to it. The first ones are sent; a turn
looks for all of them itself."""
_NO_KEY: Final = "none"
"""Servers that want no key get this one: the client needs some."""
_PATHS: Final[Mapping[Kind, str]] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
}
_TOKEN_BYTES: Final = 4096
"""Of a stream, for each token that was requested: an event has some hundred."""
_ID_BYTES: Final = 16
"""Of a line, for each id of the prompt and of the turn: servers repeat the prompt's."""
_LINE_BYTES: Final = 1024 * 1024
_STREAM_ACCEPTED: Final = {"Accept": f"{EVENTS}, application/json"}
_MOST_VALUES: Final = 8
_REFUSALS: Final = frozenset({400, 404, 405, 422, 501})
"""What a server says of a request that it does not know."""


@dataclass
class LlmCounts:
    """What one client did."""

    requests: int = 0
    """Whole replies that came."""
    kept: int = 0
    """Replies that were in the cache."""
    unread: int = 0
    """Replies that were not in the form that was requested."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class LlmClient:
    """Sends requests for one model."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str = "",
        seconds: float = 120,
        retries: Retries | None = None,
        cache: ReplyCache | None = None,
        options: OptionNames | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            base_url: of the endpoint, usually ending in /v1. A user and a password in it are sent as HTTP's basic
                authentication, and its query with each request; neither is ever shown.
            model: name of the model there.
            api_key: empty where the server wants none.
            seconds: of silence before the server is given up; a reply that comes whole has this time.
            retries: by default those of a request whose caller waits.
            cache: where `ask` keeps replies.
            options: what the user sets to reach this model.
            transport: instead of the network.

        Raises:
            SetupError: `base_url` is no http address.
        """
        self._address = Address.of(base_url)
        self.base_url = self._address.base
        """What may be shown of it."""
        self.model = model
        self.seconds = seconds
        self.retries = retries or Retries()
        self.counts = LlmCounts()
        self._key = api_key
        self._about = ErrorContext(self.base_url, model, seconds, options or OptionNames())
        self._cache = cache
        self._client = openai_client(
            self._address,
            api_key=api_key or _NO_KEY,
            seconds=seconds,
            transport=transport,
        )
        self._without: set[str] = set()
        """Parameters that this server does not take."""
        self._refused: defaultdict[str, deque[Any]] = defaultdict(partial(deque[Any], maxlen=_MOST_VALUES))
        """Of other parameters, the values that it refused last. Others may be good: requests come from many callers."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.close()

    async def reply(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> CompletionPart:
        """Request a whole chat completion.

        Raises:
            PolicyError: there is none; `kind` says why.
        """
        return await self.retries.run(partial(self._reply, messages, parameters))

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], read: Callable[[str], T], *, key: str = "", **parameters: Any
    ) -> T:
        """Request a chat completion and read it; one that is in the cache and can be read is not requested again.

        Args:
            messages: of the chat.
            read: from the text of a reply to what it says; raises ValueError, and its sentence says what is wrong.
            key: of the reply in the cache.
            parameters: of the request.

        Raises:
            PolicyError: there is no reply; ReplyUnread where there is one that cannot be read.
            SetupError: the cache cannot be written.
        """
        known = self._cache.get(key) if self._cache is not None else None
        if known is not None:
            with suppress(ValueError):  # of a version that read otherwise
                found = read(known)
                self.counts.kept += 1
                return found

        async def attempt() -> T:
            said = await self._reply(messages, parameters)
            if said.finish == "content_filter":
                raise PolicyError(f"the content filter of {self._about.server} withheld the reply", kind="refused")
            try:
                found = read(said.content)
            except ValueError as error:
                self.counts.unread += 1
                raise ReplyUnread(str(error), kind="malformed") from error
            if self._cache is not None:
                self._cache.keep(key, said.content)
            return found

        return await self.retries.run(attempt)

    async def models(self) -> list[dict[str, Any]]:
        """What the server lists, as it says it; nothing where it lists nothing.

        Raises:
            PolicyError: there is no server, or it refuses the key.
        """
        try:
            answer = await self._tried(partial(self._client.get, "/models", cast_to=httpx2.Response))
        except PolicyError as error:
            if error.status == 404 or isinstance(error.__cause__, OddReply):
                return []
            raise
        if failed := error_in(answer, self._about.server):
            raise self._discreet(failed)
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
        try:
            return await self._tried(send)
        except PolicyError as error:
            if error.status is not None or isinstance(error.__cause__, OddReply):
                return None
            raise

    async def try_once(self, kind: Kind, **parameters: Any) -> dict[str, Any] | None:
        """Ask without a stream; None where the server refuses such a request, or answers with no object.

        Raises:
            PolicyError: there is no server, or it failed.
        """
        try:
            return await self._tried(partial(self._create, kind, {"model": self.model} | parameters))
        except PolicyError as error:
            if error.status in _REFUSALS or isinstance(error.__cause__, OddReply):
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
        async with self.events("chat", {"messages": messages, "stream": True} | parameters) as events:
            yield events

    @asynccontextmanager
    async def complete(self, ids: Sequence[int], **parameters: Any) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Continue ids; gives the stream of events as the server sends them. Leaving it closes the connection.

        Raises:
            PolicyError: what went wrong and what to do; ContextFull where the prompt is too long for the model.
        """
        request = {"prompt": list(ids), "stream": True} | parameters
        async with self.events("completions", request, ids=len(ids)) as events:
            yield events

    @asynccontextmanager
    async def events(
        self, kind: Kind, request: Mapping[str, Any], *, ids: int = 0
    ) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Send a request; gives the events of its stream, or the one object that comes whole.

        Args:
            kind: of the request.
            request: all of its members but the model.
            ids: of its prompt.

        Raises:
            PolicyError: what went wrong and what to do.
        """
        tokens = int(request.get("max_tokens") or 0)
        most = ANSWER_BYTES + _TOKEN_BYTES * tokens if tokens else STREAM_BYTES
        most_line = _LINE_BYTES + _ID_BYTES * (ids + tokens) if tokens else ANSWER_BYTES
        send = partial(self._send, kind, {"model": self.model, **request})
        response = await self.retries.run(partial(self._begun, send))
        with self._errors(begun=True):
            try:
                yield _events(response, most_line=most_line, most_bytes=most)
            finally:
                await response.aclose()

    async def _reply(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> CompletionPart:
        """One try at a whole chat completion."""
        body = await self._whole(partial(self._send, "chat", {"model": self.model, "messages": messages, **parameters}))
        with self._errors():
            if failed := error_in(body, self._about.server):
                raise failed
            said = read_chat(body)
            if not said.is_completion:
                raise PolicyError(
                    f"{self._about.server} sent no chat completion; check whether {self._about.options.url} should end "
                    "in /v1",
                    kind="malformed",
                )
        self.counts.requests += 1
        self.counts.prompt_tokens += said.prompt_tokens or 0
        self.counts.completion_tokens += said.completion_tokens or 0
        return said

    async def _tried(self, send: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        return await self.retries.run(partial(self._whole, send))

    async def _whole(self, send: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        """One try at an answer that comes at once; all of it within the time in which a stream may be silent."""
        with self._errors():
            try:
                async with asyncio.timeout(self.seconds):
                    answer: httpx2.Response = await send()
                    return object_of(json_of(answer.content))
            except TimeoutError as error:
                raise PolicyError(
                    f"{self._about.server} gave no answer within {self.seconds:g} seconds", kind="timeout"
                ) from error

    async def _begun(self, send: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        """One try at a stream, down to its beginning."""
        with self._errors():
            return await send()

    async def _send(self, kind: Kind, request: Mapping[str, Any]) -> httpx2.Response:
        """Send the request, and again without what the server refuses of it."""
        while True:
            sent = self._adapted(request)
            try:
                return await self._create(kind, sent)
            except openai.APIStatusError as error:
                refused = refused_parameter(error, sent)
                if refused is None:
                    raise
                if refused.unknown:
                    self._without.add(refused.name)
                else:
                    self._refused[refused.name].append(sent[refused.name])

    def _adapted(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request without what is known to be refused; a server without `max_tokens` gets it under its new name."""
        named = dict(request)
        if "max_tokens" in self._without and "max_tokens" in request:
            named["max_completion_tokens"] = request["max_tokens"]
        return {
            name: value
            for name, value in named.items()
            if name not in self._without and value not in self._refused.get(name, ())
        }

    async def _create(self, kind: Kind, request: Mapping[str, Any]) -> httpx2.Response:
        """Send it as it is: the client's typed methods turn every request and every chunk over for longer."""
        stream = bool(request.get("stream"))
        response = await self._client.post(
            _PATHS[kind],
            body=dict(request),
            cast_to=httpx2.Response,
            stream=stream,
            stream_cls=openai.AsyncStream[object],
            options={"headers": _STREAM_ACCEPTED} if stream else {},
        )
        return cast(httpx2.Response, response)  # a stream, too, as `cast_to` says so

    @contextmanager
    def _errors(self, *, begun: bool = False) -> Generator[None]:
        """Turn the client's errors into typed ones, without the secrets that a server may repeat in its own words."""
        try:
            yield
        except FOREIGN as error:
            raise self._discreet(policy_error(error, self._about, begun=begun)) from error
        except PolicyError as error:
            self._discreet(error)
            raise

    def _discreet(self, error: PolicyError) -> PolicyError:
        error.args = (self._address.hide(str(error), self._key),)
        return error


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
    if failed := error_in(event):
        raise failed
    return event
