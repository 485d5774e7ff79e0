"""Any agent behind an OpenAI-compatible endpoint, over HTTP: bounded tries, bounded time, failures with a kind.

A failure is worth another try where the same request may be answered later: no connection, a timeout, 408, 409, 429
and most of 5xx. 401, 402 and 404 would fail every question and end the run.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final, Literal, Self

from pydantic import SecretStr

from agent.errors import PolicyError, SetupError, TurnBroken
from agent.outbound.llm import LlmClient
from agent.outbound.llm_errors import HOPELESS, OptionNames
from agent.outbound.retries import BATCH, Retries, Sleep
from train.evaluation.answer import AgentAnswer
from train.evaluation.cited import Passages, read_citations
from train.evaluation.extract import INSTRUCTION, short_answer, without_reasoning
from train.evaluation.questions import GoldQuestion
from train.evaluation.replies import AgentReply, Chat, Responses
from train.evaluation.respondents import AskFailed

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
