"""Documents on disk as passages: JSON lines, plain text, Markdown, and folders of them. Nothing is indexed here."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from agent.errors import CorpusError

LINES: Final = ".jsonl"
TEXT: Final = frozenset({".txt", ".text"})
MARKDOWN: Final = frozenset({".md", ".markdown"})
SUFFIXES: Final = frozenset({LINES, *TEXT, *MARKDOWN})
KINDS: Final = "JSON lines (.jsonl), plain text (.txt) or Markdown (.md)"

PASSAGE_CHARS: Final = 1000
"""Aim for the pieces of text and Markdown files: about the 100–150 words that retrievers are usually given."""
RECORD_CHARS: Final = 4000
"""A longer text of a JSON line is cut: a passage that fits into no round's budget could never be shown."""

_MEND: Final = 'each line must be one object like {"id": "…", "title": "…", "text": "…"}'
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_SPACES = re.compile(r"\s*")
_BETWEEN_WORDS = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?]['\")\]]*\s+|\n")


class Document(BaseModel):
    """One passage of a corpus. Fields that nobody asks for are left out."""

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
        if value and not _DATE.fullmatch(value):
            raise ValueError(f"{value!r} is no ISO date like 2026-03-02")
        return value


def document_files(paths: Sequence[Path]) -> list[Path]:
    """Every file with documents, folders searched through, in a fixed order.

    A list of questions often lies beside its documents: in a folder it is passed over.

    Raises:
        CorpusError: a path is missing or of no known kind, or a folder holds no documents.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            there = sorted(p for p in path.rglob("*") if _wanted(p.relative_to(path)) and p.is_file())
            inside = [p for p in there if not _asks(p)]
            if not inside:
                raise CorpusError(f"the folder {path} holds no documents: put {KINDS} there")
            files += inside
        elif not path.exists():
            raise CorpusError(f"there is no file or folder {path}")
        elif path.suffix.lower() not in SUFFIXES:
            raise CorpusError(f"{path} cannot be read as documents: give {KINDS}")
        else:
            files.append(path)
    return list(dict.fromkeys(files))


def _wanted(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def _asks(file: Path) -> bool:
    """Whether the first line is a question."""
    if file.suffix.lower() != LINES:
        return False
    try:
        with file.open("rb") as lines:
            first: object = json.loads(lines.readline() or b"null")
    except (OSError, ValueError):
        return False  # whoever reads the whole file says what is wrong with it
    return isinstance(first, dict) and "question" in first and "text" not in first


def read_documents(paths: Sequence[Path], *, tick: Callable[[int], None] = lambda _: None) -> Iterator[Document]:
    """Read every document, cut into passages.

    A passage of a text file has the id `NAME#START-END`, places in characters; a part of a long JSON line has
    `ID#START-END`. The text is what stands there, unchanged.

    Args:
        paths: files and folders.
        tick: is told how many bytes were read since the last call.

    Raises:
        CorpusError: a file or a line that cannot be read, an id that stands twice, or no documents at all.
    """
    seen: set[str] = set()
    for file, name in _named(document_files(paths)):
        for document, where in _read_file(file, name, tick):
            if document.id in seen:
                raise CorpusError(f"{where}: the id {document.id!r} stands twice; give every document its own")
            seen.add(document.id)
            yield from _cut(document)
    if not seen:
        raise CorpusError(f"there are no documents in {', '.join(map(str, paths))}")


def _named(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with a short name that no other has: its last parts."""
    names = [file.name for file in files]
    for file, name in zip(files, names, strict=True):
        yield file, name if names.count(name) == 1 else file.as_posix()


def _read_file(file: Path, name: str, tick: Callable[[int], None]) -> Iterator[tuple[Document, str]]:
    if file.suffix.lower() == LINES:
        yield from _read_lines(file, tick)
        return
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file} cannot be read as UTF-8 text: {error}") from error
    sections = split_markdown if file.suffix.lower() in MARKDOWN else _one_section
    for title, start, end in sections(text, file.stem):
        for at, to in split_text(text, start, end):
            yield Document(id=f"{name}#{at}-{to}", title=title, text=text[at:to]), str(file)
    tick(file.stat().st_size)


def _read_lines(file: Path, tick: Callable[[int], None]) -> Iterator[tuple[Document, str]]:
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                tick(len(line))
                if content := line.removeprefix(b"\xef\xbb\xbf").strip():
                    where = f"{file}, line {number}"
                    yield _parse(content, where), where
    except OSError as error:
        raise CorpusError(f"{file} cannot be read: {error}") from error


def _parse(line: bytes, where: str) -> Document:
    try:
        return Document.model_validate_json(line)
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


def _cut(document: Document) -> Iterator[Document]:
    if len(document.text) <= RECORD_CHARS:
        yield document
        return
    for start, end in split_text(document.text, 0, len(document.text)):
        yield document.model_copy(update={"id": f"{document.id}#{start}-{end}", "text": document.text[start:end]})


def _one_section(text: str, title: str) -> Iterator[tuple[str, int, int]]:
    yield title, 0, len(text)


def split_markdown(text: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Give (title, start, end) of what stands under each heading; the title is the path of headings down to it."""
    path: list[tuple[int, str]] = []
    start, at, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not line[mark.end() :].strip())):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.fullmatch(line.rstrip("\r\n"))
        if heading:
            yield _title(path, name), start, at
            level = len(heading[1])
            path = [*((depth, title) for depth, title in path if depth < level), (level, heading[2])]
            start = at + len(line)
        at += len(line)
    yield _title(path, name), start, at


def _title(path: Sequence[tuple[int, str]], name: str) -> str:
    return " › ".join(title for _, title in path if title) or name


def split_text(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut text[start:end] into pieces of at most `PASSAGE_CHARS`.

    It cuts after a paragraph where it can, else after a sentence, else between words; no piece is only white space
    or has any at its ends.
    """
    pieces: list[tuple[int, int]] = []
    while (start := cast(re.Match[str], _SPACES.match(text, start, end)).end()) < end:
        stop = end if end - start <= PASSAGE_CHARS else _last_break(text, start)
        piece = text[start:stop].rstrip()
        pieces.append((start, start + len(piece)))
        start = stop
    return pieces


def _last_break(text: str, start: int) -> int:
    """Where the piece that begins at `start` ends: at the best kind of break in its second half."""
    middle, limit = start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS
    for ends in (_PARAGRAPH_END, _SENTENCE_END, _BETWEEN_WORDS):
        if found := [match.end() for match in ends.finditer(text, middle, limit)]:
            return found[-1]
    return limit
