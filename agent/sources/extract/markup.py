"""HTML as Markdown, all of it: chapters of a book, a message, a text document. Nothing in it runs or is loaded.

Pages of the web have menus, and another reader (`agent.sources.extract.document.html_text`).
"""

import html
import re
from collections.abc import Callable
from typing import Any, Final

from agent.sources.extract.document import all_of_page
from agent.sources.extract.markdown import Markdown
from agent.sources.extract.text import clean
from agent.sources.extract.trees import etree, local

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BLOCKS: Final = frozenset(
    "address article blockquote body caption center dd details div dl dt fieldset figcaption figure footer form "
    "header hr html li main nav ol p pre section summary table td th tr ul".split()
) | frozenset(_HEADINGS)
_DROPPED: Final = tuple(
    "applet audio button canvas embed head iframe map noframes noscript object script select style svg template "
    "textarea title video".split()
)
_BREAK: Final = "\v"
_LABEL_CHARS: Final = 100
"""A longer text that reaches over several rows is said once."""
_SPACES: Final = re.compile(r"[ \t\n\r\f\xa0]+")
_NAMED: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z][A-Za-z0-9]{1,30};")
_DOCTYPE: Final = re.compile(r"<!DOCTYPE[^\[>]*>", re.IGNORECASE)
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")


def parse_html(page: str, *, xml: bool = False) -> Any:
    """The root of a page; None where there is nothing.

    Args:
        page: as it is written, with or without a head.
        xml: try the rules of XML first, as for the chapters of a book.
    """
    page = _DECLARATION.sub("", clean(page))
    root = None
    if xml and "<!ENTITY" not in page and (bare := _DOCTYPE.sub("", page, count=1)):
        root = _parsed(_NAMED.sub(lambda name: html.unescape(name[0]), bare), xml=True)
    if root is None:
        root = _parsed(page, xml=False)
    return root


def _flat(page: str) -> Any:
    """A page that is nested deeper than the parser goes, as paragraphs."""
    root = etree.Element("body")
    for line in filter(None, map(str.strip, all_of_page(page).split("\n"))):
        etree.SubElement(root, "p").text = line
    return root


def _parsed(page: str, *, xml: bool) -> Any:
    """By the rules of XML, which are those of books, or by those of the web."""
    if xml:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    else:
        parser = etree.HTMLParser(
            no_network=True, remove_comments=True, remove_pis=True, encoding="utf-8", huge_tree=True
        )
    try:
        root = etree.fromstring(page.encode("utf-8", "replace"), parser)
    except (SyntaxError, ValueError):
        return None
    cut_off = any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log)
    return _flat(page) if cut_off else root


def title_of(root: Any) -> str:
    """What a page calls itself."""
    return next(("".join(each.itertext()) for each in root.iter("{*}title")), "")


def write_html(root: Any, out: Markdown) -> None:
    """Write all text of a page."""
    etree.strip_elements(root, *(f"{{*}}{name}" for name in _DROPPED), with_tail=False)
    _Walk(out).over(root)


class _Walk:
    """Goes over a tree without recursion, however deep it is."""

    def __init__(self, out: Markdown) -> None:
        self._out = out
        self._text: list[str] = []
        self._heading = 0
        self._lists: list[int | None] = []
        """Of each list around: its last number, None where it has marks."""
        self._mark = ""
        self._kept = 0
        """Elements around whose line ends count."""
        self._rows: list[list[str]] | None = None
        self._span = self._height = 1
        self._down: dict[int, tuple[int, str]] = {}
        """Of each column that a cell of a row above reaches into: rows that it still has, and its text."""
        self._open: dict[str, Callable[[Any], None]] = {"table": self._table, "tr": self._row, "li": self._entry}
        self._open |= {
            "ul": self._list,
            "ol": self._list,
            "pre": self._pre,
            "td": self._begin_cell,
            "th": self._begin_cell,
        }

    def over(self, root: Any) -> None:
        for event, element in etree.iterwalk(root, events=("start", "end")):
            name = local(element).lower()
            if event == "start":
                self._start(name, element)
                self._say(element.text)
            else:
                self._end(name)
                if element is not root:
                    self._say(element.tail)
        self._flush()

    def _say(self, text: str | None) -> None:
        if text:
            self._text.append(text.replace("\n", _BREAK) if self._kept else text)

    def _start(self, name: str, element: Any) -> None:
        if name == "br":
            self._text.append(_BREAK)
        if name not in _BLOCKS:
            return
        self._flush()
        self._heading = _HEADINGS.get(name, self._heading)
        if begin := self._open.get(name):
            begin(element)

    def _end(self, name: str) -> None:
        if name not in _BLOCKS:
            return
        if self._rows is not None and name in ("td", "th"):
            self._cell()
            return
        if name == "tr":
            self._reach_down(ends=True)
        self._flush()
        if name in _HEADINGS:
            self._heading = 0
        elif name in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif name == "li":
            self._mark = ""
        elif name == "pre":
            self._kept -= 1
        elif name == "table" and self._rows is not None:
            rows, self._rows = self._rows, None
            self._out.table(rows)

    def _table(self, element: Any) -> None:
        """One that holds others, or has one column, is there for the look of the page alone."""
        if self._rows is None and element.find(".//{*}table") is None:
            cells = (len(row.findall("{*}td")) + len(row.findall("{*}th")) for row in element.iter("{*}tr"))
            self._rows = [] if any(count > 1 for count in cells) else None
            self._down.clear()

    def _row(self, _: Any) -> None:
        if self._rows is not None:
            self._rows.append([])

    def _begin_cell(self, element: Any) -> None:
        self._span, self._height = (
            int(span) if re.fullmatch(r"[1-9]\d?", span := element.get(name, "")) else 1
            for name in ("colspan", "rowspan")
        )

    def _cell(self) -> None:
        if not self._rows:
            return
        self._reach_down()
        row, cells = self._rows[-1], [self._said().replace("\n", " "), *[""] * (self._span - 1)]
        if self._height > 1:
            texts = (cell if len(cell) <= _LABEL_CHARS else "" for cell in cells)
            self._down |= {len(row) + n: (self._height - 1, text) for n, text in enumerate(texts)}
        row += cells

    def _reach_down(self, *, ends: bool = False) -> None:
        """Say again in this row what stands there from a row above, so that each row is whole by itself."""
        row = self._rows[-1] if self._rows else []
        last = max(self._down, default=-1) if ends else -1
        while len(row) in self._down or len(row) < last:
            rows, text = self._down.pop(len(row), (1, ""))
            if rows > 1:
                self._down[len(row)] = (rows - 1, text)
            row.append(text)

    def _list(self, element: Any) -> None:
        self._lists.append(0 if local(element).lower() == "ol" else None)

    def _entry(self, _: Any) -> None:
        self._mark = "-"
        if self._lists and (number := self._lists[-1]) is not None:
            self._lists[-1] = number + 1
            self._mark = f"{number + 1}."

    def _pre(self, _: Any) -> None:
        self._kept += 1

    def _said(self) -> str:
        text = _SPACES.sub(" ", "".join(self._text))
        self._text.clear()
        return "\n".join(line.strip() for line in text.split(_BREAK)).strip()

    def _flush(self) -> None:
        if self._rows:
            if self._text:
                self._text.append(" ")
            return
        if not (text := self._said()):
            return
        if self._heading:
            self._out.heading(self._heading, text)
        elif self._mark:
            self._out.item(max(len(self._lists) - 1, 0), text, self._mark)
            self._mark = ""
        else:
            self._out.paragraph(text)
