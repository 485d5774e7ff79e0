"""One reply of a chat endpoint, read whole: its text, what it reasoned, and the functions that it calls."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from agent.errors import TurnBroken
from agent.outbound.completions import CallPart, read_chat, without_reasoning
from agent.outbound.llm import LlmClient
from agent.policies.openai_chat import MOST_CHARS_A_TOKEN

_MOST_CALLS: Final = 16
REASONING_TOKENS: Final = 4096
"""Of one turn of a model that reasons before it speaks."""


class NoMove(Exception):
    """A reply from which no move can be read; the text says why, in words that can go to the model."""


@dataclass(frozen=True)
class Call:
    """A function call; its arguments are text until they are read as JSON."""

    name: str
    arguments: str


@dataclass
class ModelReply:
    """What a model said in one turn."""

    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish: str = ""
    tokens: int = 0
    calls: list[Call] = field(default_factory=list[Call])

    @property
    def text(self) -> str:
        """The content without the reasoning that some models write into it."""
        return without_reasoning(self.content)

    @property
    def is_broken(self) -> bool:
        """Whether the connection ended before the model did."""
        return not self.finish

    @property
    def is_cut_reasoning(self) -> bool:
        """Whether the model reasoned until its tokens were used up, and said nothing."""
        reasoned = bool(self.reasoning or self.content)
        return self.finish == "length" and reasoned and not (self.text or self.calls or self.refusal)


@dataclass
class Asker:
    """Asks one model. Once it is seen that it reasons before it speaks, each of its turns has room for that."""

    endpoint: LlmClient
    reasons: bool = False

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, room: int, **parameters: Any
    ) -> ModelReply:
        """Send a chat and read the whole reply; its `tokens` are those of all that was sampled.

        Args:
            messages: the chat.
            max_tokens: what a model that does not reason may say.
            room: the tokens that there are; a model that reasons may use as many, up to `REASONING_TOKENS`.
            parameters: of the request.

        Raises:
            PolicyError, ContextFull: as of `ask`.
        """
        most = min(room, REASONING_TOKENS if self.reasons else max_tokens)
        reply = await ask(self.endpoint, messages, max_tokens=most, **parameters)
        more = min(room - reply.tokens, REASONING_TOKENS)
        if self.reasons or not reply.is_cut_reasoning or more <= most:
            return reply
        self.reasons = True
        again = await ask(self.endpoint, messages, max_tokens=more, **parameters)
        again.tokens += reply.tokens
        return again


async def ask(
    endpoint: LlmClient, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, **parameters: Any
) -> ModelReply:
    """Send a chat and read the whole reply; what is longer than `max_tokens` can be is cut.

    A reply whose connection broke is given as far as it came: it has no `finish`.

    Raises:
        PolicyError: the server failed; the sentence says what to do. ContextFull where the chat is too long.
    """
    stream = endpoint.chat(messages, max_tokens=max_tokens, stream_options={"include_usage": True}, **parameters)
    reply = ModelReply()
    with suppress(TurnBroken):
        async with stream as events, aclosing(events):
            await _read(events, reply, most=MOST_CHARS_A_TOKEN * max_tokens)
    return reply


async def _read(events: AsyncIterator[dict[str, Any]], reply: ModelReply, *, most: int) -> None:
    calls: dict[int, tuple[str, str]] = {}
    chars = 0
    async for event in events:
        said = read_chat(event)
        room = most - chars
        reply.content += said.content[:room]
        reply.reasoning += said.reasoning[:room]
        reply.refusal += said.refusal[:room]
        for part in said.calls:
            _add(calls, part, room=room)
        chars += len(said.content) + len(said.reasoning) + len(said.refusal) + sum(len(p.arguments) for p in said.calls)
        reply.finish = said.finish or reply.finish
        reply.tokens = said.completion_tokens or reply.tokens
        if chars >= most:
            reply.finish = reply.finish or "length"
            break
    reply.calls = [Call(name, arguments) for _, (name, arguments) in sorted(calls.items())]
    reply.tokens = reply.tokens or -(-chars // 4)


def _add(calls: dict[int, tuple[str, str]], part: CallPart, *, room: int) -> None:
    if part.index not in calls and len(calls) >= _MOST_CALLS:
        return
    name, arguments = calls.get(part.index, ("", ""))
    calls[part.index] = (name or part.name, arguments + part.arguments[:room])
