"""OpenDocument as Markdown: text (.odt), slides (.odp) and sheets (.ods)."""

from collections.abc import Iterator
from typing import Any, Final

from agent.sources.extract.markdown import MAX_CELLS, Markdown
from agent.sources.extract.package import Package, first_day, reading, real_title
from agent.sources.extract.text import Extracted, ExtractError
from agent.sources.extract.trees import local

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW: Final = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_SHOW: Final = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_META: Final = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
_ELEMENTS: Final = "{http://purl.org/dc/elements/1.1/}"
_SKIPPED: Final = frozenset(
    "annotation annotation-end forms tracked-changes table-of-content sequence-decls scripts object object-ole "
    "settings calculation-settings content-validations".split()
)
_MAX_SPACES: Final = 100
_MANIFEST: Final = "META-INF/manifest.xml"


def odt_text(raw: bytes) -> Extracted:
    """A text document: headings, lists, tables and notes.

    Raises:
        ExtractError: it cannot be read or holds no text.
    """
    return _read(raw, ".odt")


def odp_text(raw: bytes) -> Extracted:
    """A presentation, each slide a page that begins with its title.

    Raises:
        ExtractError: it cannot be read or holds no text.
    """
    return _read(raw, ".odp")


def ods_text(raw: bytes) -> Extracted:
    """A workbook: a heading for each sheet, and its rows as they are shown.

    Raises:
        ExtractError: it cannot be read, is too large or holds no text.
    """
    return _read(raw, ".ods")


def _read(raw: bytes, suffix: str) -> Extracted:
    out = Markdown()
    with reading(suffix):
        package = Package(raw, suffix)
        if _MANIFEST in package and b"encryption-data" in package.read(_MANIFEST):
            raise ExtractError("it is encrypted with a password: save a copy without one")
        meta = package.xml("meta.xml") if "meta.xml" in package else None
        content = package.xml("content.xml")
        _Writer(out, _hidden(content)).over(content)
    if meta is None:
        return out.extracted()
    stated = {
        name: meta.findtext(f".//{name}") for name in (f"{_ELEMENTS}title", f"{_ELEMENTS}date", f"{_META}creation-date")
    }
    title, *days = stated.values()
    return out.extracted(title=real_title(title), date=first_day(*days))


def _hidden(content: Any) -> frozenset[str]:
    """The styles of sheets that are not shown."""
    return frozenset(
        said.getparent().get(f"{_STYLE}name", "")
        for said in content.iter(f"{_STYLE}table-properties")
        if said.get(f"{_TABLE}display") == "false"
    )


class _Writer:
    """Goes over a tree, which is at most 256 deep: the parser sees to that."""

    def __init__(self, out: Markdown, hidden: frozenset[str]) -> None:
        self._out = out
        self._hidden = hidden
        self._slides = 0
        self._depth = 0
        """Of lists around."""

    def over(self, element: Any) -> None:
        for child in element:
            match local(child):
                case "h":
                    level = child.get(f"{_TEXT}outline-level", "1")
                    self._out.heading(int(level) if level.isdecimal() else 1, inline(child))
                case "p":
                    self._paragraph(child)
                case "list":
                    self._depth += 1
                    self.over(child)
                    self._depth -= 1
                case "table":
                    self._table(child)
                case "page":
                    self._slide(child)
                case "notes":
                    self._out.paragraph(f"Notes: {text}" if (text := _paragraphs(child)) else "")
                case name:
                    self.over(child if name not in _SKIPPED else ())

    def _paragraph(self, element: Any) -> None:
        if self._depth:
            self._out.item(self._depth - 1, inline(element))
        else:
            self._out.paragraph(inline(element))

    def _table(self, element: Any) -> None:
        if element.get(f"{_TABLE}style-name") in self._hidden:
            return
        if element.getparent().tag == f"{_OFFICE}spreadsheet":
            self._out.heading(1, element.get(f"{_TABLE}name", ""))
        self._out.table(_rows(element))

    def _slide(self, element: Any) -> None:
        self._slides += 1
        self._out.page()
        named = next((frame for frame in element.iter(f"{_DRAW}frame") if frame.get(f"{_SHOW}class") == "title"), None)
        title = "" if named is None else _paragraphs(named)
        if named is not None:
            named.getparent().remove(named)
        below = _paragraphs(element)
        if title or below:
            self._out.heading(1, title or f"Slide {self._slides}")
            self._out.paragraph("" if below else title)
            self.over(element)


def _rows(table: Any) -> Iterator[list[str]]:
    left = MAX_CELLS
    for row in table.iter(f"{_TABLE}table-row"):
        cells = _cells(row)
        times = _times(row, "rows") if cells else 1
        left -= times * len(cells)
        if left < 0:
            raise ExtractError(f"a sheet of it repeats a row {times:,} times: delete the rows that you do not need")
        for _ in range(times):
            yield cells


def _cells(row: Any) -> list[str]:
    cells: list[str] = []
    empty = 0
    for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
        times = _times(cell, "columns")
        if not (text := _paragraphs(cell)):
            empty += times
            continue
        if len(cells) + empty + times > MAX_CELLS:
            raise ExtractError("a row of it repeats a cell without an end: delete the columns that you do not need")
        cells += [""] * empty + [text] * times
        empty = 0
    return cells


def _times(element: Any, what: str) -> int:
    stated = element.get(f"{_TABLE}number-{what}-repeated", "1")
    return max(int(stated[:10]), 1) if stated.isdecimal() else 1


def _paragraphs(element: Any) -> str:
    return " ".join(filter(None, map(inline, _outermost(element))))


def _outermost(element: Any) -> Iterator[Any]:
    """The paragraphs below an element that stand in no other one, as those of a note do."""
    for child in element:
        if child.tag in (f"{_TEXT}p", f"{_TEXT}h"):
            yield child
        elif local(child) not in _SKIPPED:
            yield from _outermost(child)


def inline(element: Any) -> str:
    """The text of a paragraph, with its notes in brackets."""
    return "".join(_pieces(element)).strip()


def _pieces(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        match local(child):
            case "s":
                count = child.get(f"{_TEXT}c", "1")
                yield " " * min(int(count[:4]), _MAX_SPACES) if count.isdecimal() else " "
            case "tab":
                yield " "
            case "line-break":
                yield "\n"
            case "note":
                body = child.find(f"{_TEXT}note-body")
                yield f" ({_paragraphs(body)})" if body is not None else ""
            case "p" | "h":  # of a box of text
                yield from (" ", *_pieces(child), " ")
            case name:
                yield from _pieces(child) if name not in _SKIPPED else ()
        yield child.tail or ""
