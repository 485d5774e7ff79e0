"""A trace as one HTML file that needs no server: the web page's read-only view, with the trace as JSON beside it.

The view is built from web/ into the folder `view`. Its style and script are allowed by their hashes alone, so nothing
loads from elsewhere; no text from a trace becomes markup or script: it is JSON here, and text content in the browser.
"""

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from agent.files.foreign import MIB, read_file
from agent.sanitize.text import whole, whole_value
from agent.trace.trace import Trace

_VIEW: Final = Path(__file__).parent / "view"
_IN_SCRIPT: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def trace_page(trace: Trace) -> str:
    """The page of one trace. Without JavaScript it shows the question and the answer."""
    kept = trace.model_dump(exclude={"segments": {"__all__": {"logprobs"}}})
    data = to_json(whole_value({"trace": kept}), inf_nan_mode="null").decode()
    body = f"<main><h1>{escape(trace.question)}</h1><p>{escape(trace.answer or '')}</p></main>"
    before, after = around_data(title=whole(trace.question[:120]), body=whole(body))
    return before + in_script(data) + after


def around_data(*, title: str, body: str = "") -> tuple[str, str]:
    """The parts of the page before and after its data.

    The data is JSON that went through `in_script`: an object with `trace`, and perhaps `gold`: passages to mark, each
    as its source, a line break and its id.

    Args:
        title: plain text.
        body: markup that stands there until the view is drawn, with everything foreign escaped.
    """
    style, script = view_style(), view_script()
    policy = f"default-src 'none'; style-src '{source_hash(style)}'; script-src '{source_hash(script)}'; img-src data:"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}; base-uri \'none\'; '
        'form-action \'none\'"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    before = (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n<div id="app">{body}</div>\n'
        '<script type="application/json" id="data">'
    )
    return before, f"</script>\n<script>{script}</script>\n</body></html>\n"


def in_script(json_text: str) -> str:
    """JSON that says the same, with nothing in it that could end a script element."""
    return json_text.translate(_IN_SCRIPT)


def source_hash(text: str) -> str:
    """As a content security policy names a style or script inside the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def view_style() -> str:
    return _file("view.css")


@cache
def view_script() -> str:
    return _file("view.js")


def _file(name: str) -> str:
    return read_file(_VIEW / name, most=MIB).decode()
