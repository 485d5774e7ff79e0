"""What an OpenAI-compatible server says, read at the door: odd JSON becomes one sentence, whatever it holds.

Servers differ, so everything that can be meant is taken: text as a list of parts, a whole message where a stream was
requested, reasoning under either name. What cannot be meant raises `OddReply`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from agent.outbound.numbers import amount, count
from agent.sanitize.text import whole

_BOM: Final = "\ufeff"
_KINDS: Final = (
    *((bool, "true or false"), (int, "a number"), (float, "a number")),
    *((str, "text"), (list, "a list"), (dict, "an object")),
)
_SAID: Final = 300
"""Characters of a server's own words."""
_LEAST_LOGPROB: Final = -1e6
_MOST_CALLS: Final = 64
_REASONING: Final = re.compile(
    r"\A.*(?:</(?:think|thinking|thought|reasoning)>|\[/THINK\])"
    r"|\A\s*(?:<(?:think|thinking|thought|reasoning)>|\[THINK\]).*",
    re.DOTALL | re.IGNORECASE,
)
"""Down to the last closing mark: the opening one may be in the prompt. Reasoning that never ends is all of a text."""


class OddReply(ValueError):
    """A reply that cannot be read; the text says what is odd about it, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class CallPart:
    """A piece of a function call, as streams send them: the name first, then the arguments bit by bit."""

    index: int
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class CompletionPart:
    """One event of a stream, or a whole completion."""

    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[CallPart, ...] = ()
    finish: str = ""
    """Why the turn ended; empty while it goes on."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_completion: bool = False
    """Whether it holds any choice."""


def without_reasoning(text: str) -> str:
    """What a model says without the reasoning that some write before it; empty where there is nothing else."""
    return _REASONING.sub("", text, count=1).strip()


def json_of(data: bytes) -> Any:
    """Read JSON.

    Raises:
        OddReply: it is none, or nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8").removeprefix(_BOM))
    except (ValueError, RecursionError) as error:  # also no UTF-8, and a number of thousands of digits
        raise OddReply("it is not JSON") from error


def object_of(value: object, what: str = "it") -> dict[str, Any]:
    """A JSON object.

    Raises:
        OddReply: it is something else.
    """
    if not isinstance(value, dict):
        raise OddReply(f"{what} is {_kind(value)}, not an object")
    return cast(dict[str, Any], value)


def error_of(body: Mapping[str, Any]) -> str:
    """What a server says went wrong, on one line and cut; empty where it says nothing of an error."""
    error: Any = body.get("error")
    if not error:
        return ""
    message: Any = cast(dict[str, Any], error).get("message") if isinstance(error, dict) else error
    try:
        words = message if isinstance(message, str) and message else json.dumps(error)
    except (ValueError, RecursionError):
        words = "an error"
    return " ".join(whole(words[: 4 * _SAID]).split())[:_SAID]


def read_chat(body: Mapping[str, Any]) -> CompletionPart:
    """An event of a chat completion's stream, or a whole one.

    Raises:
        OddReply: it can't be read.
    """
    usage: Any = body.get("usage")
    used = cast(dict[str, Any], usage) if isinstance(usage, dict) else {}
    prompt_tokens, completion_tokens = count(used.get("prompt_tokens")), count(used.get("completion_tokens"))
    choice = first_choice(body)
    if choice is None:
        return CompletionPart(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
    delta: Any = choice.get("delta")
    said = object_of((choice.get("message") if delta is None else delta) or {}, "the message")
    content, thought = _parts(said.get("content"), "its content")
    reasoning, _ = _parts(said.get("reasoning_content") or said.get("reasoning"), "its reasoning")
    refusal: Any = said.get("refusal")
    return CompletionPart(
        content=whole(content),
        reasoning=whole(reasoning + thought),
        refusal=whole(refusal) if isinstance(refusal, str) else "",
        calls=tuple(_calls(said.get("tool_calls"))),
        finish=finish_of(choice),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        is_completion=True,
    )


def _calls(value: object) -> Iterator[CallPart]:
    """Function calls. What can't be one is left out: the text beside it may still be an answer."""
    for at, item in enumerate(cast(list[Any], value)[:_MOST_CALLS] if isinstance(value, list) else []):
        row = cast(dict[str, Any], item) if isinstance(item, dict) else {}
        function: Any = row.get("function")
        if not isinstance(function, dict):
            continue
        called = cast(dict[str, Any], function)
        name, arguments = called.get("name"), called.get("arguments")
        yield CallPart(
            index=at if (index := count(row.get("index"))) is None else index,
            name=whole(name)[:_SAID] if isinstance(name, str) else "",
            arguments=whole(arguments) if isinstance(arguments, str) else _dumped(arguments),
        )


def _dumped(arguments: object) -> str:
    """Arguments that a server sends as an object, not as the text of one."""
    try:
        return json.dumps(arguments) if isinstance(arguments, dict) else ""
    except (ValueError, RecursionError):
        return ""


def first_choice(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The one choice that was requested; None where there is none.

    Raises:
        OddReply: the choices are something else.
    """
    choices: Any = body.get("choices")
    if choices is None:
        return None
    if not isinstance(choices, list):
        raise OddReply(f"`choices` is {_kind(cast(object, choices))}, not a list")
    rows = cast(list[Any], choices)
    return object_of(rows[0], "a choice") if rows else None


def finish_of(choice: Mapping[str, Any]) -> str:
    """Why a turn ended; empty while it goes on.

    Raises:
        OddReply: the reason is no text.
    """
    finish: Any = choice.get("finish_reason")
    if finish is None:
        return ""
    if not isinstance(finish, str):
        raise OddReply(f"`finish_reason` is {_kind(finish)}, not text")
    return finish


def read_tokens(choice: Mapping[str, Any]) -> list[tuple[int, float]]:
    """Token ids with their log-probabilities, as vLLM's completions give them.

    Raises:
        OddReply: they do not go together, or some are none.
    """
    logprobs: Any = choice.get("logprobs")
    logprobs = _list(object_of(logprobs or {}, "`logprobs`").get("token_logprobs"), "`token_logprobs`")
    ids = _list(choice.get("token_ids"), "`token_ids`")
    if len(ids) != len(logprobs):
        raise OddReply(f"{len(ids)} token ids come with {len(logprobs)} log-probabilities; set endpoint to chat")
    return [(_token(id), _logprob(logprob)) for id, logprob in zip(ids, logprobs, strict=True)]


def _token(id: object) -> int:
    if isinstance(id, bool) or not isinstance(id, int) or count(id) is None:
        raise OddReply("a token id is not a valid number")
    return id


def _logprob(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or amount(abs(value), most=-_LEAST_LOGPROB) is None
    ):
        raise OddReply("a log-probability is not a valid number")
    return float(value)


def _list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise OddReply(f"{what} is {_kind(value)}, not a list")
    return cast(list[Any], value)


def _parts(content: object, what: str) -> tuple[str, str]:
    """Text, and what a list of parts marks as thinking. Parts of other kinds are left out."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise OddReply(f"{what} is {_kind(content)}, neither text nor a list of parts")
    text: list[str] = []
    thought: list[str] = []
    for part in cast(list[Any], content):
        if isinstance(part, str):
            text.append(part)
            continue
        row = object_of(part, f"a part of {what}")
        if isinstance(said := row.get("text"), str):
            text.append(said)
        elif row.get("type") == "thinking":
            thought.append(_thinking(row.get("thinking")))
    return "".join(text), "".join(thought)


def _thinking(value: object) -> str:
    """Text, or one list of parts; no deeper."""
    if isinstance(value, str):
        return value
    rows = cast(list[Any], value) if isinstance(value, list) else []
    found = (cast(dict[str, Any], row).get("text") for row in rows if isinstance(row, dict))
    return "".join(text for text in found if isinstance(text, str))


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")
