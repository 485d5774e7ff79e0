"""Any agent behind an OpenAI-compatible endpoint, over HTTP: bounded tries, bounded time, failures with a kind.

A failure is worth another try where the same request may be answered later: no connection, a timeout, 408, 409, 429
and most of 5xx. 401, 402 and 404 would fail every question and end the run.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final, Literal, Self

from pydantic import SecretStr

from agent.errors import PolicyError, SetupError, TurnBroken
from agent.outbound.address import OptionNames
from agent.outbound.completions import first_choice, read_chat
from agent.outbound.llm import LlmClient
from agent.outbound.llm_errors import HOPELESS, error_in
from agent.outbound.retries import BATCH, Retries, Sleep
from train.evaluation.answer import AgentAnswer
from train.evaluation.cited import Passages, read_citations
from train.evaluation.extract import INSTRUCTION, short_answer, without_reasoning
from train.evaluation.questions import GoldQuestion
from train.evaluation.respondents import AskFailed


@dataclass
class AgentReply:
    """What was sent so far.

    Streamed or whole it is one thing: text, what it cites, what it used. Nothing of it opens a connection.
    """

    text: str = ""
    reasoned: bool = False
    """Whether there was text beside the answer."""
    ended: bool = False
    """Whether the server said that this is the end."""
    finish: str = ""
    """Why it ended."""
    citations: Sequence[Any] = ()
    annotations: list[Any] = field(default_factory=list[Any])
    search_results: Sequence[Any] = ()
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    searches: int | None = None
    """Calls of a search tool that the reply itself shows."""

    @property
    def begun(self) -> bool:
        return bool(self.text) or self.reasoned

    def count(self, *names: str) -> int | None:
        """A whole number of `usage` under the first of the names that is there."""
        found = (self.usage.get(name) for name in names)
        return next((int(n) for n in found if isinstance(n, int | float) and not isinstance(n, bool)), None)

    @property
    def usd(self) -> float | None:
        """What the server says it cost: a number, or an object with a total."""
        cost = self.usage.get("cost", self.usage.get("total_cost"))
        if isinstance(cost, Mapping):
            cost = cost.get("total_cost", cost.get("total"))
        return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None


class Chat:
    """`/chat/completions`."""

    def __init__(self) -> None:
        self.reply = AgentReply()

    @staticmethod
    def request(messages: Sequence[Mapping[str, str]], *, stream: bool) -> dict[str, Any]:
        """The body that asks, but for the model."""
        body: dict[str, Any] = {"messages": list(messages)}
        return body | {"stream": True, "stream_options": {"include_usage": True}} if stream else body

    def feed(self, body: Mapping[str, Any]) -> None:
        """Take one event of a stream, or the whole body.

        Raises:
            OddReply: it cannot be read.
        """
        reply, said = self.reply, read_chat(body)
        reply.text += said.content
        reply.reasoned |= bool(said.reasoning)
        if said.finish:
            reply.finish, reply.ended = said.finish, True
        if isinstance(usage := body.get("usage"), Mapping):
            reply.usage = usage
        choice = first_choice(body) or {}
        message = choice.get("delta") or choice.get("message") or {}
        reply.annotations += _list(message.get("annotations"))
        for row in (body, message):
            reply.citations = _list(row.get("citations")) or reply.citations
            reply.search_results = _list(row.get("search_results")) or reply.search_results


class Responses:
    """`/responses`: the events of a stream repeat what the last one holds whole."""

    def __init__(self) -> None:
        self.reply = AgentReply()

    @staticmethod
    def request(messages: Sequence[Mapping[str, str]], *, stream: bool) -> dict[str, Any]:
        """The body that asks, but for the model."""
        turns = [message for message in messages if message["role"] != "system"]
        body: dict[str, Any] = {"input": turns}
        if rules := [message["content"] for message in messages if message["role"] == "system"]:
            body["instructions"] = rules[0]
        return body | {"stream": True} if stream else body

    def feed(self, body: Mapping[str, Any]) -> None:
        """Take one event of a stream, or the whole body.

        Raises:
            PolicyError: it says that something failed.
        """
        kind = body.get("type")
        if kind is None or (isinstance(body.get("response"), Mapping) and kind in _WHOLE):
            self._whole(body if kind is None else body["response"])
        elif kind == "error":
            _refuse_error({"error": body.get("error") or body})
        elif kind == "response.output_text.delta":
            self.reply.text += _text(body.get("delta"))
        elif isinstance(kind, str) and kind.endswith(".delta"):
            self.reply.reasoned = True

    def _whole(self, response: Mapping[str, Any]) -> None:
        _refuse_error(response)
        status = response.get("status", "completed")
        if status in ("failed", "cancelled"):
            raise PolicyError(f"the server says that its response {status}", kind="server")
        output = [item for item in _list(response.get("output")) if isinstance(item, Mapping)]
        parts = [
            part
            for item in output
            if item.get("type") == "message"
            for part in _list(item.get("content"))
            if isinstance(part, Mapping) and part.get("type") == "output_text"
        ]
        if not output and "output" not in response:
            return
        self.reply.text = "".join(_text(part.get("text")) for part in parts)
        self.reply.annotations = [note for part in parts for note in _list(part.get("annotations"))]
        self.reply.searches = sum(item.get("type") == "web_search_call" for item in output) or None
        self.reply.usage = response["usage"] if isinstance(response.get("usage"), Mapping) else {}
        self.reply.search_results = _list(response.get("search_results"))
        self.reply.citations = _list(response.get("citations"))
        self.reply.finish, self.reply.ended = str(status), True


_WHOLE: Final = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed"))


def _refuse_error(body: Mapping[str, Any]) -> None:
    if failed := error_in(body):
        raise failed


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(content: Any) -> str:
    """Text, or the text of a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] for part in _list(content) if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )


Api = Literal["chat", "responses"]
INTERFACES: Final[Mapping[Api, type[Chat] | type[Responses]]] = {"chat": Chat, "responses": Responses}
MOST_CHARS: Final = 1_000_000
"""Of one answer: what is longer is no answer."""
_OPTIONS: Final = OptionNames("--endpoint", "CAIRN_API_KEY, or the variable that --api-key-env names,", "--model")


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """An agent's address and how to send it questions; what another run must have in common to be the same."""

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
        """Refuse what cannot be reached.

        Raises:
            SetupError: no http address, or no model.
        """
        if not self.url.startswith(("http://", "https://")):
            raise SetupError(f"{self.url!r} is not the address of an agent; use one like https://example.org/v1")
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


class Endpoint:
    """Asks one agent. Holds one client for all questions."""

    def __init__(self, where: EndpointOptions, *, passages: Passages, sleep: Sleep = asyncio.sleep) -> None:
        """Take note of an agent; nothing is sent yet.

        Args:
            where: it is and how to ask it.
            passages: that its citations may mean.
            sleep: between tries.
        """
        self._where, self._passages = where, passages
        self._retries = replace(BATCH, most=where.tries - 1, sleep=sleep)
        self._client = LlmClient(
            base_url=where.url,
            model=where.model,
            api_key=where.key.get_secret_value(),
            seconds=where.seconds,
            retries=Retries(0),  # a try is over when its answer is whole
            options=_OPTIONS,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def ask(self, question: GoldQuestion) -> AgentAnswer:
        """Ask one question, again where that may help.

        Raises:
            AskFailed: there is no answer to this one.
            SetupError: the server refuses the key, or does not know the model.
        """
        tries = 0

        async def attempt() -> AgentAnswer:
            nonlocal tries
            tries += 1
            return await self._once(self._body(question), tries=tries)

        try:
            return await self._retries.run(attempt)
        except PolicyError as error:
            if error.status in HOPELESS:
                raise SetupError(str(error)) from error
            raise AskFailed(error.kind, f"{error} (tried {tries} times)" if tries > 1 else str(error)) from error

    def _body(self, question: GoldQuestion) -> dict[str, Any]:
        where = self._where
        messages = [] if where.plain else [{"role": "system", "content": INSTRUCTION}]
        for earlier, answered in question.history:
            messages += [{"role": "user", "content": earlier}, {"role": "assistant", "content": answered}]
        messages.append({"role": "user", "content": question.question})
        sampling = {} if where.temperature is None else {"temperature": where.temperature}
        return INTERFACES[where.api].request(messages, stream=where.stream) | sampling

    async def _once(self, body: Mapping[str, Any], *, tries: int) -> AgentAnswer:
        """One try.

        Raises:
            PolicyError: there is no answer.
        """
        where, read = self._where, INTERFACES[self._where.api]()
        started = perf_counter()
        first: float | None = None
        try:
            async with asyncio.timeout(where.seconds), self._client.events(where.api, body) as events, aclosing(events):
                async for event in events:
                    read.feed(event)
                    if len(read.reply.text) > MOST_CHARS:
                        why = f"the answer is longer than {MOST_CHARS:,} characters"
                        raise PolicyError(why, kind="malformed")
                    if first is None and read.reply.begun:
                        first = perf_counter() - started
        except TimeoutError as error:
            raise PolicyError(f"no answer within {where.seconds:g} seconds", kind="timeout") from error
        _check(read.reply)
        seconds = perf_counter() - started
        first_token = first if where.stream else None
        return _answer(read.reply, self._passages, seconds=seconds, first_token=first_token, tries=tries)


def _check(reply: AgentReply) -> None:
    """Whether there is an answer, be it an empty one.

    Raises:
        PolicyError: there is none.
    """
    if reply.finish == "content_filter":
        raise PolicyError("the server's content filter ended the answer", kind="refused")
    if not reply.ended:
        if reply.begun:
            raise TurnBroken("the stream broke off before its end", kind="connection")
        raise PolicyError("the server sent no answer of this interface; check whether --api fits", kind="malformed")


def _answer(
    reply: AgentReply, passages: Passages, *, seconds: float, first_token: float | None, tries: int
) -> AgentAnswer:
    said = without_reasoning(reply.text)
    cited = read_citations(
        said,
        citations=reply.citations,
        annotations=reply.annotations,
        search_results=reply.search_results,
        passages=passages,
    )
    searches = reply.count("num_search_queries")
    return AgentAnswer(
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
