"""A report as DOCX, with python-docx: headings, numbered sources, and their addresses as links."""

import io
from typing import Any, Final, cast

from agent.report.export.blocks import Block, Cite, Heading, Link, ListItem, Span, Text, blocks_of, clean
from agent.report.report import Report

_BLUE: Final = "0B57D0"


def as_docx(report: Report) -> bytes:
    """The file. No macro, no picture, nothing that is loaded."""
    from docx import Document

    document: Any = Document()
    properties = document.core_properties
    properties.title, properties.author = clean(report.title)[:250], "Cairn"
    properties.created = properties.modified = report.created.replace(tzinfo=None)
    for block in blocks_of(report):
        _add(document, block)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add(document: Any, block: Block) -> None:
    if isinstance(block, Heading):
        document.add_heading(block.text, level=0 if block.level == 1 else block.level - 1)
        return
    listed = isinstance(block, ListItem)
    style = "List Bullet" if listed and not block.number else None
    paragraph = document.add_paragraph(style=style)
    if listed and block.number:
        paragraph.add_run(f"[{block.number}] ")
    for span in block.spans:
        _span(paragraph, span)


def _span(paragraph: Any, span: Span) -> None:
    match span:
        case Text():
            run = paragraph.add_run(span.text)
            run.italic = True if span.em else None
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
