"""Writes Markdown block by block: headings, paragraphs, lists, tables, and where pages begin."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agent.sources.extract.text import MAX_CHARS, Extracted, ExtractError, clean, one_line

TABLE_CHARS: Final = 900
"""A longer table is written as several, each with the header: a passage holds one (`corpus.split`)."""
MAX_CELLS: Final = 5_000_000
"""Of all tables of one file."""

_APART: Final = "\n\n"
_SEPARATOR: Final = re.compile("[\u2028\u2029]")
_MARK: Final = re.compile(r"^(?= {0,3}(?:#{1,6}(?:[ \t]|$)|`{3}|~{3}))", re.MULTILINE)


class Markdown:
    """One text on its way."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._cells = 0
        self._pages: list[int] = []
        self._in_list = False
        self._headings_alone = True

    def heading(self, level: int, text: str) -> None:
        """A heading of level 1 to 6."""
        if line := one_line(text):
            alone = self._headings_alone
            self._add(f"{'#' * min(max(level, 1), 6)} {line}")
            self._headings_alone = alone

    def paragraph(self, text: str) -> None:
        """Text that is no heading, also where it looks like one."""
        if text := clean(_SEPARATOR.sub("\n", text)):
            self._add(_MARK.sub(r"\\", text))

    def item(self, depth: int, text: str, mark: str = "-") -> None:
        """One entry of a list; depth: 0 for the outermost."""
        if line := one_line(text):
            self._add(f"{'  ' * min(depth, 10)}{mark} {line}", in_list=True)

    def page(self) -> None:
        """Begin a page."""
        self._pages.append(self._length + (len(_APART) if self._parts else 0))

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Rows of cells. The first one that has several is the header.

        Raises:
            ExtractError: there are too many cells.
        """
        every = [row for row in map(self._row, rows) if any(row)]
        first = next((at for at, row in enumerate(every) if len(row) > 1), len(every))
        for row in every[:first]:
            self.paragraph(row[0])
        if not (kept := every[first:]):
            return
        width = max(map(len, kept))
        head, *body = ([*row, *[""] * (width - len(row))] for row in kept)
        lines = [_line(row) for row in body]
        top = [_line(head), _line(["---"] * len(head))]
        if sum(map(len, top)) + max(map(len, lines), default=0) > TABLE_CHARS:
            self._records(head, body)
            return
        block, length = top, 0
        for line in lines:
            if length + len(line) + 1 > TABLE_CHARS - sum(map(len, top)) - len(top):
                self._add("\n".join(block))
                block, length = top, 0
            block = [*block, line]
            length += len(line) + 1
        self._add("\n".join(block))

    def _row(self, row: Sequence[str]) -> list[str]:
        cells = [one_line(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        self._cells += len(cells)
        if self._cells > MAX_CELLS:
            raise ExtractError(
                f"its tables have more than {MAX_CELLS // 1_000_000} million cells: save what you need of it by itself"
            )
        return cells

    def _records(self, head: Sequence[str], body: Sequence[Sequence[str]]) -> None:
        """A table whose rows are long: each one with the names of its columns."""
        if not body:
            self.paragraph("; ".join(filter(None, head)))
        for row in body:
            named = zip(head, row, strict=True)
            self.item(0, "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell))

    def _add(self, text: str, *, in_list: bool = False) -> None:
        begins_page = bool(self._pages) and self._pages[-1] > self._length
        apart = "\n" if in_list and self._in_list and not begins_page else _APART if self._parts else ""
        self._parts += [apart, text]
        self._length += len(apart) + len(text)
        self._in_list, self._headings_alone = in_list, False
        if self._length > MAX_CHARS:
            raise ExtractError(
                f"it unpacks to more than {MAX_CHARS >> 20} million characters: save it in smaller parts"
            )

    def extracted(self, *, title: str = "", date: str = "") -> Extracted:
        """All of it.

        Raises:
            ExtractError: there are headings alone, or nothing.
        """
        if self._headings_alone:
            raise ExtractError("it holds no text: if it shows pictures of text, recognise that text first")
        return Extracted("".join(self._parts), title=title, date=date, pages=tuple(self._pages))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
