"""JSON as policies write it: code fences, single quotes and trailing commas are read, everything doubtful is refused.

It never evaluates anything: what was written is text until `json` reads it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

from agent.errors import PlanError

_FENCE: Final = "```"
_FENCE_HEAD: Final = re.compile(r"[\w-]*[ \t]*\n?")
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_CLOSING: Final = re.compile(r"\s*[\]}]")
"""The next character but white space closes a list or an object."""
_CONTROL: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def read_values(text: str) -> Iterator[tuple[Any, str]]:
    """Give each JSON value of a text, and how it was written. Values may follow one another.

    Raises:
        PlanError: there is text that is no JSON, a key occurs twice, or a value does not end.
    """
    text = _unfenced(text)
    plain, written = _plain(text)
    decoder = json.JSONDecoder(object_pairs_hook=_once_each)
    at = _next_value(plain, 0)
    while at < len(plain):
        try:
            value, end = decoder.raw_decode(plain, at)
        except json.JSONDecodeError as error:
            raise PlanError(f"{_short(text)} is no JSON: {error.msg} at character {written[error.pos] + 1}") from error
        except ValueError as error:
            raise PlanError("the JSON holds a number that is too long; write it as a string") from error
        except RecursionError as error:
            raise PlanError("the JSON is nested too deeply; write one flat object") from error
        yield value, text[written[at] : written[end]].strip()
        at = _next_value(plain, end)


def strings(value: Any, key: str) -> tuple[str, ...]:
    """A string, or a list of strings, without those that are blank.

    Raises:
        PlanError: it is anything else.
    """
    items = [] if value is None else as_list(value)
    found: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise PlanError(f"{key!r} must be a string or a list of strings, not {json.dumps(value)[:60]}")
        found.append(item.strip())
    return tuple(item for item in found if item)


def as_list(value: Any) -> list[Any]:
    """The items of a list; anything else is one item."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def as_object(value: Any) -> dict[str, Any] | None:
    """The object that it is; None if it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(name for name, _ in pairs)
    if twice := next((name for name, count in counts.items() if count > 1), None):
        raise PlanError(f"the key {twice!r} occurs twice; write it once")
    return dict(pairs)


def _unfenced(text: str) -> str:
    """What is in the code fences of a text; the text itself if there are none, or anything else beside them."""
    parts = text.split(_FENCE)
    outside, inside = parts[::2], parts[1::2]
    if not inside or len(inside) == len(outside) or "".join(outside).strip():
        return text
    return "\n".join(_FENCE_HEAD.sub("", held, count=1).rstrip(" \t").removesuffix("\n") for held in inside)


def _next_value(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,;":
        at += 1
    return at


def _plain(text: str) -> tuple[str, list[int]]:
    """The text as strict JSON, as far as that is certain; and where each of its characters is in `text`."""
    pieces: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        if text[at] in _QUOTES:
            said, end = _string(text, at)
            pieces.append((said, at))
        elif text[at] == "," and _CLOSING.match(text, at + 1):
            end = at + 1
        else:
            word = _WORD.match(text, at)
            end = word.end() if word else at + 1
            pieces.append((_WORDS.get(text[at:end], text[at:end]), at))
        at = end
    places: list[int] = []
    for said, start in pieces:
        as_written = text.startswith(said, start)
        places += range(start, start + len(said)) if as_written else [start] * len(said)
    return "".join(said for said, _ in pieces), [*places, len(text)]


def _string(text: str, at: int) -> tuple[str, int]:
    """A string that begins at `at`, in double quotes, and where it ends; the rest of the text if nothing closes it."""
    closing = _QUOTES[text[at]]
    said: list[str] = []
    place = at + 1
    while place < len(text):
        character = text[place]
        if character == closing:
            return f'"{"".join(said)}"', place + 1
        if character == "\\" and place + 1 < len(text):
            escaped = text[place + 1]
            said.append("'" if escaped == "'" else character + escaped)
            place += 2
            continue
        said.append('\\"' if character == '"' else _CONTROL.get(character, character))
        place += 1
    return text[at:], len(text)


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return repr(folded if len(folded) <= 60 else f"{folded[:60]}…")
