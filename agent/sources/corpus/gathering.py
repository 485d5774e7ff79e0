"""Gathers the passages of an index: from the files, or from an older index where a file did not change.

A file did not change if its size and time are the same; where that leaves a doubt, its hash is compared.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time_ns
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.errors import CorpusError
from agent.sources.corpus.documents import (
    PARSED,
    Document,
    Found,
    Reader,
    Record,
    Skipped,
    SourceFile,
    numbered_lines,
    read_file,
)
from agent.sources.corpus.extract import ExtractError
from agent.sources.corpus.folder import FILES, OFFSETS, RECORDS, Card, Entry, read_card, read_entries
from agent.sources.corpus.read_ahead import ReadAhead
from agent.sources.corpus.records import Records

_DOUBT_NS: Final = 2_000_000_000
"""A file that was changed this shortly before it was read may have been changed again without another time."""
_SHOWN: Final = 3
"""Reasons in one sentence."""

Write = Callable[[bytes], object]


class Older:
    """The index that is there: its passages by file."""

    def __init__(self, folder: Path, card: Card) -> None:
        self.card = card
        self.folder = folder / card.data
        self.entries: dict[str, Entry] = {}
        self._rows: dict[str, int] = {}
        row = 0
        for entry in read_entries(folder, card):
            self.entries[entry.name] = entry
            self._rows[entry.name] = row
            row += entry.rows
        self._offsets: NDArray[np.int64] = np.load(self.folder / OFFSETS, mmap_mode="r")
        if len(self._offsets) != row + 1:
            raise CorpusError(f"the index in {folder} is damaged")

    @classmethod
    def open(cls, folder: Path) -> "Older | None":
        """The older index; None where there is none that can be used."""
        try:
            return cls(folder, read_card(folder))
        except (CorpusError, OSError, ValueError):
            return None

    def lines(self, name: str) -> Iterator[bytes]:
        """The stored passages of one file."""
        first = self._rows[name]
        with (self.folder / RECORDS).open("rb") as records:
            records.seek(int(self._offsets[first]))
            for _ in range(self.entries[name].rows):
                yield records.readline()


class Gathering:
    """The passages of one build, written to disk on the way: what stays in memory is two numbers a passage."""

    def __init__(self, found: Found, older: Older | None, *, strict: bool, tick: Callable[[int, int], None]) -> None:
        """Look which files are known; nothing is read yet.

        Args:
            found: what there is to read.
            older: the index that is there.
            strict: stop at a file that cannot be read.
            tick: is told how many bytes are done, of how many.
        """
        self.counts = Counter[str]()
        """Files, as new, changed or kept."""
        self.entries: list[Entry] = []
        self.skipped = list(found.skipped)
        self.dated = self.with_url = 0
        self._files, self._older, self._strict, self._told = found.files, older, strict, tick
        self._usable = older is not None and older.card.kept == Card.model_construct().kept
        self._known = older.entries if older and self._usable else {}
        self._kept = [self._keep(file) for file in found.files]
        self._ids = array("q")
        self._offsets = array("q", [0])
        self._hash = hashlib.sha256()
        self._total = sum(_state(file.path)[0] for file in found.files)
        self._done = 0

    @property
    def rows(self) -> int:
        return len(self._ids)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def removed(self) -> int:
        """Files of the older index that are gone."""
        there = {file.name for file in self._files}
        return sum(name not in there for name in (self._older.entries if self._older else ()))

    @property
    def unchanged(self) -> bool:
        """Whether the older index holds just this."""
        names = [entry.name if entry else None for entry in self._kept]
        return self._older is not None and self._usable and names == list(self._older.entries)

    def keep_all(self) -> None:
        """Take the older index as it is."""
        self.counts["kept"] = len(self._kept)
        for entry in filter(None, self._kept):
            self._note(entry)

    def write(self, folder: Path) -> None:
        """Write the passages, where each one begins, and what is known of each file.

        Raises:
            CorpusError: a line that is no document, an id that stands twice, no passages at all, or, in a strict
                build, a file that cannot be read.
        """
        pairs = zip(self._files, self._kept, strict=True)
        parsed = [(file.path, file.kind) for file, known in pairs if known is None and file.kind in PARSED]
        with (folder / RECORDS).open("wb") as records, ReadAhead(parsed) as reader:
            for file, known in zip(self._files, self._kept, strict=True):
                self._take(file, known, reader, records.write)
        if not self._ids:
            raise CorpusError(self._nothing())
        np.save(folder / OFFSETS, np.frombuffer(self._offsets, dtype=np.int64))
        self._refuse_doubles(folder)
        lines = (entry.model_dump_json(exclude_defaults=True) + "\n" for entry in self.entries)
        (folder / FILES).write_text("".join(lines), encoding="utf-8")

    def _keep(self, file: SourceFile) -> Entry | None:
        """What is known of a file that did not change since it was read."""
        known, (size, mtime_ns) = self._known.get(file.name), _state(file.path)
        if known is None or known.size != size:
            return None
        path = file.path.resolve().as_posix()
        if (known.path, known.mtime_ns) == (path, mtime_ns) and known.mtime_ns < known.read_ns - _DOUBT_NS:
            return known
        read_ns = time_ns()
        try:
            same = _sha256(file.path) == known.sha256
        except OSError:
            return None  # whoever reads it says why it cannot be read
        return known.model_copy(update={"path": path, "mtime_ns": mtime_ns, "read_ns": read_ns}) if same else None

    def _take(self, file: SourceFile, known: Entry | None, reader: Reader, write: Write) -> None:
        """Write the passages of one file."""
        first = self.rows
        if known and self._older:
            for line in self._older.lines(file.name):
                self._add(Document.model_validate_json(line), line, write)
            self._tick(known.size)
            self.counts["kept"] += 1
            entry = known
        else:
            self.counts["changed" if self._older and file.name in self._older.entries else "new"] += 1
            entry = self._read(file, reader, write)
        self.entries.append(entry.model_copy(update={"rows": self.rows - first}))
        self._note(entry)

    def _read(self, file: SourceFile, reader: Reader, write: Write) -> Entry:
        first, before, read_ns, why, sha256 = self.rows, self._done, time_ns(), "", ""
        size, mtime_ns = _state(file.path)
        try:
            sha256 = _sha256(file.path)
            for document in read_file(file, reader, tick=self._tick):
                line = document.model_dump_json(exclude_defaults=True).encode() + b"\n"
                self._add(document, line, write)
        except ExtractError as error:
            why = str(error)
        except OSError as error:
            why = f"it cannot be opened: {error.strerror or error}"
        if self.rows == first and not why:
            why = "it is empty"
        self._tick(before + size - self._done)
        return Entry(
            name=file.name,
            path=file.path.resolve().as_posix(),
            size=size,
            mtime_ns=mtime_ns,
            read_ns=read_ns,
            sha256=sha256,
            rows=0,
            why=why,
        )

    def _note(self, entry: Entry) -> None:
        """Keep in mind that a file gave nothing."""
        if entry.why and self._strict:
            raise CorpusError(f"{entry.path} cannot be read: {entry.why}")
        if entry.why:
            self.skipped.append(Skipped(entry.name, "unreadable", entry.why))

    def _add(self, document: Document, line: bytes, write: Write) -> None:
        write(line)
        self._hash.update(line)
        self._ids.append(hash(document.id))
        self._offsets.append(self._offsets[-1] + len(line))
        self.dated += bool(document.date)
        self.with_url += bool(document.url)

    def _tick(self, read: int) -> None:
        self._done += read
        self._told(self._done, self._total)

    def _refuse_doubles(self, folder: Path) -> None:
        """Say which id stands twice, and where, by reading again: numbers alone are kept of the ids."""
        order = np.sort(np.frombuffer(self._ids, dtype=np.int64))
        twice = set(order[1:][order[1:] == order[:-1]].tolist())
        if not twice:
            return
        seen: set[str] = set()
        with Records(folder / RECORDS, self._offsets) as stored:
            for document, file in zip(stored, self._origins(), strict=True):
                if document.id in seen:
                    where = f"{file.path}{_line_of(file, document.document)}"
                    raise CorpusError(
                        f"{where}: the id {document.document!r} stands twice; give every document its own"
                    )
                if hash(document.id) in twice:
                    seen.add(document.id)

    def _origins(self) -> Iterator[SourceFile]:
        """The file of each passage."""
        for file, entry in zip(self._files, self.entries, strict=True):
            for _ in range(entry.rows):
                yield file

    def _nothing(self) -> str:
        reasons = [f"{skip.name}: {skip.why}" for skip in self.skipped if skip.reason == "unreadable"]
        shown = "; ".join(reasons[:_SHOWN]) + ("; …" if len(reasons) > _SHOWN else "")
        return f"there are no documents to index ({shown})"


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file; (0, 0) for one that is gone, which is found when it is read."""
    try:
        state = path.stat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line_of(file: SourceFile, record: str) -> str:
    """Where the last record of this id stands in a file of JSON lines."""
    if file.kind != "lines":
        return ""
    last = 0
    for number, line in numbered_lines(file.path):
        content = line.removeprefix(b"\xef\xbb\xbf").strip()
        if content and Record.model_validate_json(content).id == record:
            last = number
    return f", line {last}"
