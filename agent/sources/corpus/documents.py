"""Documents on disk as passages: JSON lines, text, Markdown, HTML and PDF, and folders of them.

Nothing is indexed here. What a folder holds beside them is passed over, and said; so is a file that cannot be read.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import from_json

from agent.errors import CorpusError
from agent.files import foreign as files
from agent.sources.corpus.split import split_markdown, split_page, split_text
from agent.sources.extract.document import MAX_BYTES, plain_text, unopened
from agent.sources.extract.text import Extracted, ExtractError

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
ID_CHARS: Final = 1000
TITLE_CHARS: Final = 1000
"""A longer title of a record is refused; one that is made of headings is cut."""
URL_CHARS: Final = 4000
DATE_CHARS: Final = 40
LINE_BYTES: Final = 16 << 20
"""A longer line is no document, and what follows it in its file is not read."""
READING: Final = 4
"""Raised whenever the same file would give other passages than before: what an older index kept is read again."""

_HINT: Final = 'each line must be one object like {"id": "…", "title": "…", "text": "…"}'
_ISO: Final = re.compile(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?")


class DocumentLine(BaseModel):
    """One JSON line. Fields that no one needs are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(max_length=ID_CHARS)
    title: str = Field(default="", max_length=TITLE_CHARS)
    text: str = Field(max_length=LINE_BYTES)
    url: str = Field(default="", max_length=URL_CHARS)
    date: str = Field(default="", max_length=DATE_CHARS)
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
            raise ValueError(f"{value!r} is not an ISO date such as 2026-03-02")
        return value


class StoredPassage(DocumentLine):
    """One passage of a corpus, and where it is."""

    id: str = Field(max_length=ID_CHARS + 20)
    """That of the record or file, and a number."""
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
    place: Path
    """What is opened, through no link: of a file that was named, what the link of that name leads to."""
    title: str = ""
    """Of its passages, where the file states none; empty: its name without the suffix."""
    url: str = ""
    """Of its passages, where the file states none."""

    @property
    def kind(self) -> str:
        return SUFFIXES[self.path.suffix.lower()]


@dataclass(frozen=True)
class SkippedFile:
    """One file that gives no passages, or not all of them."""

    name: str
    reason: Literal["kind", "questions", "link", "lines", "unreadable"]
    """`lines`: some of its lines are no documents, the others are read."""
    why: str


@dataclass(frozen=True)
class FoundFiles:
    """What there is to read."""

    files: tuple[SourceFile, ...]
    skipped: tuple[SkippedFile, ...]


def find_files(paths: Sequence[Path], *, leave_out: Path | None = None) -> FoundFiles:
    """Every file with documents, folders searched through, in a fixed order.

    A list of questions often lies beside its documents: in a folder it is passed over, as is what is hidden. A link
    below a folder is never followed: it may lead to what its owner never meant to give.

    Args:
        paths: files and folders.
        leave_out: a folder that is passed over wherever it lies: the index itself.

    Raises:
        CorpusError: a path is missing, no regular file or of no known kind, or a folder holds no documents.
    """
    found: dict[Path, SourceFile] = {}
    skipped: list[SkippedFile] = []
    for path in paths:
        if path.is_dir():
            inside, passed_over = _search(path, leave_out)
            if not inside:
                raise CorpusError(f"the folder {path} holds no documents: put {KINDS} there{_reasons(passed_over)}")
            skipped += passed_over
        else:
            inside = [_named(path)]
        for file in inside:
            found.setdefault(file.path.resolve(), file)
    names = Counter(file.name for file in found.values())
    named = (f if names[f.name] == 1 else SourceFile(f.path, spelled(f.path), f.place) for f in found.values())
    return FoundFiles(tuple(named), tuple(skipped))


def _named(path: Path) -> SourceFile:
    """A file that the user named, which may be a link."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise CorpusError(f"there is no file or folder {path}") from error
    if why := files.not_a_file(mode):
        raise CorpusError(f"{path} cannot be read as documents: {why}")
    if path.suffix.lower() not in SUFFIXES:
        raise CorpusError(f"{path} cannot be read as documents: give {KINDS}")
    return SourceFile(path, spelled(Path(path.name)), path.resolve())


def _search(folder: Path, leave_out: Path | None) -> tuple[list[SourceFile], list[SkippedFile]]:
    found: list[SourceFile] = []
    skipped: list[SkippedFile] = []
    for path, problem in _walk(folder, leave_out):
        name = spelled(path.relative_to(folder))
        suffix = path.suffix.lower()
        if problem:
            skipped.append(problem if problem.name else SkippedFile(name, problem.reason, problem.why))
        elif suffix not in SUFFIXES:
            skipped.append(SkippedFile(name, "kind", suffix or "no suffix"))
        elif len(name) > ID_CHARS:
            skipped.append(SkippedFile(name, "unreadable", f"its path has more than {ID_CHARS:,} characters"))
        elif _asks(path):
            skipped.append(SkippedFile(name, "questions", "it is a list of questions"))
        else:
            found.append(SourceFile(path, name, path))
    return found, skipped


def _walk(folder: Path, leave_out: Path | None) -> Iterator[tuple[Path, SkippedFile | None]]:
    """Everything below a folder that is not hidden, sorted, with why it cannot be read. No link is followed."""
    without = _identity(leave_out)
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            state = path.stat() if path == folder else path.lstat()
            if stat.S_ISDIR(state.st_mode):
                if (state.st_dev, state.st_ino) != without:
                    with os.scandir(path) as entries:
                        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
                    waiting += (path / name for name in reversed(names))
                continue
        except OSError as error:
            yield path, SkippedFile("", "unreadable", f"it cannot be opened: {error.strerror or error}")
            continue
        yield path, _problem(state.st_mode)


def _problem(mode: int) -> SkippedFile | None:
    if stat.S_ISLNK(mode):
        return SkippedFile("", "link", "it is a symbolic link; what it leads to is read only if you name it")
    why = files.not_a_file(mode)
    return SkippedFile("", "unreadable", why) if why else None


def _identity(folder: Path | None) -> tuple[int, int] | None:
    try:
        state = folder.stat() if folder else None
    except OSError:
        return None
    return (state.st_dev, state.st_ino) if state else None


def spelled(path: Path) -> str:
    """A path as text that can be written anywhere: bytes that are no UTF-8 are spelled out."""
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _reasons(skipped: Sequence[SkippedFile]) -> str:
    reasons = [f"{skip.name}: {skip.why}" for skip in skipped if skip.reason != "kind"]
    return f" ({'; '.join(reasons[:3])}{'; …' if len(reasons) > 3 else ''})" if reasons else ""


def _asks(file: Path) -> bool:
    """Whether the first line is a question."""
    if file.suffix.lower() != ".jsonl":
        return False
    try:
        with files.open_file(file, follow=False) as lines:
            first: object = from_json(lines.readline(LINE_BYTES) or b"null")
    except (OSError, ValueError):
        return False  # reading the whole file says what is wrong with it
    return isinstance(first, dict) and "question" in first and "text" not in first


Tick = Callable[[int], None]
"""Takes how many bytes were read since the last call."""


Reject = Callable[[int, str], None]
"""Takes the number of a line that is no document, and why."""


class DocumentReader(Protocol):
    """What reads files that must be parsed."""

    def read(self, path: Path, kind: str) -> Extracted: ...


def read_file(
    file: SourceFile, reader: DocumentReader, *, tick: Tick = lambda _: None, reject: Reject | None = None
) -> Iterator[StoredPassage]:
    """Read one file, cut into passages. `tick` hears of JSON lines only; any other file is read at once.

    A short JSON line keeps its id; the parts of a long one are `ID#1`, `ID#2`, …, the passages of any other file
    `NAME#1`, … Where it is not of JSON lines, only the first step can find that the file cannot be read.

    Args:
        file: to read.
        reader: of HTML and PDF.
        tick: hears how many bytes were read.
        reject: hears of lines that are no documents, and they are left out; None: the first one ends the reading.

    Raises:
        ExtractError: the file has no text that can be read.
        CorpusError: a JSON line that is no document, without `reject`.
        OSError: a file of JSON lines cannot be read.
    """
    if file.kind == "lines":
        yield from _read_lines(file, tick, reject)
        return
    found = reader.read(file.place, file.kind) if file.kind in PARSED else _read_text(file.place)
    title = found.title or file.title or spelled(Path(file.path.stem))
    url = found.url if 0 < len(found.url) <= URL_CHARS else file.url
    number = 0
    for heading, start, end in _sections(found, file.kind, title):
        for at, to in split_text(found.text, start, end):
            number += 1
            yield StoredPassage(
                id=f"{file.name}#{number}",
                title=_cut_title(heading),
                text=found.text[at:to],
                url=url,
                date=found.date,
                document=file.name,
                start=at,
                end=to,
                page=found.page(at),
            )


def _cut_title(title: str) -> str:
    return title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1]}…"


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
        raw = files.read_file(file, most=MAX_BYTES, follow=False)
    except OSError as error:
        raise ExtractError(unopened(error)) from error
    return Extracted(plain_text(raw).replace("\r\n", "\n").replace("\r", "\n"))


def _read_lines(file: SourceFile, tick: Tick, reject: Reject | None) -> Iterator[StoredPassage]:
    with files.open_file(file.place, follow=False) as opened:
        for number, line in _bounded(opened):
            tick(len(line))
            if not (content := line.removeprefix(b"\xef\xbb\xbf").strip()):
                continue
            try:
                record = _parse(content, whole=len(line) < LINE_BYTES)
            except CorpusError as error:
                if reject is None:
                    raise CorpusError(f"{file.path}, line {number}: {error}; {_HINT}") from error
                reject(number, str(error))
                continue
            yield from _cut(record)


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, counted from 1; nothing behind one of `LINE_BYTES`.

    Raises:
        CorpusError: the file cannot be read.
    """
    try:
        with files.open_file(file) as opened:
            yield from _bounded(opened)
    except OSError as error:
        raise CorpusError(f"{file} cannot be read: {error.strerror or error}") from error


def _bounded(opened: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := opened.readline(LINE_BYTES):
        number += 1
        yield number, line
        if len(line) == LINE_BYTES:
            return


def _parse(line: bytes, *, whole: bool) -> DocumentLine:
    if not whole:
        raise CorpusError(f"this line is longer than {LINE_BYTES >> 20} MB, and the rest of the file was not read")
    try:
        return DocumentLine.model_validate_json(line)
    except ValidationError as error:
        raise CorpusError(line_problem(error)) from error


def line_problem(error: ValidationError) -> str:
    """What is wrong with one JSON line, in a few words."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    match first["type"]:
        case "json_invalid":
            return f"not valid JSON ({first.get('ctx', {}).get('error', first['msg'])})"
        case "missing":
            return f"the field {field!r} is missing"
        case "model_type":
            return "not a JSON object"
        case _:
            return f"the field {field!r} cannot be used: {first['msg'].removeprefix('Value error, ')}"


def _cut(record: DocumentLine) -> Iterator[StoredPassage]:
    whole = StoredPassage.model_construct(
        None, **dict(record), document=record.id, start=0, end=len(record.text), page=0
    )
    if len(record.text) <= RECORD_CHARS:
        yield whole
        return
    for number, (start, end) in enumerate(split_text(record.text, 0, len(record.text)), start=1):
        part = {"id": f"{record.id}#{number}", "text": record.text[start:end], "start": start, "end": end}
        yield whole.model_copy(update=part)
