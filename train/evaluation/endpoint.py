"""Any agent behind an OpenAI-compatible endpoint, asked over HTTP: bounded tries, bounded time, failures with a kind.

A failure is worth another try where the same request may be answered later: no connection, a timeout, 408, 409, 429
and 5xx. 401, 402 and 404 would fail every question and end the run.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, Literal, Self

import httpx2
from pydantic import SecretStr

from agent import __version__
from agent.errors import SetupError
from agent.outbound.client import EVENTS, bounded_client
from agent.outbound.numbers import retry_after
from train.evaluation.answer import Answer
from train.evaluation.asking import AskFailed
from train.evaluation.cited import Passages, read_citations
from train.evaluation.extract import INSTRUCTION, short_answer, without_reasoning
from train.evaluation.questions import Question
from train.evaluation.replies import Chat, Interface, Reply, Responses, said_by
from train.evaluation.result import Failure

Api = Literal["chat", "responses"]
INTERFACES: Final[Mapping[Api, type[Chat] | type[Responses]]] = {"chat": Chat, "responses": Responses}

LONGEST_WAIT: Final = 60.0
"""Seconds between two tries, whatever the server asks for."""
MOST_CHARS: Final = 1_000_000
"""Of one answer: what is longer is no answer."""
_FIRST_WAIT: Final = 1.0
_STATUS: Final[Mapping[int, Failure]] = {408: "timeout", 409: "server", 429: "rate"}
_AGAIN: Final = frozenset[Failure]({"timeout", "rate", "server", "connection"})
_MENDS: Final = {
    401: "refuses the key (401): name the environment variable that holds it with --api-key-env, or set CAIRN_API_KEY",
    402: "wants to be paid (402): see to the account's balance",
    404: "does not know the path or the model (404): see whether --endpoint ends in /v1, and which models there are",
}


@dataclass(frozen=True, kw_only=True)
class Where:
    """An agent's address and how it is asked; what another run must have in common to be the same."""

    url: str
    """Without the interface's own path, usually ending in /v1."""
    model: str
    api: Api = "chat"
    plain: bool = False
    """Send the question alone, without the system message that asks for a short answer."""
    stream: bool = True
    temperature: float | None = None
    """None leaves it to the agent."""
    key: SecretStr = field(default=SecretStr(""), repr=False)
    seconds: float = 300.0
    """One try may take, from its start to the end of the answer."""
    tries: int = 3

    def __post_init__(self) -> None:
        """Refuse what cannot be asked.

        Raises:
            SetupError: no http address, or no model.
        """
        if not self.url.startswith(("http://", "https://")):
            raise SetupError(f"{self.url!r} is no address of an agent; name one like https://example.org/v1")
        if not self.model:
            raise SetupError("name the agent's model with --model; its server lists them under /models")

    def described(self) -> dict[str, str]:
        """What belongs to a run's card: never the key."""
        return {
            "endpoint": self.url,
            "model": self.model,
            "api": self.api,
            "instruction": "" if self.plain else INSTRUCTION,
            "streamed": str(self.stream),
            "temperature": "" if self.temperature is None else str(self.temperature),
        }


Sleep = Callable[[float], Awaitable[None]]


class Endpoint:
    """Asks one agent. Holds one client for all questions."""

    def __init__(self, where: Where, *, passages: Passages, sleep: Sleep = asyncio.sleep) -> None:
        """Take note of an agent; nothing is sent yet.

        Args:
            where: it is and how to ask it.
            passages: that its citations may mean.
            sleep: between tries.
        """
        self._where, self._passages, self._sleep = where, passages, sleep
        self._jitter = random.Random()
        self._without: set[str] = set()
        """Members of the request that this server does not take."""
        key = where.key.get_secret_value()
        self._client = bounded_client(
            headers={"user-agent": f"cairn-search/{__version__}", "accept": f"{EVENTS}, application/json"}
            | ({"authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx2.Timeout(where.seconds, connect=min(30.0, where.seconds)),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def ask(self, question: Question) -> Answer:
        """Ask one question, again where that may help.

        Raises:
            AskFailed: there is no answer to this one.
            SetupError: the server refuses the key, or does not know the model.
        """
        tried = 1
        while True:
            try:
                return await self._once(self._body(question), tries=tried)
            except AskFailed as failed:
                if isinstance(failed, _Refused) and failed.parameter:
                    self._without.add(failed.parameter)
                    continue
                if failed.kind not in _AGAIN or tried >= self._where.tries:
                    raise AskFailed(
                        failed.kind, f"{failed} (asked {tried} times)" if tried > 1 else str(failed)
                    ) from None
                asked_for = failed.wait if isinstance(failed, _Refused) else None
            usual = _FIRST_WAIT * 2 ** (tried - 1) * self._jitter.uniform(0.5, 1.5)
            await self._sleep(min(LONGEST_WAIT, usual if asked_for is None else asked_for))
            tried += 1

    def _body(self, question: Question) -> dict[str, Any]:
        where = self._where
        messages = [] if where.plain else [{"role": "system", "content": INSTRUCTION}]
        for asked, answered in question.history:
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        messages.append({"role": "user", "content": question.question})
        body = INTERFACES[where.api].request(messages, stream=where.stream) | {"model": where.model}
        if where.temperature is not None:
            body["temperature"] = where.temperature
        return {name: value for name, value in body.items() if name not in self._without}

    async def _once(self, body: Mapping[str, Any], *, tries: int) -> Answer:
        """One try.

        Raises:
            AskFailed: and how; `_Refused` where the server said so.
            SetupError: it would refuse every question.
        """
        made = INTERFACES[self._where.api]()
        started = perf_counter()
        first: float | None = None
        try:
            async with asyncio.timeout(self._where.seconds):
                async for event in self._events(made, body):
                    made.feed(event)
                    if len(made.reply.text) > MOST_CHARS:
                        raise AskFailed("malformed", f"the answer is longer than {MOST_CHARS:,} characters")
                    if first is None and made.reply.begun:
                        first = perf_counter() - started
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise AskFailed("timeout", f"no answer within {self._where.seconds:g} seconds") from error
        except httpx2.HTTPError as error:
            raise AskFailed("connection", _unconnected(error, begun=made.reply.begun, url=self._where.url)) from error
        _check(made.reply)
        seconds = perf_counter() - started
        return _answer(
            made.reply,
            self._passages,
            seconds=seconds,
            first_token=first if body.get("stream") else None,
            tries=tries,
        )

    async def _events(self, made: Interface, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Every event of a stream; also one that was asked for may come whole."""
        url = f"{self._where.url.rstrip('/')}/{made.path}"
        async with self._client.stream("POST", url, json=body) as response:
            if not response.is_success:
                raise self._refused(response, await response.aread(), body)
            if "text/event-stream" not in response.headers.get("content-type", ""):
                yield _object(await response.aread())
                return
            lines: list[str] = []
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    lines.append(line[5:].removeprefix(" "))
                elif not line.strip() and lines:
                    if (data := "\n".join(lines)) == "[DONE]":
                        return
                    lines.clear()
                    yield _object(data)
            if lines and lines != ["[DONE]"]:
                yield _object("\n".join(lines))

    def _refused(self, response: httpx2.Response, content: bytes, body: Mapping[str, Any]) -> Exception:
        """What a status that is no success means."""
        status = response.status_code
        try:
            told: Any = json.loads(content)
        except (ValueError, RecursionError):
            told = content.decode("utf-8", errors="replace")
        words = said_by(told if isinstance(told, dict | str) else str(told))
        if status in _MENDS:  # the server's own words may quote the key
            return SetupError(f"the server at {self._where.url} {_MENDS[status]}")
        return _Refused(
            _STATUS.get(status) or ("server" if status >= 500 else "refused"),
            f"the server failed with {status}: {words}" if status >= 500 else f"the server refused, {status}: {words}",
            wait=retry_after(response.headers),
            parameter=_parameter(words, body) if status in (400, 422) else "",
        )


class _Refused(AskFailed):
    """The server said no."""

    def __init__(self, kind: Failure, why: str, *, wait: float | None, parameter: str) -> None:
        super().__init__(kind, why)
        self.wait = wait
        """Seconds that it wants to be left alone."""
        self.parameter = parameter
        """The member of the request that it does not take, and that can be left out."""


def _parameter(words: str, body: Mapping[str, Any]) -> str:
    optional = [name for name in ("stream_options", "temperature", "stream") if name in body]
    return next((name for name in optional if any(f"{q}{name}" in words for q in "'\"`") or f": {name}" in words), "")


def _object(data: str | bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise AskFailed("malformed", "the server sent something that is no JSON") from error
    if not isinstance(body, dict):
        raise AskFailed("malformed", "the server sent JSON that is no object")
    return body


def _unconnected(error: httpx2.HTTPError, *, begun: bool, url: str) -> str:
    if begun:
        return f"the server at {url} broke off in the middle of its answer"
    return f"no connection to {url}: {error or type(error).__name__}"


def _check(reply: Reply) -> None:
    """Whether there is an answer, be it an empty one."""
    if reply.finish == "content_filter":
        raise AskFailed("refused", "the server's content filter ended the answer")
    if not reply.ended:
        if reply.begun:
            raise AskFailed("connection", "the stream broke off before its end")
        raise AskFailed("malformed", "the server sent no answer of this interface; see whether --api fits")


def _answer(reply: Reply, passages: Passages, *, seconds: float, first_token: float | None, tries: int) -> Answer:
    said = without_reasoning(reply.text)
    cited = read_citations(
        said,
        citations=reply.citations,
        annotations=reply.annotations,
        search_results=reply.search_results,
        passages=passages,
    )
    searches = reply.count("num_search_queries")
    return Answer(
        text=short_answer(said),
        said=said,
        citations=cited,
        prompt_tokens=reply.count("prompt_tokens", "input_tokens"),
        completion_tokens=reply.count("completion_tokens", "output_tokens"),
        searches=reply.searches if searches is None else searches,
        usd=reply.usd,
        seconds=seconds,
        first_token=first_token,
        tries=tries,
    )
