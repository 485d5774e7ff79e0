"""Triples and names out of files: tab, bar or JSON lines, plain, gzipped or inside a tar; streamed, bad lines counted.

Wikidata5M's files are read as they are downloaded. Nothing here writes.
"""

import errno
import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, NamedTuple, cast

from agent.errors import SetupError
from agent.files.foreign import open_file
from agent.sources.kg.database import TEXT_CHARS

LINE_BYTES: Final = 1_000_000
"""A longer line is a bad one: no list of names is so long, and memory stays bounded."""
UNPACKED_RATIO: Final = 100
"""A packed file may give this many times its own size; that of triples is packed to a tenth."""
UNPACKED_BYTES: Final = 256 << 20
"""Or so much, if that is more."""
_UNREADABLE: Final = (OSError, EOFError, tarfile.TarError, zlib.error, MemoryError, RecursionError)
_LABELS: Final = (("head", "h", "subject"), ("relation", "r", "predicate"), ("tail", "t", "object"))
_IDS: Final = (("head_id", "h_id"), ("tail_id", "t_id"))
_ALIASES: Final = (("head_aliases", "h_aliases"), ("tail_aliases", "t_aliases"))


class RawTriple(NamedTuple):
    """A line of triples. A key is an identifier as Q42, with names of its own, or the name itself."""

    head: str
    relation: str
    tail: str
    head_names: tuple[str, ...] = ()
    tail_names: tuple[str, ...] = ()


class RawNames(NamedTuple):
    """A line of names: an entity's or a relation's key, and what it is called."""

    key: str
    names: tuple[str, ...]


@dataclass
class ReadTally:
    """How the reading goes."""

    read: int = 0
    """Good lines."""
    bad: int = 0
    first_bad: str = ""
    """Where the first bad line is, and what is wrong with it."""
    bytes: int = 0
    """Of the files as they lie on the disk."""
    tick: Callable[[], None] = field(default=lambda: None)
    """Is called now and then."""

    def reject(self, where: str, why: str) -> None:
        self.bad += 1
        self.first_bad = self.first_bad or f"{where}: {why}"


class _Bad(Exception):
    """A line that cannot be read; the text says why."""


def read_triples(path: Path, tally: ReadTally) -> Iterator[RawTriple]:
    """Read every good triple of a file; of a tar, those of all its text files.

    Raises:
        SetupError: the file cannot be read.
    """
    for where, line in _lines(path, tally, member=lambda name: True):
        try:
            triple = _triple(_text(line))
        except _Bad as error:
            tally.reject(where(), str(error))
            continue
        if triple is not None:
            tally.read += 1
            yield triple


def read_names(path: Path, tally: ReadTally, *, part: str) -> Iterator[RawNames]:
    """Read `key<TAB>name<TAB>name…`; of a tar, those files whose name holds `part` (entity or relation).

    Raises:
        SetupError: the file cannot be read.
    """
    for where, line in _lines(path, tally, member=lambda name: part in name):
        try:
            key, *names = (" ".join(cell.split()) for cell in _text(line).split("\t"))
            if not key and not names:
                continue
            if not key or not any(names):
                raise _Bad("needs a key and a name, with a tab between them")
            _refuse_long([key, *names])
        except _Bad as error:
            tally.reject(where(), str(error))
            continue
        tally.read += 1
        yield RawNames(key, tuple(dict.fromkeys(name for name in names if name)))


def has_member(path: Path, part: str) -> bool:
    """Whether a tar holds a file whose name has `part` in it; False for what is no tar."""
    if not _is_tar(path):
        return False
    try:
        with open_file(path) as file, _unpacked(path, file) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            return any(part in Path(member.name).name for member in tar)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def digest(path: Path) -> str:
    """sha256 of a file.

    Raises:
        SetupError: the file cannot be read.
    """
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _text(line: bytes) -> str:
    if len(line) >= LINE_BYTES:
        raise _Bad(f"is longer than {LINE_BYTES:,} bytes")
    try:
        text = line.decode("utf-8").rstrip("\r\n").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise _Bad("is not UTF-8 text") from None
    if "\0" in text:
        raise _Bad("holds a zero byte")
    return text


def _triple(text: str) -> RawTriple | None:
    """Read one line; None where it is empty."""
    if not text.strip():
        return None
    if text.startswith("{") and text.rstrip().endswith("}") and "\t" not in text:
        return _from_json(text)
    cells = [" ".join(cell.split()) for cell in text.split("\t" if "\t" in text else "|")]
    if len(cells) != 3:
        raise _Bad(f"has {len(cells)} columns instead of 3 (head, relation, tail)")
    if not all(cells):
        raise _Bad("has an empty column")
    _refuse_long(cells)
    head, relation, tail = cells
    return RawTriple(head, relation, tail)


def _from_json(text: str) -> RawTriple:
    try:
        row = cast("dict[str, object]", json.loads(text))
    except (ValueError, RecursionError):
        raise _Bad("is not a JSON object") from None
    head, relation, tail = (_cell(row, names) for names in _LABELS)
    if not (head and relation and tail):
        raise _Bad("needs head, relation and tail (or h, r, t)")
    head_id, tail_id = (_cell(row, names) for names in _IDS)
    heads, tails = (_others(row, names) for names in _ALIASES)
    _refuse_long([head, relation, tail, head_id, tail_id, *heads, *tails])
    return RawTriple(
        head_id or head,
        relation,
        tail_id or tail,
        (head, *heads) if head_id or heads else (),
        (tail, *tails) if tail_id or tails else (),
    )


def _refuse_long(names: Iterable[str]) -> None:
    if any(len(name) > TEXT_CHARS for name in names):
        raise _Bad(f"has a name of more than {TEXT_CHARS:,} characters")


def _cell(row: dict[str, object], names: tuple[str, ...]) -> str:
    value = next((row[name] for name in names if row.get(name) is not None), "")
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _others(row: dict[str, object], names: tuple[str, ...]) -> tuple[str, ...]:
    value = next((row[name] for name in names if row.get(name) is not None), ())
    cells = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(" ".join(cell.split()) for cell in cells if isinstance(cell, str) and cell.strip())


def _lines(path: Path, tally: ReadTally, *, member: Callable[[str], bool]) -> Iterator[tuple[Callable[[], str], bytes]]:
    """Every line, with a function that names its place."""
    before = tally.bytes
    try:
        with open_file(path) as file:
            for name, stream in _streams(path, file, member=member):
                number = 0
                while line := stream.readline(LINE_BYTES):
                    number += 1
                    if len(line) == LINE_BYTES:
                        _skip_rest(stream)
                    if number % 10_000 == 0:
                        tally.bytes = before + file.tell()
                        tally.tick()
                    yield (lambda name=name, number=number: f"{name}, line {number:,}"), line
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    tally.bytes = before + path.stat().st_size
    tally.tick()


def _skip_rest(stream: IO[bytes]) -> None:
    while (piece := stream.readline(LINE_BYTES)) and not piece.endswith(b"\n"):
        pass


def _streams(path: Path, file: IO[bytes], *, member: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    """The text files in a file, with their names."""
    if _is_tar(path):
        with _unpacked(path, file) as whole, tarfile.open(fileobj=whole, mode="r|") as tar:
            for entry in tar:
                name = Path(entry.name).name
                if entry.isfile() and not name.startswith(".") and member(name):
                    stream = tar.extractfile(entry)
                    assert stream is not None, "a regular file of a tar can be read"
                    yield f"{path}:{name}", stream
    elif path.suffix == ".gz":
        with _unpacked(path, file) as stream:
            yield str(path), stream
    else:
        yield str(path), file


def _unpacked(path: Path, file: IO[bytes]) -> IO[bytes]:
    """A file without gzip's packing, if it has one; up to a bound: a small file can be packed that gives petabytes."""
    most = max(UNPACKED_BYTES, UNPACKED_RATIO * os.fstat(file.fileno()).st_size)
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    whole = gzip.GzipFile(fileobj=file) if packed else file
    return io.BufferedReader(_Bounded(path, cast("BinaryIO", whole), most), 1 << 16)  # pyright: ignore[reportReturnType]


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where it gives more than it may."""

    def __init__(self, path: Path, stream: BinaryIO, most: int) -> None:
        self._path, self._stream, self._left = path, stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise OSError(errno.EFBIG, "it unpacks to far more than its own size", str(self._path))
        buffer[: len(piece)] = piece
        return len(piece)


def _is_tar(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith((".tar", ".tgz", ".tar.gz"))


def _unreadable(path: Path, error: Exception) -> SetupError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or "it ends too early"
    return SetupError(f"{path} cannot be read: {why}")
