"""Ids that occur twice among the passages of a build: which records give way to an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.finding import SourceFile

Row = tuple[int, StoredPassage, SourceFile]
"""A passage by its number, and the file that it comes from."""


@dataclass
class Doubles:
    """What gives way."""

    rows: set[int] = field(default_factory=set[int])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Records of each file, by its name."""
    first: dict[str, str] = field(default_factory=dict[str, str])
    """The id of the first of them."""


def find_doubles(rows: Callable[[], Iterable[Row]], twice: Sequence[bool]) -> Doubles:
    """Which records give way to an earlier one of the same id, or to a passage of a file that is no JSON lines.

    Args:
        rows: gives all passages, in their order; is read twice.
        twice: of each row, whether its id may occur twice.
    """
    owned = {document.id for row, document, file in rows() if twice[row] and file.kind != "lines"}
    found = Doubles()
    for record in _records(row for row in rows() if row[2].kind == "lines"):
        ids = [document.id for row, document, _ in record if twice[row]]
        if owned.isdisjoint(ids):
            owned.update(ids)
            continue
        _, first, file = record[0]
        found.rows.update(row for row, _, _ in record)
        found.counts[file.name] = found.counts.get(file.name, 0) + 1
        found.first.setdefault(file.name, first.document)
    return found


def _records(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The passages of one record lie together, in the order of its text."""
    record: list[Row] = []
    for row in rows:
        if record and not _goes_on(record[-1], row):
            yield record
            record = []
        record.append(row)
    if record:
        yield record


def _goes_on(last: Row, row: Row) -> bool:
    return (last[2].name, last[1].document) == (row[2].name, row[1].document) and row[1].start > last[1].start
