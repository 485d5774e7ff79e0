"""What all formats share: the result, the error, and bytes as text. Pure functions, without files or processes."""

import codecs
import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final, Literal

from agent.errors import AgentError

Kind = Literal["html", "pdf", "text"]

MAX_CHARS: Final = 64 << 20
"""Of the text of one file: a book has a million."""

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_ASCII_BASED: Final = ("utf-16", "utf-32", "iso-2022", "hz")
"""Their bytes may look like UTF-8 and mean something else: what the server declares counts."""
_META_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]{2,40})""", re.IGNORECASE)
_META_BYTES: Final = 4096
"""A page says early how it is written."""


class ExtractError(AgentError):
    """No text can be had from these bytes; the sentence says why."""


class ReadingFailed(ExtractError):
    """Its reader failed, and not the bytes alone: another try may end otherwise."""


@dataclass(frozen=True)
class Extracted:
    """What a file or a page says. Fields that it does not state are empty."""

    text: str
    title: str = ""
    date: str = ""
    """ISO, a day; of a book it may be a month or a year."""
    url: str = ""
    """The address that a page gives as its own."""
    language: str = ""
    """As ISO 639 has it: "en"."""
    how: str = ""
    """Which extractor found the text of a page."""
    pages: tuple[int, ...] = ()
    """Where in `text` each page of a PDF, or each slide, begins."""

    def page(self, at: int) -> int:
        """The page, from 1, that holds the character `at`; 0 where there are no pages."""
        return bisect_right(self.pages, at)

    def page_breaks(self, start: int, end: int) -> tuple[int, ...]:
        """Where in text[start:end] each page begins after the one that it begins on."""
        within = self.pages[bisect_right(self.pages, start) : bisect_left(self.pages, end)]
        return tuple(at - start for at in within)


def decode(raw: bytes, declared: str = "", *, cut: bool = False) -> str:
    """Turn bytes into text: byte order mark, valid UTF-8, what server and page declare, a guess: in this order.

    UTF-8 comes before what is declared: hardly any other text is valid UTF-8, and servers declare what they like.

    Args:
        raw: any bytes; none are rejected.
        declared: the charset that a server declares.
        cut: whether the bytes may end inside a character, which is then left out.
    """
    for mark, name in _BOMS:
        if raw.startswith(mark):
            return raw.decode(name, errors="replace")
    declared = declared.strip("\"' \t").lower()
    if declared.startswith(_NOT_ASCII_BASED):
        try:
            return raw.decode(declared)
        except (LookupError, ValueError):
            declared = ""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if cut and error.start >= len(raw) - 3:
            return raw[: error.start].decode("utf-8")
    return _decode_declared(raw, declared)


def _decode_declared(raw: bytes, declared: str) -> str:
    """By a charset that browsers know and that fits, of the server or the page; else by guess."""
    from resiliparse.parse.encoding import (  # pyright: ignore[reportMissingModuleSource]
        bytes_to_str,
        detect_encoding,
        map_encoding_to_html5,
    )

    meta = _META_CHARSET.search(raw[:_META_BYTES])
    for name in (declared, meta[1].decode("ascii", "replace") if meta else ""):
        known = map_encoding_to_html5(name, fallback_utf8=False) if name else None
        if known and known != "utf-8":
            try:
                return raw.decode(known)
            except (LookupError, ValueError):
                continue  # Python has no such charset, or the bytes are of another
    return bytes_to_str(raw, detect_encoding(raw) or "utf-8", errors="replace")


def clean(text: str) -> str:
    """Remove control characters and lone surrogates, and make all line ends alike."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if not lines.isascii() or not lines.isprintable():
        lines = "".join(c for c in lines if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    return lines.strip()


def one_line(text: str) -> str:
    """The same without line ends and doubled spaces."""
    return " ".join(clean(text).split())
