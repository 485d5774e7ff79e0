"""A report as Markdown. Whatever is in a sentence is shown, and means nothing."""

import re
from typing import Final

from agent.report.export.blocks import Block, Cite, Heading, Link, ListItem, Span, Text, blocks_of
from agent.report.report import Report

_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>#|~!&]")
_BEGINS: Final = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def as_markdown(report: Report) -> str:
    """The report, one paragraph a line."""
    lines: list[str] = []
    listed = False
    for block in blocks_of(report):
        item = isinstance(block, ListItem)
        lines += [] if item and listed else [""]
        lines.append(_block(block))
        listed = item
    return "\n".join([*lines[1:], ""])


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {_escaped(block.text)}"
        case ListItem() if block.number:
            return f"- \\[{block.number}\\] {_spans(block.spans)}"
        case ListItem():
            return f"- {_begun(block.spans)}"
        case _:
            return _begun(block.spans)


def _begun(spans: tuple[Span, ...]) -> str:
    """Spans at the beginning of a line, which begin no list."""
    return _BEGINS.sub(r"\1\\", _spans(spans))


def _spans(spans: tuple[Span, ...]) -> str:
    return "".join(map(_span, spans)).strip()


def _span(span: Span) -> str:
    match span:
        case Text():
            said = _escaped(span.text)
            return f"*{said.strip()}*" if span.em and said.strip() else said
        case Cite():
            return f"\\[{span.number}\\]"
        case Link():
            return f"<{re.sub(r'[<>]', '', span.url)}>"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", text)
