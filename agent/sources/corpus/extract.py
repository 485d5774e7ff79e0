"""The text of a page (HTML) or a paper (PDF), given as bytes: pure functions, without files, network or processes.

Whatever a parser trips over becomes `ExtractError`, a sentence. A parser may also run for very long or eat all memory:
who reads what strangers wrote calls these functions in a process that can be killed.
"""

import codecs
import io
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from agent.errors import AgentError

PAGE_BREAK: Final = "\n\n"
"""Stands between two pages of a PDF's text."""
MAX_WHOLE_CHARS: Final = 2_000_000
"""A longer page is read in the plain and fast way only."""

_BOMS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]{2,40})""", re.IGNORECASE)
_CHARSET_BYTES: Final = 4096
"""A page says early how it is written."""
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,1000})", re.IGNORECASE)
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NO_TITLE: Final = re.compile(
    r"(?i)untitled|microsoft word - .*|.*\.(docx?|dvi|tex|indd|pdf|ps|rtf|qxd)|\(?none\)?|title"
)
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=[^\W\d_])")
_ENDED: Final = re.compile(r"""[.!?:;]["')\]]*$""")


class ExtractError(AgentError):
    """No text can be had from these bytes; the sentence says why."""


@dataclass(frozen=True)
class Extracted:
    """What a file says."""

    text: str
    title: str = ""
    date: str = ""
    """ISO day, where the file states it."""
    url: str = ""
    """The address that a page gives as its own."""
    pages: tuple[int, ...] = ()
    """Where in `text` each page of a PDF begins."""

    def page(self, at: int) -> int:
        """The page, from 1, that the character `at` stands on; 0 where there are no pages."""
        return bisect_right(self.pages, at)


def decode(raw: bytes) -> str:
    """Bytes as text: by their mark, else as UTF-8, else as they say themselves, else by guess. Nothing is refused.

    Raises:
        ExtractError: these are no bytes of a text.
    """
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            text = raw.decode(encoding, errors="replace")
            return _refuse_zeros(text, text.count("\0"))
    _refuse_zeros(raw, raw.count(0))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_by_name(raw)


_Text = TypeVar("_Text", str, bytes)


def _refuse_zeros(content: _Text, zeros: int) -> _Text:
    if zeros > len(content) // 1000:
        raise ExtractError("it holds zero bytes, so it is no text")
    return content


def _decode_by_name(raw: bytes) -> str:
    """By the charset that a page says it has, if browsers know it; else by guess."""
    from resiliparse.parse.encoding import (  # pyright: ignore[reportMissingModuleSource]
        detect_encoding,
        map_encoding_to_html5,
    )

    said = _CHARSET.search(raw[:_CHARSET_BYTES])
    known = map_encoding_to_html5(said[1].decode("ascii", "replace"), fallback_utf8=False) if said else None
    for name in (known, detect_encoding(raw)):
        try:
            if name:
                return raw.decode(name, errors="replace")
        except (LookupError, ValueError):
            continue  # Python has no such charset
    return raw.decode("windows-1252", errors="replace")


def html_text(raw: bytes) -> Extracted:
    """The main text of a page, as Markdown (headings are worth keeping), with title, date and address where stated.

    Raises:
        ExtractError: the page holds no text.
    """
    from trafilatura import extract, extract_metadata, load_html

    page = decode(raw).replace("\0", "")
    title = date = url = text = ""
    try:
        tree = cast(Any, load_html(page) if len(page) <= MAX_WHOLE_CHARS else None)
        if tree is not None:
            for mark in tree.xpath("//b|//strong|//i|//em|//u"):
                mark.drop_tag()  # as Markdown, stars would stand within the sentences
            meta = extract_metadata(tree, extensive=False)
            title, date, url = meta.title or "", meta.date or "", meta.url or ""
            text = extract(tree, output_format="markdown", include_comments=False, favor_recall=True) or ""
    except (ValueError, SyntaxError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        text = ""  # the plainer reader may still get something
    if not text.strip():
        text = _plain(page)
    if not title and (found := _TITLE.search(page)):
        title = _unescape(found[1])
    if not (text := clean(text)):
        raise ExtractError("the page holds no text")
    return Extracted(text, title=_one_line(title), date=date if _ISO_DAY.fullmatch(date) else "", url=url)


def _plain(page: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text  # pyright: ignore[reportMissingModuleSource]

    try:
        return extract_plain_text(page, preserve_formatting=True, main_content=False)
    except (ValueError, RuntimeError) as error:
        raise ExtractError(f"the page cannot be parsed: {error}") from error


def _unescape(text: str) -> str:
    from html import unescape

    return unescape(text)


def pdf_text(raw: bytes) -> Extracted:
    """The text of a PDF with its pages; the title is that of its metadata, if that is one.

    Raises:
        ExtractError: it is encrypted, broken, or pictures of text only.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ExtractError("it is encrypted; save a copy without a password")
        texts = [unwrap(clean(page.extract_text())) for page in reader.pages]
        title = _one_line(reader.metadata.title or "" if reader.metadata else "")
    except ExtractError:
        raise
    except DependencyError as error:
        raise ExtractError("it is encrypted; save a copy without a password, or: pip install cryptography") from error
    except (PyPdfError, OSError) as error:
        raise ExtractError(f"it is no PDF that can be read: {error}") from error
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        AssertionError,
    ) as error:
        raise ExtractError(f"it is a broken PDF ({type(error).__name__}: {error})") from error
    if not any(texts):
        raise ExtractError("none of its pages holds text: if it was scanned, recognise the text first (ocrmypdf)")
    starts = _starts(texts)
    return Extracted(PAGE_BREAK.join(texts), title="" if _NO_TITLE.fullmatch(title) else title, pages=starts)


def _starts(texts: Sequence[str]) -> tuple[int, ...]:
    starts: list[int] = []
    at = 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(PAGE_BREAK)
    return tuple(starts)


def clean(text: str) -> str:
    """Text without what is no text: control characters, halves of characters; line ends are all alike."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if not lines.isascii() or not lines.isprintable():
        lines = "".join(c for c in lines if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    return lines.strip()


def unwrap(text: str) -> str:
    """Put the lines of a printed page together again to paragraphs.

    A line that is as long as most and ends no sentence goes on in the next one; a word that was divided at its end is
    whole again.
    """
    lines = _HYPHEN.sub("", text).split("\n")
    full = sorted(len(line) for line in lines)[len(lines) * 3 // 4] * 3 // 4
    parts: list[str] = []
    for line in map(str.strip, lines):
        parts += [line, " " if len(line) >= full and line and not _ENDED.search(line) else "\n"]
    return "".join(parts[:-1])


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())
