"""What an OpenAI-compatible server sends back, streamed or whole, as one thing: text, what it cites, what it used.

Two interfaces: chat completions and responses. Nothing here opens a connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent.errors import PolicyError
from agent.outbound.completions import first_choice, read_chat
from agent.outbound.llm_errors import error_in


@dataclass
class AgentReply:
    """What was sent so far."""

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
