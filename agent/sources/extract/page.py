"""The main text of a web page, bounded in time and length: HTML, PDF or plain. It runs in worker processes only.

trafilatura finds the text of an article best; resiliparse is several times as fast and takes over where trafilatura
finds nothing, where the page is too long for it, or where it did not end in time.
"""

import re
import time
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import Any, Final, Literal, cast

from agent.sources.extract.text import Extracted, Kind, decode

How = Literal["whole", "fast"]

MAX_HTML_CHARS: Final = 2_000_000
"""A longer page is cut."""
MAX_WHOLE_CHARS: Final = 1_000_000
"""A longer page is read the fast way: trafilatura needs 1 s for so much, and 4 s for twice as much."""
MAX_TEXT_CHARS: Final = 400_000
LEAST_CHARS: Final = 200
"""An article that is shorter may be a mistake: the fast extractor reads it too, and the longer text counts."""

_HTML_LANG: Final = re.compile(r"<html\b[^>]{0,500}?\blang\s*=\s*[\"']?([a-zA-Z]{2,3})\b", re.IGNORECASE)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")
_BLANK_LINES: Final = re.compile(r"\s*\n\s*\n\s*")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_META: Final = "meta[property='article:published_time'], meta[itemprop='datePublished'], meta[name='date']"


def read_page(
    body: bytes, *, kind: Kind, charset: str = "", url: str = "", how: How = "whole", seconds: float
) -> Extracted:
    """Find the text of a page, as far as it goes: no text is an empty one, and no error.

    Args:
        body: what the server sent, decoded from its transfer coding.
        kind: what it is.
        charset: what the server declared, if anything.
        url: of the page; it may hold a date.
        how: `fast` leaves trafilatura out.
        seconds: a PDF is read page by page for at most this long; HTML has no such bound, hence the process.
    """
    if kind == "pdf":
        return _tidy(_from_pdf(body, seconds))
    text = decode(body, charset, cut=True)
    if kind == "text":
        return _tidy(Extracted(text, how="plain"))
    fast = how == "fast" or len(text) > MAX_WHOLE_CHARS
    text = text[:MAX_HTML_CHARS]
    found = Extracted("") if fast else _by_trafilatura(text, url)
    if len(found.text) < LEAST_CHARS:
        other = _by_resiliparse(text)
        if len(other.text) > len(found.text):
            found = replace(other, title=found.title or other.title, date=found.date or other.date)
    language = _HTML_LANG.search(text[:20_000])
    return _tidy(replace(found, language=language[1].lower() if language else ""))


def _by_trafilatura(html: str, url: str) -> Extracted:
    from trafilatura.core import bare_extraction

    found = cast(
        Any,
        bare_extraction(
            html,
            url=url or None,
            include_comments=False,
            with_metadata=True,
            date_extraction_params={"extensive_search": False, "original_date": True},
        ),
    )
    if found is None:
        return Extracted("")
    return Extracted(found.text or "", found.title or "", found.date or "", how="trafilatura")


def _by_resiliparse(html: str) -> Extracted:
    from resiliparse.extract.html2text import extract_plain_text  # pyright: ignore[reportMissingModuleSource]
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    date = ""
    if tree.head and (meta := tree.head.query_selector(_DATE_META)):
        date = meta.getattr("content", "") or ""
    text = extract_plain_text(tree, main_content=True, alt_texts=False)
    return Extracted(text, tree.title or "", date, how="resiliparse")


def _from_pdf(body: bytes, seconds: float) -> Extracted:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    end = time.monotonic() + seconds
    parts: list[str] = []
    title = ""
    broken = (PyPdfError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError)
    try:
        reader = PdfReader(BytesIO(body))
        title = str(reader.metadata.title or "") if reader.metadata else ""
        for page in reader.pages:
            parts.append("")
            with suppress(*broken):
                parts[-1] = page.extract_text()
            if time.monotonic() > end or sum(map(len, parts)) > MAX_TEXT_CHARS:
                break
    except broken:
        pass  # what was read before the damage still counts
    return Extracted("\n\n".join(parts), title, how="pypdf")


def _tidy(found: Extracted) -> Extracted:
    """Remove what is not text, and bound each field."""
    text = _CONTROL.sub("", found.text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _BLANK_LINES.sub("\n\n", text).strip()[:MAX_TEXT_CHARS]
    title = " ".join(_CONTROL.sub("", found.title).split())[:300]
    date = _DATE.match(found.date)
    return replace(found, text=text, title=title, date=date[0] if date else "")
