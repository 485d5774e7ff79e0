"""The formats of a report, by name and by the end of a file's name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic_core import to_json

from agent.errors import SetupError
from agent.report.export.docx import as_docx
from agent.report.export.html import as_html
from agent.report.export.markdown import as_markdown
from agent.report.export.pdf import as_pdf, require_pdf
from agent.report.report import Report
from agent.sanitize.text import whole, whole_value

Format = Literal["md", "html", "docx", "pdf", "json"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
MEDIA: Final[Mapping[Format, str]] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
    "json": "application/json",
}
_OTHERS: Final[Mapping[str, Format]] = {".markdown": "md", ".htm": "html"}


@dataclass(frozen=True)
class ExportedReport:
    """A file."""

    data: bytes
    media_type: str
    name: str


def export(report: Report, format: Format) -> ExportedReport:
    """The report in one of the formats.

    Raises:
        SetupError: the format needs a package that is not installed.
    """
    words = re.findall(r"[a-z0-9]+", report.title.lower())[:6]
    name = "-".join(["report", *words])[:60]
    return ExportedReport(_WRITERS[format](report), MEDIA[format], f"{name}.{format}")


def format_of(path: Path) -> Format:
    """The format that a file's name ends with.

    Raises:
        SetupError: it ends with none.
    """
    ending = path.suffix.lower()
    for name in FORMATS:
        if ending == f".{name}":
            return name
    if ending in _OTHERS:
        return _OTHERS[ending]
    raise SetupError(f"a report cannot be written as {path.name}; end the name with .{', .'.join(FORMATS)}")


def check_format(format: Format) -> None:
    """Make sure that a format can be written here.

    Raises:
        SetupError: it needs a package that is not installed; the sentence names it.
    """
    if format == "pdf":
        require_pdf()


def _text(write: Callable[[Report], str]) -> Callable[[Report], bytes]:
    return lambda report: whole(write(report)).encode()


def _as_json(report: Report) -> bytes:
    return to_json(whole_value(report.model_dump(mode="json")), indent=2)


_WRITERS: Final[Mapping[Format, Callable[[Report], bytes]]] = {
    "md": _text(as_markdown),
    "html": _text(as_html),
    "docx": as_docx,
    "pdf": as_pdf,
    "json": _as_json,
}
