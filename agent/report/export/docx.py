"""A report as DOCX, with python-docx: headings, numbered sources, and their addresses as links."""

import io
import unicodedata
from collections.abc import Iterable
from typing import Any, Final, cast

from agent.report.export.blocks import Block, Cite, Heading, Link, ListItem, Span, Text, blocks_of
from agent.report.report import Report
from agent.sanitize.text import shown_line

_BLUE: Final = "0B57D0"
_DIRECTIONS: Final = {"L": "L", "R": "R", "AL": "R"}
"""Of the letters that have one, as Unicode says it."""


def as_docx(report: Report) -> bytes:
    """The file. No macro, no picture, nothing that is loaded."""
    from docx import Document

    document: Any = Document()
    properties = document.core_properties
    properties.title, properties.author = shown_line(report.title)[:250], "Cairn"
    properties.created = properties.modified = report.created.replace(tzinfo=None)
    for block in blocks_of(report):
        _add(document, block)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add(document: Any, block: Block) -> None:
    if isinstance(block, Heading):
        heading = document.add_heading(level=0 if block.level == 1 else block.level - 1)
        _span(heading, Text(block.text))
        _turn(heading, [block.text])
        return
    listed = isinstance(block, ListItem)
    style = "List Bullet" if listed and not block.number else None
    paragraph = document.add_paragraph(style=style)
    if listed and block.number:
        paragraph.add_run(f"[{block.number}] ")
    for span in block.spans:
        _span(paragraph, span)
    _turn(paragraph, [span.text for span in block.spans if isinstance(span, Text)])


def _turn(paragraph: Any, texts: Iterable[str]) -> None:
    """Have a paragraph go from right to left, where its first letter does."""
    from docx import oxml

    if next((found for found in map(_direction, texts) if found), "") == "R":
        paragraph._p.get_or_add_pPr().append(cast(Any, oxml).OxmlElement("w:bidi"))


def _direction(text: str) -> str:
    """L or R, after the first letter that has one; empty where none has."""
    return next((_DIRECTIONS[kind] for kind in map(unicodedata.bidirectional, text) if kind in _DIRECTIONS), "")


def _span(paragraph: Any, span: Span) -> None:
    match span:
        case Text():
            run = paragraph.add_run(span.text)
            run.italic = True if span.em else None
            run.font.rtl = True if _direction(span.text) == "R" else None
        case Cite():
            run = paragraph.add_run(f"[{span.number}]")
            run.font.superscript = True
        case Link():
            _link(paragraph, span.url)


def _link(paragraph: Any, url: str) -> None:
    """An external link: python-docx reads them, and has no call that writes one."""
    from docx import oxml
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml.ns import qn

    link, name = cast(Any, oxml).OxmlElement("w:hyperlink"), cast(Any, qn)("r:id")
    link.set(name, paragraph.part.relate_to(url, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    run = paragraph.add_run(url)
    run.font.underline = True
    run.font.color.rgb = _colour()
    link.append(run._r)
    paragraph._p.append(link)


def _colour() -> Any:
    from docx.shared import RGBColor

    return RGBColor.from_string(_BLUE)
