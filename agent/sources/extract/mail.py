"""E-mail (.eml) as Markdown: who wrote what to whom and when. Attachments are named, and stay closed."""

import re
from collections.abc import Iterator, Sequence
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

from agent.sources.extract.markdown import Markdown
from agent.sources.extract.markup import parse_html, write_html
from agent.sources.extract.package import first_day, reading
from agent.sources.extract.text import Extracted, ExtractError, decode, one_line

MAX_PARTS: Final = 1000
HEADER_CHARS: Final = 4000
"""Of one header; the rest of it is left out."""
MAX_HEADERS: Final = 1000
_PARTS: Final = re.compile(rb"^content-type[ \t]*:", re.IGNORECASE | re.MULTILINE)
_MULTIPLE: Final = re.compile(rb"multipart/", re.IGNORECASE)
MAX_MULTIPLE: Final = 100
_NAME: Final = re.compile(rb"[!-9;-~]+[ \t]*:")
_MBOX: Final = re.compile(rb"From [^\n]*\n")
_READ: Final = ("text/plain", "text/html")
_SHOWN: Final = ("From", "To", "Cc", "Date")


def mail_text(raw: bytes) -> Extracted:
    """A message: its subject as title, its day, sender and receivers, and its text, or the text of its HTML.

    Raises:
        ExtractError: it is no message, or has too many parts.
    """
    raw = _MBOX.sub(b"", raw, count=1) if raw.startswith(b"From ") else raw
    if not _NAME.match(raw.lstrip(b"\xef\xbb\xbf\r\n")):
        raise ExtractError("it is empty" if not raw.strip() else "it is no e-mail: save the message as .eml again")
    if len(_PARTS.findall(raw)) > MAX_PARTS or len(_MULTIPLE.findall(raw)) > MAX_MULTIPLE:
        raise ExtractError(
            f"it has more than {MAX_PARTS:,} parts, or {MAX_MULTIPLE} inside each other: save its text as .txt"
        )
    out = Markdown()
    with reading(".eml"):
        try:
            message = message_from_bytes(raw.lstrip(b"\xef\xbb\xbf\r\n"))
            _write(message, out)
        except MessageError as error:
            raise ValueError(str(error)) from error
        title = _header(message, "Subject")
        date = _day(message)
    return out.extracted(title=title, date=date)


def _write(message: Message, out: Markdown) -> None:
    lines = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    out.paragraph("\n".join(lines))
    names: list[str] = []
    for part in _texts(message, names):
        _write_part(part, out)
    if names:
        out.paragraph("Attachments: " + ", ".join(names))


def _texts(message: Message, names: list[str]) -> Iterator[Message]:
    """The parts that a reader sees, in their order; the names of the others go into a list."""
    waiting = [message]
    while waiting:
        part = waiting.pop()
        kind = part.get_content_type()
        name = one_line(_decoded(part.get_filename() or ""))
        if part.get_content_disposition() == "attachment" or (name and not part.is_multipart()):
            names.append(name or kind)
        elif kind == "message/rfc822":
            names.append(_header(_children(part)[0], "Subject") or kind if _children(part) else kind)
        elif kind == "multipart/alternative":
            waiting += _preferred(_children(part))
        elif part.is_multipart():
            waiting += reversed(_children(part))
        elif kind in _READ:
            yield part


def _preferred(alternatives: Sequence[Message]) -> list[Message]:
    """Of one text in several forms the plain one, where it is not blank; else the last that is read, the richest."""
    plain = [part for part in alternatives if part.get_content_type() == "text/plain" and _text_of(part).strip()]
    read = [part for part in alternatives if part.is_multipart() or part.get_content_type() in _READ]
    return plain[:1] or (read or list(alternatives))[-1:]


def _text_of(part: Message) -> str:
    payload: Any = part.get_payload(decode=True)
    return decode(payload if isinstance(payload, bytes) else b"", part.get_content_charset("") or "").replace("\0", "")


def _children(part: Message) -> list[Message]:
    payload: Any = part.get_payload()
    return cast(list[Message], payload) if isinstance(payload, list) else []


def _write_part(part: Message, out: Markdown) -> None:
    text = _text_of(part)
    if part.get_content_type() == "text/html":
        root = parse_html(text)
        if root is not None:
            write_html(root, out)
        return
    for paragraph in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        out.paragraph(paragraph)


def _header(message: Message, name: str) -> str:
    return one_line(
        _decoded(next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), ""))
    )


def _decoded(value: str) -> str:
    """A header in words, whatever charset it is written in; also one that is written in bytes, as RFC 6532 has it."""
    parts: list[str] = []
    if not value.isascii():
        value = decode(value.encode("utf-8", "surrogateescape"), "")
    for piece, charset in decode_header(value[:HEADER_CHARS]):
        parts.append(piece if isinstance(piece, str) else decode(piece, charset or ""))
    return "".join(parts)


def _day(message: Message) -> str:
    try:
        return first_day(parsedate_to_datetime(_header(message, "Date")).isoformat())
    except (ValueError, TypeError):
        return ""
