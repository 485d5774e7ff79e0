"""What an OpenAI-compatible server sends back, streamed or whole, as one thing: text, what it cites, what it used.

Two interfaces: chat completions and responses. Nothing here opens a connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from train.evaluation.asking import AskFailed
from train.evaluation.result import Failure

_SAID: Final = 200
"""Characters of a server's own words."""


@dataclass
class Reply:
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


class Interface(Protocol):
    """One of the two ways to ask."""

    path: str
    reply: Reply

    def feed(self, body: Mapping[str, Any]) -> None:
        """Take one event of a stream, or the whole body.

        Raises:
            AskFailed: it says that something failed.
        """
        ...

    @staticmethod
    def request(messages: Sequence[Mapping[str, str]], *, stream: bool) -> dict[str, Any]:
        """The body that asks, but for the model."""
        ...


class Chat:
    """`/chat/completions`."""

    path = "chat/completions"

    def __init__(self) -> None:
        self.reply = Reply()

    @staticmethod
    def request(messages: Sequence[Mapping[str, str]], *, stream: bool) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": list(messages)}
        return body | {"stream": True, "stream_options": {"include_usage": True}} if stream else body

    def feed(self, body: Mapping[str, Any]) -> None:
        _refuse_error(body)
        reply = self.reply
        for name in ("citations", "search_results"):
            if isinstance(told := body.get(name), list) and told:
                setattr(reply, name, told)
        if isinstance(usage := body.get("usage"), Mapping):
            reply.usage = usage
        choices = body.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                self._choice(choice)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        reply = self.reply
        said = choice["delta"] if isinstance(choice.get("delta"), Mapping) else choice.get("message")
        if isinstance(said, Mapping):
            reply.text += _text(said.get("content"))
            reply.reasoned |= bool(said.get("reasoning_content") or said.get("reasoning"))
            reply.annotations += _list(said.get("annotations"))
            for name in ("citations", "search_results"):
                if told := _list(said.get(name)):
                    setattr(reply, name, told)
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            reply.finish, reply.ended = finish, True


class Responses:
    """`/responses`: the events of a stream repeat what the last one holds whole."""

    path = "responses"

    def __init__(self) -> None:
        self.reply = Reply()

    @staticmethod
    def request(messages: Sequence[Mapping[str, str]], *, stream: bool) -> dict[str, Any]:
        turns = [message for message in messages if message["role"] != "system"]
        body: dict[str, Any] = {"input": turns}
        if rules := [message["content"] for message in messages if message["role"] == "system"]:
            body["instructions"] = rules[0]
        return body | {"stream": True} if stream else body

    def feed(self, body: Mapping[str, Any]) -> None:
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
            raise AskFailed("server", f"the server says that its response {status}")
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


def said_by(body: Mapping[str, Any] | str) -> str:
    """A server's own words about an error, cut to a sentence's length."""
    error = body.get("error", body.get("detail", body)) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("code") or error
    words = " ".join(str(error).split())
    return words if len(words) <= _SAID else words[:_SAID] + "…"


def _refuse_error(body: Mapping[str, Any]) -> None:
    """An error where an answer should be, also in the middle of a stream."""
    error = body.get("error")
    if not error:
        return
    about = " ".join(str(error.get(n) or "") for n in ("type", "code")) if isinstance(error, Mapping) else str(error)
    raise AskFailed(_kind(about.lower()), f"the server says: {said_by(body)}")


def _kind(about: str) -> Failure:
    if "rate" in about or "429" in about:
        return "rate"
    if "timeout" in about:
        return "timeout"
    return "refused" if "invalid_request" in about else "server"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(content: Any) -> str:
    """Text, or the text of a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] for part in _list(content) if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )
