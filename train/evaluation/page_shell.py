"""The frame of every HTML page: one file that loads nothing.

Style and script are the package's own files, set in line and allowed by their hashes alone; the data is plain JSON, or
deflated where it is large. No text from a trace becomes markup: here it is escaped, in the browser it is text content.
A trace is drawn by the view of `agent.trace.page`, in a frame of its own.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from agent.trace.page import around_data, in_script, source_hash, view_script, view_style

PLAIN_BYTES: Final = 200_000
"""Data up to here stays readable in the page's source."""


def page(title: str, body: str, *, scripts: Sequence[str], data: Mapping[str, Any]) -> str:
    """One self-contained page.

    Args:
        title: plain text.
        body: markup, with everything foreign escaped.
        scripts: names of the package's script files, in their order.
        data: what the scripts read.
    """
    style = _file("style.css")
    script = "(() => {\n" + "\n".join(_file(name) for name in scripts) + "})();\n"
    form, text = _embedded(data)
    whole = Template(_file("shell.html")).substitute(
        title=escape(title),
        style=style,
        style_hashes=_hashes(style, view_style()),
        script=script,
        script_hashes=_hashes(script, view_script()),
        body=body,
        form=form,
        data=text,
        view=_deflated(json.dumps(around_data(title="Trace"))),
    )
    return _encodable(whole)


def _file(name: str) -> str:
    return (files("train.evaluation") / "page" / name).read_text(encoding="utf-8")


def _hashes(*texts: str) -> str:
    return " ".join(f"'{source_hash(text)}'" for text in texts)


def _embedded(data: Mapping[str, Any]) -> tuple[str, str]:
    """(form, text) with nothing in it that could end the script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    raw = _encodable(text)
    if len(raw) <= PLAIN_BYTES:
        return "json", in_script(raw)
    return "deflate", _deflated(raw)


def _deflated(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _encodable(text: str) -> str:
    """Half a surrogate pair, as broken JSON escapes leave it, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def table(head: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """A table of plain text, in a box that scrolls by itself where it is too wide; `numbers` are columns of numbers."""
    right = set(numbers)

    def classes(place: int) -> str:
        return ' class="number"' if place in right else ""

    top = "".join(f'<th scope="col"{classes(place)}>{escape(text)}</th>' for place, text in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{classes(place)}>{escape(text)}</td>" for place, text in enumerate(line)) + "</tr>"
        for line in lines
    )
    return f'<div class="scroll"><table class="plain"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, *content: str, lead: str = "", id_: str = "", class_: str = "") -> str:
    heading = f"<h2>{escape(title)}</h2>" + (f'<p class="lead">{escape(lead)}</p>' if lead else "")
    names = "".join(f' {key}="{escape(value)}"' for key, value in (("id", id_), ("class", class_)) if value)
    return f"<section{names}>{heading}{''.join(content)}</section>"


def card(title: str, value: str, *below: str, first: bool = False) -> str:
    """One figure, large, with small lines below."""
    lines = "".join(f'<dd class="below">{escape(line)}</dd>' for line in below)
    return (
        f'<div class="card{" first" if first else ""}"><dt>{escape(title)}</dt>'
        f'<dd class="value">{escape(value)}</dd>{lines}</div>'
    )


def header(title: str, facts: Sequence[tuple[str, str]]) -> str:
    said = " · ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in facts if value)
    return (
        f'<header><h1>{escape(title)}</h1><button type="button" class="theme" id="theme" hidden>Dark</button>'
        f'<p class="facts">{said}</p></header>'
    )


def settings_list(settings: Mapping[str, str]) -> str:
    shown = "".join(
        f'<dt>{escape(name)}</dt><dd class="mono">{escape(value)}</dd>' for name, value in settings.items() if value
    )
    return f'<dl class="settings">{shown}</dl>'
