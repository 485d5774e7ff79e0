"""Gathers the passages of an index: from the files, or from an older index where a file did not change.

A file did not change if its size and time are the same; where that leaves a doubt, its hash is compared.
"""

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import time_ns
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from agent.errors import CorpusError
from agent.files.foreign import has_holes, open_file
from agent.sources.arrays import load_array
from agent.sources.corpus.documents import DocumentLine, DocumentReader, StoredPassage, numbered_lines, read_file
from agent.sources.corpus.finding import PARSED, FoundFiles, SkippedFile, SourceFile, spelled
from agent.sources.corpus.folder import FILES, OFFSETS, RECORDS, FileEntry, IndexCard, read_card, read_entries
from agent.sources.corpus.records import Doubles, Records, find_doubles
from agent.sources.extract.document import MAX_BYTES, unopened
from agent.sources.extract.pool import FileReader
from agent.sources.extract.text import ExtractError, ReadingFailed

_DOUBT_NS: Final = 2_000_000_000
"""A file that was changed this shortly before it was read may have been changed again without another time."""
_SHOWN: Final = 3
"""Reasons in one sentence."""
_ID_SHOWN: Final = 80
"""Characters of an id in a sentence."""

Write = Callable[[bytes], object]


class OlderDamaged(CorpusError):
    """The index that is there cannot be taken over; without it the documents can still be read."""


class NoDocuments(CorpusError):
    """None of the files gives a passage."""

    def __init__(self, why: str, skipped: Sequence[SkippedFile]) -> None:
        super().__init__(why)
        self.skipped = tuple(skipped)


class Older:
    """The index that is there: its passages by file."""

    def __init__(self, folder: Path, card: IndexCard) -> None:
        self.card = card
        self.folder = folder / card.data
        self.entries: dict[str, FileEntry] = {}
        self._rows: dict[str, int] = {}
        row = 0
        for entry in read_entries(folder, card):
            self.entries[entry.name] = entry
            self._rows[entry.name] = row
            row += entry.rows
        self._records = Records(self.folder / RECORDS, load_array(self.folder / OFFSETS, np.int64))
        if len(self._records) != row:
            raise CorpusError(f"the index in {folder} is damaged")

    @classmethod
    def open(cls, folder: Path) -> "Older | None":
        """The older index; None where there is none that can be used."""
        try:
            return cls(folder, read_card(folder))
        except (CorpusError, OSError, ValueError):
            return None

    def lines(self, name: str) -> Iterator[bytes]:
        """The stored passages of one file.

        Raises:
            CorpusError: they are damaged.
        """
        first = self._rows[name]
        return (self._records.line(row) for row in range(first, first + self.entries[name].rows))


class Gathering:
    """The passages of one build, written to disk on the way: what stays in memory is two numbers a passage."""

    def __init__(
        self, found: FoundFiles, older: Older | None, *, strict: bool, tick: Callable[[int, int], None]
    ) -> None:
        """Look which files are known; nothing is read yet.

        Args:
            found: what there is to read.
            older: the index that is there.
            strict: stop at a file that cannot be read.
            tick: takes how many bytes are done, of how many.
        """
        self.counts = Counter[str]()
        """Files that give passages, as new, changed or kept."""
        self.entries: list[FileEntry] = []
        self.skipped = list(found.skipped)
        self.dated = self.with_url = 0
        self._files, self._older, self._strict, self._report = found.files, older, strict, tick
        self._usable = older is not None and older.card.kept == IndexCard.model_construct().kept
        self._known = older.entries if older and self._usable else {}
        self._kept = [self._keep(file) for file in found.files]
        self._ids = array("q")
        self._offsets = array("q", [0])
        self._hash = hashlib.sha256()
        self._total = sum(_state(file.place)[0] for file in found.files)
        self._done = 0
        if strict and (unreadable := next((s for s in found.skipped if s.reason == "unreadable"), None)):
            raise CorpusError(f"{unreadable.name} cannot be read: {unreadable.why}")

    @property
    def rows(self) -> int:
        return len(self._ids)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def removed(self) -> int:
        """Files of the older index that give no passages any more."""
        gave = sum(entry.rows > 0 for entry in self._older.entries.values()) if self._older else 0
        return gave - self.counts["kept"] - self.counts["changed"]

    @property
    def unchanged(self) -> bool:
        """Whether the older index holds just this."""
        names = [entry.name if entry else None for entry in self._kept]
        return self._older is not None and self._usable and names == list(self._older.entries)

    def keep_all(self) -> None:
        """Take the older index as it is."""
        for entry in filter(None, self._kept):
            self.counts["kept"] += entry.rows > 0
            self._note(entry)

    def write(self, folder: Path) -> None:
        """Write the passages, where each one begins, and what is known of each file.

        Raises:
            NoDocuments: there are no passages at all.
            CorpusError: in a strict build, a file or a line that cannot be read, or
                an id that occurs twice.
            OlderDamaged: what the older index kept is damaged.
        """
        self._kept = [None if entry and entry.doubles else entry for entry in self._kept]
        pairs = zip(self._files, self._kept, strict=True)
        parsed = [(file.place, file.kind) for file, known in pairs if known is None and file.kind in PARSED]
        with (folder / RECORDS).open("wb") as records, FileReader(parsed) as reader:
            for file, known in zip(self._files, self._kept, strict=True):
                self._take(file, known, reader, records.write)
        if self._ids:
            self._leave_doubles_out(folder)
        for entry in self.entries:
            self._note(entry)
        if not self._ids:
            raise NoDocuments(self._nothing(), self.skipped)
        np.save(folder / OFFSETS, np.frombuffer(self._offsets, dtype=np.int64))
        lines = (entry.model_dump_json(exclude_defaults=True) + "\n" for entry in self.entries)
        (folder / FILES).write_text("".join(lines), encoding="utf-8")

    def _keep(self, file: SourceFile) -> FileEntry | None:
        """What is known of a file that did not change since it was read."""
        known, (size, mtime_ns) = self._known.get(file.name), _state(file.place)
        if known is None or known.size != size or known.again:
            return None
        path = _path(file)
        if (known.path, known.mtime_ns) == (path, mtime_ns) and known.mtime_ns < known.read_ns - _DOUBT_NS:
            return known
        read_ns = time_ns()
        try:
            same = bool(known.sha256) and _sha256(file) == known.sha256
        except (OSError, ExtractError):
            return None  # reading it says why it cannot be read
        return known.model_copy(update={"path": path, "mtime_ns": mtime_ns, "read_ns": read_ns}) if same else None

    def _take(self, file: SourceFile, known: FileEntry | None, reader: DocumentReader, write: Write) -> None:
        """Write the passages of one file."""
        first = self.rows
        if known and self._older:
            self._copy(self._older, file, write)
            self._tick(known.size)
            entry = known
        else:
            entry = self._read(file, reader, write)
        self.entries.append(entry.model_copy(update={"rows": self.rows - first}))
        self._refuse(entry)
        if self.rows > first:
            before = self._older.entries.get(file.name) if self._older else None
            gave = before is not None and before.rows > 0
            self.counts["kept" if known and gave else "changed" if gave else "new"] += 1

    def _copy(self, older: Older, file: SourceFile, write: Write) -> None:
        try:
            for line in older.lines(file.name):
                self._add(StoredPassage.model_validate_json(line), line, write)
        except (CorpusError, ValidationError) as error:
            raise OlderDamaged(f"the index in {older.folder} is damaged") from error

    def _read(self, file: SourceFile, reader: DocumentReader, write: Write) -> FileEntry:
        first, before, read_ns, why, sha256, again = self.rows, self._done, time_ns(), "", "", False
        size, mtime_ns = _state(file.place)
        bad: list[str] = []

        def reject(number: int, why: str) -> None:
            bad.append(f"line {number}: {why}" if not bad else "")

        try:
            sha256 = _sha256(file)
            for document in read_file(file, reader, tick=self._tick, reject=None if self._strict else reject):
                line = document.model_dump_json(exclude_defaults=True).encode() + b"\n"
                self._add(document, line, write)
        except ExtractError as error:
            why, again = str(error), isinstance(error, ReadingFailed)
        except OSError as error:
            why, again = unopened(error), True
        if not why and bad:
            why = bad[0]
        if self.rows == first and not why:
            why = "it is empty"
        self._tick(before + size - self._done)
        return FileEntry(
            name=file.name,
            path=_path(file),
            size=size,
            mtime_ns=mtime_ns,
            read_ns=read_ns,
            sha256=sha256,
            rows=0,
            why=why,
            bad=len(bad),
            again=again,
        )

    def _refuse(self, entry: FileEntry) -> None:
        """In a strict build, stop at a file of which something cannot be read."""
        if entry.why and self._strict:
            raise CorpusError(f"{entry.path} cannot be read: {entry.why}")

    def _note(self, entry: FileEntry) -> None:
        """Keep in mind that a file gave nothing, or not all."""
        self._refuse(entry)
        if entry.why and entry.rows:
            lines = "1 line was" if entry.bad == 1 else f"{entry.bad:,} lines were"
            why = f"{lines} left out; {entry.why}" if entry.bad else entry.why
            self.skipped.append(SkippedFile(entry.name, "lines", why))
        elif entry.why:
            self.skipped.append(SkippedFile(entry.name, "unreadable", entry.why))

    def _add(self, document: StoredPassage, line: bytes, write: Write) -> None:
        write(line)
        self._hash.update(line)
        self._ids.append(hash(document.id))
        self._offsets.append(self._offsets[-1] + len(line))
        self.dated += bool(document.date)
        self.with_url += bool(document.url)

    def _tick(self, read: int) -> None:
        self._done += read
        self._report(self._done, self._total)

    def _leave_doubles_out(self, folder: Path) -> None:
        """Find ids that occur twice by reading again, as numbers alone are kept of the ids; write what is left."""
        ids = np.frombuffer(self._ids, dtype=np.int64)
        order = np.sort(ids)
        twice = np.isin(ids, order[1:][order[1:] == order[:-1]])
        if not twice.any():
            return
        old, new = folder / RECORDS, folder / f"{RECORDS}.new"
        with Records(old, self._offsets) as stored:
            found = find_doubles(lambda: zip(count(), stored, self._origins()), twice.tolist())
            if not found.rows:
                return
            gone = np.zeros(len(stored), bool)
            gone[list(found.rows)] = True
            self._blame(found, gone)
            self._ids, self._offsets, self._hash = array("q"), array("q", [0]), hashlib.sha256()
            self.dated = self.with_url = 0
            with new.open("wb") as records:
                for row in np.flatnonzero(~gone).tolist():
                    self._add(stored[row], stored.line(row), records.write)
        new.replace(old)

    def _blame(self, found: Doubles, gone: NDArray[np.bool_]) -> None:
        """Note with each file which of its lines were left out, or, in a strict build, stop."""
        first = 0
        for place, (file, entry) in enumerate(zip(self._files, self.entries, strict=True)):
            if doubles := found.counts.get(file.name, 0):
                id = found.first[file.name]
                why = f"the id {id[:_ID_SHOWN]!r} occurs twice; give every document its own"
                line = _line_of(file, id)
                if self._strict:
                    raise CorpusError(f"{file.path}{f', line {line}' if line else ''}: {why}")
                left = {"rows": entry.rows - int(gone[first : first + entry.rows].sum()), "doubles": doubles}
                why = entry.why or f"line {line}: {why}"
                self.entries[place] = entry.model_copy(update=left | {"bad": entry.bad + doubles, "why": why})
            first += entry.rows

    def _origins(self) -> Iterator[SourceFile]:
        """The file of each passage."""
        for file, entry in zip(self._files, self.entries, strict=True):
            for _ in range(entry.rows):
                yield file

    def _nothing(self) -> str:
        reasons = [f"{skip.name}: {skip.why}" for skip in self.skipped if skip.reason == "unreadable"]
        named = "; ".join(reasons[:_SHOWN]) + ("; …" if len(reasons) > _SHOWN else "")
        return f"there are no documents to index ({named})"


def _path(file: SourceFile) -> str:
    return spelled(file.path.resolve())


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file; (0, 0) for one that is gone, which is found when it is read."""
    try:
        state = path.lstat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _sha256(file: SourceFile) -> str:
    """The hash of a file that may be worth reading.

    Raises:
        ExtractError: it is too large, or claims to be larger than it is.
        OSError: it cannot be opened.
    """
    with open_file(file.place, follow=False) as opened:
        if file.kind != "lines" and os.fstat(opened.fileno()).st_size > MAX_BYTES:
            raise ExtractError(f"it is larger than {MAX_BYTES >> 20} MB")
        if has_holes(opened):
            raise ExtractError("parts of it were never written, so it is not text")
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _line_of(file: SourceFile, record: str) -> int:
    """The last line of a file of JSON lines that has this id; 0 where there is none any more."""
    last = 0
    try:
        for number, line in numbered_lines(file.place):
            with suppress(ValidationError):
                if DocumentLine.model_validate_json(line.removeprefix(b"\xef\xbb\xbf").strip()).id == record:
                    last = number
    except CorpusError:
        return last
    return last
