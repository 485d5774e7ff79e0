"""Workbooks (.xlsx) and tables in text (.csv, .tsv) as Markdown. No formula is computed: its last value is read."""

import csv
import io
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Final

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from agent.sources.extract.document import plain_text
from agent.sources.extract.markdown import Markdown
from agent.sources.extract.package import Package, reading
from agent.sources.extract.text import Extracted, ExtractError

MAX_AREA: Final = 20_000_000
"""Cells of a sheet from its first to its last, empty ones included: the library holds them all."""
MAX_COLUMNS: Final = 16_384
FIELD_CHARS: Final = 1 << 20
MAX_TEXT: Final = 256 << 20
"""Bytes of a sheet's text, each use of a string counted."""
_MAIN: Final = "xl/workbook.xml"
"""The name by which the library knows a workbook."""
_STRINGS: Final = "xl/sharedStrings.xml"
_STRING: Final = re.compile(rb"<(?:\w+:)?si(?=[\s/>])")
_SHARED: Final = re.compile(rb"""\bt\s*=\s*["']s["'][^>]*>\s*<(?:\w+:)?v>(\d{1,9})<""")
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml")
_PLACE: Final = re.compile(rb"""\br\s*=\s*["']([A-Z]{1,3})(\d{1,9})["']""")
_ROW: Final = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL: Final = re.compile(rb"<(?:\w+:)?c[\s/>]")
_MOST_EXACT: Final = 2**53
"""Up to here a whole number is kept to the last digit; of others 15 digits are, as Excel shows them."""
_SAMPLE_CHARS: Final = 1 << 16

Value = int | float | str | bool | time | date | datetime | timedelta


def xlsx_text(raw: bytes) -> Extracted:
    """A workbook: a heading for each sheet that can be seen, and its rows.

    Raises:
        ExtractError: it cannot be read, is too large or holds no text.
    """
    out = Markdown()
    with reading(".xlsx"):
        package = Package(raw, ".xlsx")
        title, day = package.properties()
        try:
            parts: dict[str, bytes] = {}
            again = package.repacked(lambda name, part: parts.setdefault(name, part), main=_MAIN)
            _check_sheets(parts)
            _write_sheets(CalamineWorkbook.from_filelike(again), out)
        except CalamineError as error:
            raise ValueError(str(error)) from error
    return out.extracted(title=title, date=day)


def _write_sheets(book: CalamineWorkbook, out: Markdown) -> None:
    for sheet in book.sheets_metadata:
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible:
            rows = book.get_sheet_by_name(sheet.name).iter_rows()
            out.heading(1, sheet.name)
            out.table([_shown(value) for value in row] for row in rows)


def _check_sheets(parts: Mapping[str, bytes]) -> None:
    """Refuse what would fill all memory: the library holds each cell of a sheet, and its text.

    Raises:
        ExtractError: a sheet spans too much, or repeats too much text.
    """
    lengths = [len(text) for text in _STRING.split(parts.get(_STRINGS, b""))[1:]]
    longest = max(lengths, default=0)
    for name, part in parts.items():
        if _SHEET.fullmatch(name):
            _check_area(part)
            if longest * part.count(b"v>") > MAX_TEXT:
                used = (int(found[1]) for found in _SHARED.finditer(part))
                if sum(lengths[number] for number in used if number < len(lengths)) > MAX_TEXT:
                    raise ExtractError(
                        f"a sheet of it has more than {MAX_TEXT >> 20} MB of text: save it in smaller parts"
                    )


def _check_area(sheet: bytes) -> None:
    rows = placed = 0
    columns = set[bytes]()
    for found in _PLACE.finditer(sheet):
        columns.add(found[1])
        rows = max(rows, int(found[2]))
        placed += 1
    cells = sum(1 for _ in _CELL.finditer(sheet))
    rows = max(rows, sum(1 for _ in _ROW.finditer(sheet)))
    width = max(map(_number, columns), default=min(cells - placed, MAX_COLUMNS))
    if width * rows > MAX_AREA:
        raise ExtractError(
            f"a sheet of it claims {rows:,} rows and {width:,} columns, with few cells between: "
            "delete the cells that are far out, or save what you need as .csv"
        )


def _number(column: bytes) -> int:
    number = 0
    for letter in column:
        number = number * 26 + letter - ord("A") + 1
    return number


def _shown(value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer() and abs(value) <= _MOST_EXACT:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime():
            return value.isoformat(" ").removesuffix(" 00:00:00")
        case _:
            return str(value)


def csv_text(raw: bytes) -> Extracted:
    """A table in text, whichever of comma, semicolon, tab and bar its columns are apart by.

    Raises:
        ExtractError: it is no text, or no table.
    """
    text = plain_text(raw)
    lines = [line for line in text[:_SAMPLE_CHARS].splitlines()[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in ",;\t|"}
    return _table(text, max(counts, key=lambda mark: (min(counts[mark], default=0), sum(counts[mark]))))


def tsv_text(raw: bytes) -> Extracted:
    """A table in text whose columns are apart by tabs.

    Raises:
        ExtractError: it is no text, or no table.
    """
    return _table(plain_text(raw), "\t")


def _table(text: str, delimiter: str) -> Extracted:
    out = Markdown()
    csv.field_size_limit(FIELD_CHARS)
    try:
        out.table(csv.reader(io.StringIO(text.replace("\0", ""), newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise ExtractError(f"it is no table of text ({error}): name it .txt, or save it as .csv again") from error
    return out.extracted()
