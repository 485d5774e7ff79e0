"""Documents on disk as passages: JSON lines here, text and Markdown as they are, other kinds through a reader.

Nothing is indexed here.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent.errors import CorpusError
from agent.evidence import BETWEEN_TITLES
from agent.files import foreign as files
from agent.sources.corpus.finding import ID_CHARS, LINE_BYTES, PARSED, SourceFile, spelled
from agent.sources.corpus.split import front_matter, split_markdown, split_page, split_tables, split_text
from agent.sources.extract.document import MAX_BYTES, plain_text, unopened
from agent.sources.extract.text import Extracted, ExtractError, one_line
from agent.sources.live.dates import iso_date

RECORD_CHARS: Final = 4000
"""A longer text of a JSON line is cut: a passage that fits into no round's budget could never be shown."""
TITLE_CHARS: Final = 1000
"""A longer title of a record is refused; one that is made of headings is cut."""
URL_CHARS: Final = 4000
DATE_CHARS: Final = 40
READING: Final = 9
"""Raised whenever the same file would give other passages or words: what an older index kept is read again."""

_HINT: Final = 'each line must be one object like {"id": "…", "title": "…", "text": "…"}'
_ISO: Final = re.compile(r"\d{4}(-\d\d(-\d\d([T ].*)?)?)?")
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_ANY_TIME: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""What a file says is the same on each day that it is read."""


class DocumentLine(BaseModel):
    """One JSON line. Fields that no one needs are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(max_length=ID_CHARS)
    title: str = Field(default="", max_length=TITLE_CHARS)
    section: str = ""
    """The heading above the text; a passage has it behind its title."""
    text: str = Field(max_length=LINE_BYTES)
    url: str = Field(default="", max_length=URL_CHARS)
    date: str = Field(default="", max_length=DATE_CHARS)
    """ISO: a year, a month, a day or more. In another form it is read where that says one day, else left out."""

    @field_validator("title", "url", mode="before")
    @classmethod
    def _or_nothing(cls, value: object) -> object:
        """Exports write null for what they lack."""
        return "" if value is None else value

    @field_validator("section", mode="before")
    @classmethod
    def _heading(cls, value: object) -> str:
        """Others mean other things by this name: what is no short text is left out."""
        return value.strip() if isinstance(value, str) and len(value) <= TITLE_CHARS else ""

    @field_validator("id", "text")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("date", mode="before")
    @classmethod
    def _day(cls, value: object) -> str:
        return stated_date(value)


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
    """The page of a PDF, or the slide, that it begins on, from 1."""
    page_breaks: tuple[int, ...] = ()
    """Where in its own text each further page begins."""


def stated_date(value: object) -> str:
    """The date that a document states: ISO, or empty where it is none, or says no year."""
    if isinstance(value, int):
        return str(value) if 1000 <= value <= 9999 else ""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > DATE_CHARS:
        return ""
    if _ISO.fullmatch(text):
        return text
    return _read_date(text) if _YEAR.search(text) else ""


@lru_cache(maxsize=1 << 16)
def _read_date(text: str) -> str:
    """Kept for as many days as a collection may have: each takes milliseconds."""
    return iso_date(text, now=_ANY_TIME)


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
        reader: of all kinds that must be parsed.
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
    found = reader.read(file.place, file.kind) if file.kind in PARSED else _read_text(file.place, file.kind)
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
                page_breaks=found.page_breaks(at, to),
            )


def _cut_title(title: str) -> str:
    return title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1]}…"


def _sections(found: Extracted, kind: str, title: str) -> Iterator[tuple[str, int, int]]:
    match kind:
        case "markdown":
            _, start = front_matter(found.text)
            split = split_page if found.title else split_markdown
            return split(found.text, title, start=start, underlined=True)
        case "html":
            return split_page(found.text, title)
        case "text" | "pdf":
            return iter([(title, 0, len(found.text))])
        case _:
            return split_tables(found.text, split_page(found.text, title))


def _read_text(file: Path, kind: str) -> Extracted:
    try:
        raw = files.read_file(file, most=MAX_BYTES, follow=False)
    except OSError as error:
        raise ExtractError(unopened(error)) from error
    text = plain_text(raw).replace("\r\n", "\n").replace("\r", "\n")
    stated = front_matter(text)[0] if kind == "markdown" else {}
    return Extracted(text, title=one_line(stated.get("title", "")), date=stated_date(stated.get("date")))


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
    title = _cut_title(BETWEEN_TITLES.join(filter(None, (record.title, record.section))))
    said = dict(record) | {"title": title, "section": ""}
    whole = StoredPassage.model_construct(None, **said, document=record.id, start=0, end=len(record.text), page=0)
    if len(record.text) <= RECORD_CHARS:
        yield whole
        return
    for number, (start, end) in enumerate(split_text(record.text, 0, len(record.text)), start=1):
        part = {"id": f"{record.id}#{number}", "text": record.text[start:end], "start": start, "end": end}
        yield whole.model_copy(update=part)
