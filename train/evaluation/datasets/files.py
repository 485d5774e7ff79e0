"""Files of rows: JSON, JSON lines, comma- or tab-separated tables, Parquet; also compressed by gzip.

A file's content, not its name, decides its format.
"""

import ast
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import CorpusError
from agent.files.foreign import read_file
from agent.sources.questions import MOST_BYTES
from train.evaluation.datasets.base import Row

Numbered = tuple[str, Row]
"""The place of a row, in words, and the row."""

_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_LISTS: Final = ("Data", "data", "questions", "examples", "rows")
"""Under one of these a JSON object holds its rows."""
_LETTERS: Final = "ABCDEFGHIJ"
_CELL: Final = 1 << 24
"""Characters of one cell of a table."""


def read_rows(path: Path) -> Iterator[Numbered]:
    """The rows of a file.

    Raises:
        CorpusError: the file cannot be read, or holds no rows.
    """
    raw = _bytes(path)
    if raw.startswith(_PARQUET):
        yield from _parquet(path)
        return
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8 text; convert it, or unpack it if it is an archive") from error
    if not text.strip():
        raise CorpusError(f"{path} is empty")
    if text.lstrip()[0] in "[{":
        yield from _json(text, path)
    else:
        yield from _table(text, path)


def _bytes(path: Path) -> bytes:
    try:
        raw = read_file(path, most=MOST_BYTES)
        return _unpacked(raw) if raw.startswith(_GZIP) else raw
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"the questions {path} cannot be read: {getattr(error, 'strerror', '') or error}") from error


def _unpacked(raw: bytes) -> bytes:
    with gzip.open(io.BytesIO(raw)) as packed:
        content = packed.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise EOFError(f"it unpacks to more than {MOST_BYTES >> 20:,} MB")
    return content


def _json(text: str, path: Path) -> Iterator[Numbered]:
    first, _, rest = text.strip().partition("\n")
    if first.startswith("{") and _parses(first) and (rest or not _is_whole(first)):
        yield from _lines(text, path)
        return
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path} is not valid JSON: {error}; is the file complete?") from error
    for number, row in enumerate(_listed(value, path), start=1):
        yield f"{path}, question {number}", _row(row, f"{path}, question {number}")


def _parses(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _is_whole(line: str) -> bool:
    """Whether one line holds a whole set under a name, and is not the first of many rows."""
    value: object = json.loads(line)
    return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in _LISTS)


def _lines(text: str, path: Path) -> Iterator[Numbered]:
    for number, line in enumerate(text.split("\n"), start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{where}: not valid JSON ({error}); each line must be one object") from error
        yield where, _row(value, where)


def _listed(value: object, path: Path) -> list[Any]:
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        value = next((held[name] for name in _LISTS if isinstance(held.get(name), list)), [held])
    if not isinstance(value, list) or not value:
        raise CorpusError(f"{path} has no list of questions")
    return cast("list[Any]", value)


def _row(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise CorpusError(f"{where}: not a JSON object")
    return cast("Mapping[str, Any]", value)


def _table(text: str, path: Path) -> Iterator[Numbered]:
    """A table with a heading; of the two published without one (MMLU's, DPR's), the columns are known."""
    first = text.lstrip("\n").partition("\n")[0]
    before = csv.field_size_limit(_CELL)
    try:
        table = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ",")
        cells = [row for row in table if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise CorpusError(f"{path} is not a readable table: {error}") from error
    finally:
        csv.field_size_limit(before)
    heading = _implied(cells[0])
    for number, row in enumerate(cells if heading else cells[1:], start=1):
        yield f"{path}, row {number}", dict(zip(heading or cells[0], row, strict=False))


def _implied(first: list[str]) -> list[str] | None:
    """The columns of a table whose first row is no heading; None where it is one."""
    options = len(first) - 2
    if options >= 2 and first[-1].strip() in list(_LETTERS[:options]):
        return ["question", *_LETTERS[:options], "answer"]
    if len(first) == 2 and first[1].lstrip().startswith("["):
        return ["question", "answers"]
    return None


def _parquet(path: Path) -> Iterator[Numbered]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise CorpusError(f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow") from error
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    except (OSError, ValueError) as error:  # pyarrow's own are of these
        raise CorpusError(f"{path} is not a readable Parquet file: {error}") from error


def literal_list(text: str) -> list[str]:
    """The list that a cell of a table holds, written as JSON or as Python writes it; a text that is none, alone."""
    for parse in (json.loads, ast.literal_eval):
        try:
            value: object = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list | tuple):
            return [str(item) for item in cast("list[object]", value)]
    return [text] if text.strip() else []
