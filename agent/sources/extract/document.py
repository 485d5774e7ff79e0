"""A whole document for an index: its text, faithful to headings and pages; here of HTML and PDF, beside of other kinds.

Whatever a parser trips over becomes `ExtractError`, a sentence. A parser may also run for very long or eat all memory:
what strangers wrote is read by these functions in a process that can be killed (`agent.sources.extract.pool`).
"""

import codecs
import io
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeGuard, cast

from agent.files.foreign import read_file
from agent.sources.extract.text import MAX_CHARS, Extracted, ExtractError, clean, decode, one_line

PAGE_BREAK: Final = "\n\n"
"""Between two pages of a PDF's text."""
MAX_WHOLE_CHARS: Final = 2_000_000
"""A longer page is read in the plain and fast way only."""
MAX_BYTES: Final = 512 << 20

_WIDE_BOMS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,1000})", re.IGNORECASE)
_EMPHASIS: Final = "//*[self::b or self::strong or self::i or self::em or self::u or self::sub or self::sup]"
"""Markdown would put stars and tags into the sentences."""
_RAISED: Final = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
"""10⁶ is not 106."""
_IN_TEXT: Final = "ancestor::main or ancestor::article or ancestor::*[@role='main']"
"""Conditions of single elements: a path through all such parts takes time by the square of their number."""
_LINKS: Final = f"//a[({_IN_TEXT} or ancestor::*[self::ul or self::ol][parent::body]) and not(ancestor::nav)]"
"""In the text itself: trafilatura takes a list of links for a menu and leaves it out, names and all."""
_BOXES: Final = f"//*[self::figure or (self::aside or self::form) and ({_IN_TEXT})]"
"""Notes, code and forms in the text itself: trafilatura leaves them out by their names, as the bars of a site."""
_CUT_OFF: Final = "/*" * 250
"""An element so deep inside of others: the parser ends without a word at one of 256, and all that follows is lost."""
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NO_TITLE: Final = re.compile(
    r"(?i)untitled|microsoft word - .*|.*\.(docx?|dvi|tex|indd|pdf|ps|rtf|qxd)|\(?none\)?|title"
)
_HIDDEN: Final = 2
"""The flag of an annotation that no one sees."""
_BROKEN: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,  # NotImplementedError for an unknown filter, and RecursionError
    TypeError,
    ValueError,
)
"""What pypdf raises about a damaged file, beside its own errors."""
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=[^\W\d_])")
_ENDED: Final = re.compile(r"""[.!?:;]["')\]]*$""")


def read_document(path: Path, kind: str) -> Extracted:
    """The text of one file, which is no link.

    Args:
        path: the file.
        kind: a key of `_READERS`.

    Raises:
        ExtractError: it cannot be opened, is too large or holds no text.
    """
    try:
        raw = read_file(path, most=MAX_BYTES, follow=False)
    except OSError as error:
        raise ExtractError(unopened(error)) from error
    found = reader_of(kind)(raw)
    if len(found.text) > MAX_CHARS:
        raise ExtractError(f"it unpacks to more than {MAX_CHARS >> 20} million characters")
    return found


def unopened(error: OSError) -> str:
    """Why a file cannot be read, as a sentence."""
    why = error.strerror or str(error)
    return why if why.startswith("it ") else f"it cannot be opened: {why}"


def plain_text(raw: bytes) -> str:
    """Bytes as text.

    Raises:
        ExtractError: the bytes are not text.
    """
    text = decode(raw)
    zeros, length = (text.count("\0"), len(text)) if raw.startswith(_WIDE_BOMS) else (raw.count(0), len(raw))
    if zeros > length // 1000:
        raise ExtractError("it contains zero bytes, so it is not text")
    return text


def html_text(raw: bytes) -> Extracted:
    """The main text of a page, as Markdown (headings are worth keeping), with title, date and address where stated.

    Raises:
        ExtractError: the page holds no text.
    """
    from trafilatura import extract, extract_metadata, load_html

    page = plain_text(raw).replace("\0", "")
    title = date = url = text = ""
    try:
        tree = cast(Any, load_html(page) if len(page) <= MAX_WHOLE_CHARS else None)
        if tree is not None:
            whole = not tree.getroottree().xpath(_CUT_OFF)
            _keep_whole(tree)
            meta = extract_metadata(tree, extensive=False)
            title, date, url = meta.title or "", meta.date or "", meta.url or ""
            if whole:
                text = extract(tree, output_format="markdown", include_comments=False, favor_recall=True) or ""
    except (ValueError, SyntaxError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        text = ""  # the plainer reader may still get something
    if not text.strip():
        text = all_of_page(page)
    if not title and (found := _TITLE.search(page)):
        title = _unescape(found[1])
    if not (text := clean(text)):
        raise ExtractError("the page holds no text")
    return Extracted(text, title=one_line(title), date=date if _ISO_DAY.fullmatch(date) else "", url=url)


def _keep_whole(tree: Any) -> None:
    """Change the elements by whose names trafilatura would leave out, or mark, what belongs to the text."""
    for raised in tree.iter("sup"):
        if raised.text and set(map(ord, raised.text)) <= _RAISED.keys():
            raised.text = raised.text.translate(_RAISED)
    for mark in [*tree.xpath(_EMPHASIS), *tree.xpath(_LINKS)]:
        mark.drop_tag()
    for box in tree.xpath(_BOXES):
        box.tag = "div" if len(box) else "p"
    for caption in tree.iter("figcaption"):
        caption.tag = "p" if caption.find(".//p") is None else "div"


def all_of_page(page: str) -> str:
    """All text of a page, menus too, however deep it is nested.

    Raises:
        ExtractError: it cannot be parsed.
    """
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

    A page that cannot be read is empty, so that the others keep their numbers.

    Raises:
        ExtractError: it is encrypted, broken, or pictures of text only.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ExtractError("it is encrypted; save a copy without a password")
        pages = [_page_text(page) for page in reader.pages]
        title = one_line(reader.metadata.title or "" if reader.metadata else "")
    except ExtractError:
        raise
    except (PyPdfError, DependencyError, OSError) as error:
        raise ExtractError(f"it is not a readable PDF: {error}") from error
    except _BROKEN as error:
        raise ExtractError(f"it is a broken PDF ({_named(error)})") from error
    texts = [text for text, _ in pages]
    if not any(texts):
        if why := next((why for _, why in pages if why), ""):
            raise ExtractError(f"it is a broken PDF ({why})")
        raise ExtractError("none of its pages holds text: if it was scanned, recognise the text first (ocrmypdf)")
    starts = _starts(texts)
    return Extracted(PAGE_BREAK.join(texts), title="" if _NO_TITLE.fullmatch(title) else title, pages=starts)


def _page_text(page: Any) -> tuple[str, str]:
    """What is printed on a page of a PDF, with what was filled into its form below, and why any of it is missing."""
    from pypdf.errors import PyPdfError

    parts: list[str] = []
    wrong = ""
    for read in (_printed, _filled_in):
        try:
            parts.append(read(page))
        except (*_BROKEN, PyPdfError) as error:
            wrong = wrong or _named(error)
    return "\n".join(filter(None, parts)), wrong


def _printed(page: Any) -> str:
    return unwrap(clean(page.extract_text()))


def _filled_in(page: Any) -> str:
    """A line for each field with a text that can be seen: its label for people, and its value."""
    lines: list[str] = []
    links = page.get("/Annots")
    for link in links.get_object() if links else ():
        widget = link.get_object()
        parent = widget.get("/Parent")
        stated = dict(parent.get_object() if parent else {}) | dict(widget)
        field = {name: stated[name].get_object() for name in ("/Subtype", "/F", "/V", "/TU") if name in stated}
        if field.get("/Subtype") != "/Widget" or int(field.get("/F", 0)) & _HIDDEN:
            continue
        value, label = field.get("/V"), field.get("/TU")
        texts = [text for text in cast(list[object], value if isinstance(value, list) else [value]) if _is_text(text)]
        lines += [f"{one_line(label)}: {text}" if _is_text(label) else text for text in map(clean, texts) if text]
    return "\n".join(dict.fromkeys(lines))


def _is_text(value: object) -> TypeGuard[str]:
    """Names, such as the /Yes of a box that is ticked, begin with a slash, and are of another class of text."""
    from pypdf.generic import TextStringObject

    return isinstance(value, TextStringObject)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _starts(texts: Sequence[str]) -> tuple[int, ...]:
    starts: list[int] = []
    at = 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(PAGE_BREAK)
    return tuple(starts)


def unwrap(text: str) -> str:
    """Join the lines of a printed page into paragraphs.

    A line that is as long as most and ends no sentence goes on in the next one; a word that was divided at its end is
    whole again.
    """
    lines = _HYPHEN.sub("", text).split("\n")
    full = sorted(len(line) for line in lines)[len(lines) * 3 // 4] * 3 // 4
    parts: list[str] = []
    for line in map(str.strip, lines):
        parts += [line, " " if len(line) >= full and line and not _ENDED.search(line) else "\n"]
    return "".join(parts[:-1])


_READERS: Final = {
    "html": "document.html_text",
    "pdf": "document.pdf_text",
    "docx": "word.docx_text",
    "rtf": "word.rtf_text",
    "pptx": "slides.pptx_text",
    "xlsx": "sheets.xlsx_text",
    "csv": "sheets.csv_text",
    "tsv": "sheets.tsv_text",
    "odt": "opendocument.odt_text",
    "odp": "opendocument.odp_text",
    "ods": "opendocument.ods_text",
    "epub": "epub.epub_text",
    "mail": "mail.mail_text",
}


def reader_of(kind: str) -> Callable[[bytes], Extracted]:
    """The function that reads a kind of file; its libraries are imported now."""
    module, name = _READERS[kind].split(".")
    return cast(Callable[[bytes], Extracted], getattr(import_module(f"agent.sources.extract.{module}"), name))
