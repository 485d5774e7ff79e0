"""Text from elsewhere: as encoders take it, a terminal may show it, Markdown shows it, and words are compared."""

import re
import unicodedata
from typing import Any, Final, cast

from agent.sanitize.skeleton import is_hidden

_OBEYED: Final = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control characters, marks that turn the direction of writing, halves of surrogate pairs, private use."""
_PARTING: Final = frozenset({"Cc", "Co", "Zl", "Zp", "Zs"})
"""Control characters, private use, ends of lines and paragraphs, and blanks: where these stand, words end."""
_PLAIN: Final = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\uffff\U00010000-\U0010ffff]*")
_MARKUP: Final = re.compile(r"[\\`<>\[\]|&]")
MARKS: Final = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
)
"""Accents, and the vowels that Hebrew and Arabic may leave out. Like the others, part of a pattern in brackets."""
ALONE: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Chinese, Japanese, Thai, Lao, Burmese and Khmer have no spaces; a Korean word has endings."""
SIGNS: Final = "\u0900-\u0963\u0966-\u0dff"
"""Of the scripts of India, whose vowels are signs behind a letter and no letters for Python."""
_MARK: Final = re.compile(f"[{MARKS}]")


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


def shown_line(text: str) -> str:
    """The text on one line, as every file format can hold it: without controls and what only hides something.

    What joins letters or emoji stays, and so does a soft hyphen.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    text = whole(text)
    return " ".join("".join(_shown(text, at) for at in range(len(text))).split())


def _shown(text: str, at: int) -> str:
    character = text[at]
    if character == "\u00ad":
        return character
    if not character.isprintable() and (
        unicodedata.category(character) in _PARTING or ord(character) & 0xFFFE == 0xFFFE
    ):
        return " "
    return "" if is_hidden(text, at) else character


def in_markdown(text: str) -> str:
    """The text on one line, also of a table, without HTML, links and code: names and settings are a stranger's, too."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def shortened(text: str, chars: int) -> str:
    """The text with "…" instead of all that is longer."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def without_marks(text: str) -> str:
    """Accents and look-alike forms do not matter: "Łódź" is "Łodz", "ﬁlm" is "film".

    Marks without which a letter is another one stay: "バ" is not "ハ".
    """
    return unicodedata.normalize("NFC", _MARK.sub("", unicodedata.normalize("NFKD", text)))
