"""A report as one HTML file. It runs and loads nothing: all text is escaped, and a policy forbids both."""

from html import escape
from typing import Final

from agent.report.export.blocks import Block, Cite, Heading, Link, ListItem, Span, Text, TextBlock, blocks_of
from agent.report.report import Report
from agent.trace.page import source_hash

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1.05rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
h1, h2 { line-height: 1.25; }
h2 { margin-top: 2rem; }
em { opacity: .75; font-style: normal; font-size: .95rem; }
sup { line-height: 0; }
.sources { padding-left: 0; list-style: none; }
"""


def as_html(report: Report) -> str:
    """The whole file."""
    body: list[str] = []
    opened = ""
    for block in blocks_of(report):
        wanted = ("ol" if block.number else "ul") if isinstance(block, ListItem) else ""
        if wanted != opened:
            body += [f"</{opened}>"] if opened else []
            body += [f'<{wanted} class="sources">' if wanted == "ol" else f"<{wanted}>"] if wanted else []
            opened = wanted
        body.append(_block(block))
    policy = (
        f"default-src 'none'; style-src '{source_hash(_STYLE)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body></html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f'<h{block.level} dir="auto">{escape(block.text)}</h{block.level}>'
        case ListItem() if block.number:
            return f'<li id="source-{block.number}" dir="auto">[{block.number}] {_spans(block.spans)}</li>'
        case ListItem():
            return f'<li dir="auto">{_spans(block.spans)}</li>'
        case TextBlock():
            return f'<p dir="auto">{_spans(block.spans)}</p>'


def _spans(spans: tuple[Span, ...]) -> str:
    return "".join(map(_span, spans))


def _span(span: Span) -> str:
    match span:
        case Text():
            return f"<em>{escape(span.text)}</em>" if span.em else escape(span.text)
        case Cite():
            return f'<sup><a href="#source-{span.number}">[{span.number}]</a></sup>'
        case Link():
            url = escape(span.url)
            return f'<a href="{url}" rel="noopener noreferrer nofollow">{url}</a>'
