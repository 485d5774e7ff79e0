"""Which files of a folder hold documents, in a fixed order. What else is there is passed over, and said."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic_core import from_json

from agent.errors import CorpusError
from agent.files import foreign as files

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
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    ".epub": "epub",
    ".rtf": "rtf",
    ".odt": "odt",
    ".odp": "odp",
    ".ods": "ods",
    ".eml": "mail",
    ".csv": "csv",
    ".tsv": "tsv",
}
PARSED: Final = frozenset(SUFFIXES.values()) - {"lines", "text", "markdown"}
"""These are read in a process of their own."""
KINDS: Final = (
    "JSON lines (.jsonl), plain text (.txt), Markdown (.md), HTML (.html), PDF (.pdf), Word (.docx), "
    "PowerPoint (.pptx), Excel (.xlsx), OpenDocument (.odt, .odp, .ods), EPUB (.epub), rich text (.rtf), "
    "e-mail (.eml) or tables (.csv, .tsv)"
)
OTHER_FORMS: Final = {
    **dict.fromkeys((".doc", ".docm", ".dotx", ".dotm"), ".docx"),
    **dict.fromkeys((".ppt", ".pps", ".pptm", ".potx", ".ppsx", ".ppsm"), ".pptx"),
    **dict.fromkeys((".xls", ".xlt", ".xlsm", ".xlsb", ".xltx"), ".xlsx"),
    **dict.fromkeys((".mobi", ".azw", ".azw3", ".fb2"), ".epub"),
    **dict.fromkeys((".msg", ".mbox"), ".eml"),
}
"""Documents that their own programs can save as what is read here."""

LINE_BYTES: Final = 16 << 20
"""A longer line is no document, and what follows it in its file is not read."""
ID_CHARS: Final = 1000


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
    if (suffix := path.suffix.lower()) not in SUFFIXES:
        raise CorpusError(f"{path} cannot be read as documents: {saved_as(suffix) or f'give {KINDS}'}")
    return SourceFile(path, spelled(Path(path.name)), path.resolve())


def _search(folder: Path, leave_out: Path | None) -> tuple[list[SourceFile], list[SkippedFile]]:
    found: list[SourceFile] = []
    skipped: list[SkippedFile] = []
    for path, problem in _walk(folder, leave_out):
        name = spelled(path.relative_to(folder))
        suffix = path.suffix.lower()
        if problem:
            skipped.append(problem if problem.name else SkippedFile(name, problem.reason, problem.why))
        elif why := saved_as(suffix):
            skipped.append(SkippedFile(name, "unreadable", why))
        elif suffix not in SUFFIXES:
            skipped.append(SkippedFile(name, "kind", suffix or "no suffix"))
        elif len(name) > ID_CHARS:
            skipped.append(SkippedFile(name, "unreadable", f"its path has more than {ID_CHARS:,} characters"))
        elif _asks(path):
            skipped.append(SkippedFile(name, "questions", "it is a list of questions"))
        else:
            found.append(SourceFile(path, name, path))
    return found, skipped


def saved_as(suffix: str) -> str:
    """What to do with a document in a form that is not read; empty for other files."""
    return f"files of the kind {suffix} are not read: save it as {form}" if (form := OTHER_FORMS.get(suffix)) else ""


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
