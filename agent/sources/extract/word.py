"""Word documents (.docx) and rich text (.rtf) as Markdown."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

import mammoth  # pyright: ignore[reportMissingTypeStubs]
from striprtf.striprtf import rtf_to_text  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from agent.sources.extract.charts import chart_table
from agent.sources.extract.markdown import Markdown
from agent.sources.extract.markup import parse_html, write_html
from agent.sources.extract.package import Package, first_day, reading, real_title
from agent.sources.extract.text import Extracted, ExtractError, one_line
from agent.sources.extract.trees import etree

MAX_ELEMENTS: Final = 1_000_000
"""Of one part of a Word document: a thousand pages, for which mammoth needs a minute."""

_TITLE: Final = "title"
_STYLES: Final = "\n".join(
    [
        f"p[style-name='Title'] => p.{_TITLE}:fresh",
        *(f"p[style-name='toc {level}'] => !" for level in range(1, 10)),
        *(f"p[style-name='{name} {level}'] => h6:fresh" for name in ("heading", "Heading") for level in (7, 8, 9)),
    ]
)
"""Beside those that mammoth knows: the table of contents says nothing that its chapters do not say."""

_AROUND: Final = re.compile(rb"(</?w:)(?:fldSimple|bdo|dir|ruby|rubyBase)(?=[\s/>])")
"""Elements around text that mammoth leaves out with all that is in them; `smartTag` it reads."""

_DRAWING, _DRAWING_ENDS = b"<w:drawing", b"</w:drawing>"
_CHART: Final = re.compile(rb"""<c:chart\s[^>]*?\br:id\s*=\s*["'](\w{1,60})["']""")
_CHART_MARK: Final = re.compile("\ufdd8(\\w{1,60})\ufdd9")
"""In the place of a chart, until its table is: no text has these characters."""

_BINARY: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\bin(\d{1,9}) ?")
_CODE_PAGE: Final = re.compile(rb"\\ansicpg(\d{3,5})")
_OUTLINE: Final = re.compile(r"\\outlinelevel([0-5])(?!\d) ?")
_LEVELS: Final = 0xFDD0
"""No text has these six characters: they mark where a heading was."""
_RTF_TITLE: Final = re.compile(r"\{\\title ([^{}]{1,2000})\}")
_RTF_DAY: Final = re.compile(r"\{\\(revtim|creatim)\\yr(\d{4})\\mo(\d\d?)\\dy(\d\d?)")
_BULLET: Final = re.compile(r"[•·▪◦‣\uf0b7][\t ]+")


def docx_text(raw: bytes) -> Extracted:
    """A Word document: headings, lists, tables, charts and notes; no pictures or comments, nothing that was deleted.

    Raises:
        ExtractError: it cannot be read or holds no text.
    """
    with reading(".docx"):
        package = Package(raw, ".docx")
        title, date = package.properties()
        found = mammoth.convert_to_html(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            package.repacked(partial(_edited, main=package.main)),
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=_no_picture,
        )
        root = parse_html(f"<body>{cast(str, cast(Any, found).value)}</body>")
        out = Markdown()
        if root is not None:
            title = title or next(
                (one_line("".join(p.itertext())) for p in root.iterfind(f".//p[@class='{_TITLE}']")), ""
            )
            _put_notes_where_they_are_cited(root)
            _put_charts_where_they_are_drawn(root, package)
            write_html(root, out)
    return out.extracted(title=title, date=date)


def _put_notes_where_they_are_cited(root: Any) -> None:
    """In brackets, each once; mammoth lists them at the end, with arrows back."""
    notes = {
        note.get("id"): note for note in root.iter("li") if note.get("id", "").startswith(("footnote-", "endnote-"))
    }
    for link in list(root.iter("a")):
        if link.get("id") and (note := notes.pop(link.get("href", "")[1:], None)) is not None:
            link.text = f" ({one_line(''.join(note.itertext())).removesuffix(' ↑')})"
            note.getparent().remove(note)


def _put_charts_where_they_are_drawn(root: Any, package: Package) -> None:
    """As tables behind the paragraphs that hold them, each once; at the end where that is not in the body itself."""
    body = root if root.tag == "body" else root.find(".//body")
    related = package.relations(package.main)
    for block in list(body):
        for element in list(block.iter()):
            for id in _CHART_MARK.findall(f"{element.text or ''} {element.tail or ''}"):
                if (name := related.pop(id, "")) in package:
                    title, rows = chart_table(package.xml(name))
                    (block.addnext if block.tag == "p" else body.append)(_table(title, rows))
            element.text = _CHART_MARK.sub("", element.text or "")
            element.tail = _CHART_MARK.sub("", element.tail or "")


def _table(title: str, rows: Sequence[Sequence[str]]) -> Any:
    block = etree.Element("div")
    etree.SubElement(block, "p").text = title
    table = etree.SubElement(block, "table")
    for row in rows:
        line = etree.SubElement(table, "tr")
        for cell in row:
            etree.SubElement(line, "td").text = cell
    return block


def _charts_marked(part: bytes) -> bytes:
    """Charts in the place of drawings, which mammoth leaves out."""
    first, *others = part.split(_DRAWING)
    kept = [first]
    for other in others:
        drawing, ends, rest = other.partition(_DRAWING_ENDS)
        found = _CHART.search(drawing) if ends else None
        kept += [b"<w:t>\xef\xb7\x98%b\xef\xb7\x99</w:t>" % found[1], rest] if found else [_DRAWING, other]
    return b"".join(kept)


def _edited(name: str, part: bytes, *, main: str) -> bytes:
    if part.count(b"<") > 2 * MAX_ELEMENTS:
        raise ExtractError(f"it has more than {MAX_ELEMENTS // 1_000_000} million elements: save it in smaller parts")
    return _AROUND.sub(rb"\1smartTag", _charts_marked(part) if name == main else part)


def _no_picture(_: object) -> list[object]:
    return []


def rtf_text(raw: bytes) -> Extracted:
    """Rich text: paragraphs, headings, tables and lists; no objects and no pictures.

    Raises:
        ExtractError: it is no rich text, or holds none.
    """
    if not (begin := raw.lstrip(b"\xef\xbb\xbf \t\r\n")):
        raise ExtractError("it is empty")
    if not begin.startswith(b"{\\rtf"):
        raise ExtractError("it is no .rtf file: open it in the program that made it, and save it as .rtf")
    with reading(".rtf"):
        source, encoding = _source(raw)
        title = _RTF_TITLE.search(source)
        days = {kind: f"{year}-{int(month):02}-{int(day):02}" for kind, year, month, day in _RTF_DAY.findall(source)}
        marked = _OUTLINE.sub(lambda level: f"{level[0].rstrip()} {chr(_LEVELS + int(level[1]))}", source)
        out = Markdown()
        _write_lines(_plain(marked, encoding), out)
        named = real_title(_plain(f"{{\\rtf1 {title[1]}}}", encoding)) if title else ""
    return out.extracted(title=named, date=first_day(days.get("revtim"), days.get("creatim")))


def _source(raw: bytes) -> tuple[str, str]:
    """Its text without binary data, which could look like text, and the charset of its escapes."""
    parts: list[bytes] = []
    at = 0
    while found := _BINARY.search(raw, at):
        parts.append(raw[at : found.end(1)])
        at = found.end() + int(found[2])
    parts.append(raw[at:])
    page = _CODE_PAGE.search(raw)
    encoding = f"cp{int(page[1])}" if page else "cp1252"
    try:
        return b"".join(parts).decode(encoding, "replace"), encoding
    except LookupError:
        return b"".join(parts).decode("cp1252", "replace"), "cp1252"


def _plain(source: str, encoding: str) -> str:
    text = cast(str, rtf_to_text(source, encoding=encoding, errors="replace"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs are two escapes


def _write_lines(text: str, out: Markdown) -> None:
    rows: list[list[str]] = []
    for line in text.split("\n"):
        if line.rstrip().endswith("|"):
            rows.append(line.rstrip()[:-1].split("|"))
            continue
        if rows:
            out.table(rows)
            rows = []
        levels = [ord(char) - _LEVELS for char in line if 0 <= ord(char) - _LEVELS <= 5]
        bare = "".join(char for char in line if not 0 <= ord(char) - _LEVELS <= 5) if levels else line
        if levels:
            out.heading(levels[0] + 1, bare)
        elif bullet := _BULLET.match(bare):
            out.item(0, bare[bullet.end() :])
        else:
            out.paragraph(bare)
    out.table(rows)
