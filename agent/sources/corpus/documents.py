"""Documents on disk as passages: JSON lines, text, Markdown, HTML and PDF, and folders of them.

Nothing is indexed here. What a folder holds beside them is passed over, and said; so is a file that cannot be read.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from agent.errors import CorpusError
from agent.sources.corpus.extract import Extracted, ExtractError, decode
from agent.sources.corpus.reader import MAX_BYTES
from agent.sources.corpus.split import split_markdown, split_page, split_text

SUFFIXES: Final = {
    ".jsonl": "lines",
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
PARSED: Final = frozenset({"html", "pdf"})
KINDS: Final = "JSON lines (.jsonl), plain text (.txt), Markdown (.md), HTML (.html) or PDF (.pdf)"

RECORD_CHARS: Final = 4000
"""A longer text of a JSON line is cut: a passage that fits into no round's budget could never be shown."""
READING: Final = 2
"""Raised whenever the same file would give other passages than before: what an older index kept is read anew."""

_MEND: Final = 'each line must be one object like {"id": "…", "title": "…", "text": "…"}'
_ISO: Final = re.compile(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?")


class Record(BaseModel):
    """One JSON line. Fields that nobody asks for are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str
    title: str = ""
    text: str
    url: str = ""
    date: str = ""
    """ISO: a year, a month, a day or more."""

    @field_validator("id", "text")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("date")
    @classmethod
    def _iso(cls, value: str) -> str:
        if value and not _ISO.fullmatch(value):
            raise ValueError(f"{value!r} is no ISO date like 2026-03-02")
        return value


class Document(Record):
    """One passage of a corpus, and where it stands."""

    document: str = ""
    """Id of the record, or path of the file, that it is a part of."""
    start: int = 0
    end: int = 0
    """Its characters in the text of that record or file: text[start:end]."""
    page: int = 0
    """The page of a PDF that it begins on, from 1."""


@dataclass(frozen=True)
class SourceFile:
    """One file with documents."""

    path: Path
    name: str
    """Short, and no other file's: its path below the folder that was named."""

    @property
    def kind(self) -> str:
        return SUFFIXES[self.path.suffix.lower()]


@dataclass(frozen=True)
class Skipped:
    """One file that gives no passages."""

    name: str
    reason: Literal["kind", "questions", "unreadable"]
    why: str


@dataclass(frozen=True)
class Found:
    """What there is to read."""

    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]


def find_files(paths: Sequence[Path], *, leave_out: Path | None = None) -> Found:
    """Every file with documents, folders searched through, in a fixed order.

    A list of questions often lies beside its documents: in a folder it is passed over, as is what is hidden.

    Args:
        paths: files and folders.
        leave_out: a folder that is passed over wherever it lies: the index itself.

    Raises:
        CorpusError: a path is missing or of no known kind, or a folder holds no documents.
    """
    files: dict[Path, SourceFile] = {}
    skipped: list[Skipped] = []
    for path in paths:
        if path.is_dir():
            inside, passed_over = _search(path, leave_out)
            if not inside:
                raise CorpusError(f"the folder {path} holds no documents: put {KINDS} there")
            skipped += passed_over
        elif not path.exists():
            raise CorpusError(f"there is no file or folder {path}")
        elif path.suffix.lower() not in SUFFIXES:
            raise CorpusError(f"{path} cannot be read as documents: give {KINDS}")
        else:
            inside = [SourceFile(path, path.name)]
        for file in inside:
            files.setdefault(file.path.resolve(), file)
    names = Counter(file.name for file in files.values())
    named = (f if names[f.name] == 1 else SourceFile(f.path, f.path.as_posix()) for f in files.values())
    return Found(tuple(named), tuple(skipped))


def _search(folder: Path, leave_out: Path | None) -> tuple[list[SourceFile], list[Skipped]]:
    files: list[SourceFile] = []
    skipped: list[Skipped] = []
    without = leave_out.resolve() if leave_out else None
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder)
        if any(part.startswith(".") for part in below.parts) or not path.is_file():
            continue
        if without and path.resolve().is_relative_to(without):
            continue
        if path.suffix.lower() not in SUFFIXES:
            skipped.append(Skipped(below.as_posix(), "kind", path.suffix.lower() or "no suffix"))
        elif _asks(path):
            skipped.append(Skipped(below.as_posix(), "questions", "it is a list of questions"))
        else:
            files.append(SourceFile(path, below.as_posix()))
    return files, skipped


def _asks(file: Path) -> bool:
    """Whether the first line is a question."""
    if file.suffix.lower() != ".jsonl":
        return False
    try:
        with file.open("rb") as lines:
            first: object = json.loads(lines.readline() or b"null")
    except (OSError, ValueError):
        return False  # whoever reads the whole file says what is wrong with it
    return isinstance(first, dict) and "question" in first and "text" not in first


Tick = Callable[[int], None]
"""Is told how many bytes were read since the last call."""


class Reader(Protocol):
    """What reads files that must be parsed."""

    def read(self, path: Path, kind: str) -> Extracted: ...


def read_file(file: SourceFile, reader: Reader, *, tick: Tick = lambda _: None) -> Iterator[Document]:
    """Read one file, cut into passages. `tick` hears of JSON lines only; any other file is read at once.

    A short JSON line keeps its id; the parts of a long one are `ID#1`, `ID#2`, …, the passages of any other file
    `NAME#1`, … Only the first step can find that the file cannot be read: then nothing was given.

    Raises:
        ExtractError: the file has no text that can be read.
        CorpusError: a JSON line that is no document.
    """
    if file.kind == "lines":
        yield from _read_lines(file.path, tick)
        return
    found = reader.read(file.path, file.kind) if file.kind in PARSED else _read_text(file.path)
    title = found.title or file.path.stem
    number = 0
    for heading, start, end in _sections(found, file.kind, title):
        for at, to in split_text(found.text, start, end):
            number += 1
            yield Document(
                id=f"{file.name}#{number}",
                title=heading,
                text=found.text[at:to],
                url=found.url,
                date=found.date,
                document=file.name,
                start=at,
                end=to,
                page=found.page(at),
            )


def _sections(found: Extracted, kind: str, title: str) -> Iterator[tuple[str, int, int]]:
    match kind:
        case "markdown":
            return split_markdown(found.text, title)
        case "html":
            return split_page(found.text, title)
        case _:
            return iter([(title, 0, len(found.text))])


def _read_text(file: Path) -> Extracted:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ExtractError(f"it is larger than {MAX_BYTES >> 20} MB")
        raw = file.read_bytes()
    except OSError as error:
        raise ExtractError(f"it cannot be opened: {error.strerror or error}") from error
    return Extracted(decode(raw).replace("\r\n", "\n").replace("\r", "\n"))


def _read_lines(file: Path, tick: Tick) -> Iterator[Document]:
    for number, line in numbered_lines(file):
        tick(len(line))
        if content := line.removeprefix(b"\xef\xbb\xbf").strip():
            yield from _cut(_parse(content, f"{file}, line {number}"))


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, counted from 1.

    Raises:
        CorpusError: the file cannot be read.
    """
    try:
        with file.open("rb") as lines:
            yield from enumerate(lines, start=1)
    except OSError as error:
        raise CorpusError(f"{file} cannot be read: {error.strerror or error}") from error


def _parse(line: bytes, where: str) -> Record:
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        raise CorpusError(f"{where}: {line_problem(error)}; {_MEND}") from error


def line_problem(error: ValidationError) -> str:
    """What is wrong with one JSON line, in a few words."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    match first["type"]:
        case "json_invalid":
            return f"this is no JSON ({first.get('ctx', {}).get('error', first['msg'])})"
        case "missing":
            return f"the field {field!r} is missing"
        case "model_type":
            return "this is no JSON object"
        case _:
            return f"the field {field!r} cannot be used: {first['msg'].removeprefix('Value error, ')}"


def _cut(record: Record) -> Iterator[Document]:
    whole = Document.model_construct(None, **dict(record), document=record.id, start=0, end=len(record.text), page=0)
    if len(record.text) <= RECORD_CHARS:
        yield whole
        return
    for number, (start, end) in enumerate(split_text(record.text, 0, len(record.text)), start=1):
        part = {"id": f"{record.id}#{number}", "text": record.text[start:end], "start": start, "end": end}
        yield whole.model_copy(update=part)
