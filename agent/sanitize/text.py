"""Text from elsewhere, as encoders take it, as a terminal may show it and as Markdown shows it."""

import re
import unicodedata
from typing import Any, Final, cast

_OBEYED: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control characters, marks that turn the direction of writing, halves of surrogate pairs, private use."""
_PLAIN: Final = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\uffff\U00010000-\U0010ffff]*")
_MARKUP: Final = re.compile(r"[\\`<>\[\]|&]")


def whole(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which JSON can hold and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def whole_value(value: object) -> Any:
    """The same, of every text in dicts, lists and tuples."""
    match value:
        case str():
            return whole(value)
        case dict():
            return {whole_value(key): whole_value(item) for key, item in cast(dict[object, object], value).items()}
        case list() | tuple():
            return [whole_value(item) for item in cast(list[object], value)]
        case _:
            return value


def printable(text: str) -> str:
    """Text from elsewhere without what a terminal would obey, as escape sequences and marks that turn the direction."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _OBEYED)


def printable_json(text: str) -> str:
    """JSON that says the same, with escapes for the characters that a terminal would obey."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _OBEYED else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    """As JSON writes it: two halves of a pair beyond the first 65,536 characters."""
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


def in_markdown(text: str) -> str:
    """The text on one line, also of a table, without HTML, links and code: names and settings are a stranger's, too."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def shortened(text: str, chars: int) -> str:
    """The text with "…" instead of all that is longer."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
