"""The ZIP file that an office document or a book is: what it claims is checked before anything of it is unpacked.

Only XML is read, each part up to a bound, without entities and without the network. Macros, pictures, fonts, embedded
objects and archives inside an archive stay packed.
"""

import io
import posixpath
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

from agent.sources.extract.text import ExtractError, one_line
from agent.sources.extract.trees import check_xml, parse_xml

MAX_MEMBERS: Final = 20_000
MAX_UNPACKED: Final = 256 << 20
"""Bytes of all parts that are read."""
MAX_RATIO: Final = 400
"""A part that unpacks to so many times its size is no document, where it is longer than this:"""
_SMALL: Final = 4 << 20

_LEFT_OUT: Final = frozenset(
    "activeX charts ctrlProps customXml diagrams drawings embeddings externalLinks fonts media pivotCache pivotTables "
    "printerSettings queryTables theme".split()
)
"""Folders of a package that hold no text of the document itself."""
_MAIN: Final = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/presentation.xml",
    ".xlsx": "xl/workbook.xml",
    ".xlsb": "xl/workbook.bin",
    ".epub": "META-INF/container.xml",
}
"""The part that usually is the document itself; relations and content types may name another one."""
_KINDS: Final = (
    ("wordprocessingml", ".docx"),
    ("ms-word", ".docx"),
    ("presentationml", ".pptx"),
    ("ms-powerpoint", ".pptx"),
    ("ms-excel.sheet.binary", ".xlsb"),
    ("spreadsheetml", ".xlsx"),
    ("ms-excel", ".xlsx"),
)
"""What the content type of that part has in it."""
_ODF: Final = {"text": ".odt", "presentation": ".odp", "spreadsheet": ".ods"}
_OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_BEGINS: Final = (
    (b"%PDF", ".pdf"),
    (b"{\\rtf", ".rtf"),
    (b"<!doctype html", ".html"),
    (b"<html", ".html"),
)
_STRICT: Final = re.compile(rb"""(=\s*["'])http://purl\.oclc\.org/ooxml/(\w{1,40})/(\w)""")
"""Names of ISO/IEC 29500 Strict; what reads parts knows them as Transitional has them."""
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NO_TITLE: Final = re.compile(
    r"(?i)untitled( \d+)?|powerpoint[- ]pr\wsentation|microsoft (word|excel|powerpoint) - .*|word document|unknown"
    r"|\(?none\)?"
    r"|(slide|sheet|document|book|workbook|presentation|title)\d*|.*\.(docx?|pptx?|xlsx?|od[tps]|rtf|epub)"
)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_CORE: Final = "docProps/core.xml"
_ROOT: Final = "_rels/.rels"
_TYPES: Final = "[Content_Types].xml"
_TERMS: Final = "{http://purl.org/dc/terms/}"
_ELEMENTS: Final = "{http://purl.org/dc/elements/1.1/}"
_RELATIONS: Final = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_DAMAGED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ExpatError,
    LookupError,
    OSError,
    RuntimeError,  # RecursionError among them
    SyntaxError,  # of lxml
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def reading(suffix: str) -> Generator[None]:
    """Turn what parsers raise about a damaged file into a sentence.

    Raises:
        ExtractError: in place of all that.
    """
    try:
        yield
    except _DAMAGED as error:
        detail = one_line(str(error))[:200]
        if isinstance(error, RecursionError):
            detail = "its parts are nested too deep"
        raise ExtractError(
            f"it is no readable {suffix} file ({detail or type(error).__name__}): "
            f"copy it again, or save it as {suffix} again in the program that made it"
        ) from error


class Package:
    """The parts of one such file, by name."""

    def __init__(self, raw: bytes, suffix: str) -> None:
        """Check all that the file claims about its parts.

        Raises:
            ExtractError: it is another kind of file, encrypted, damaged, or made to harm.
        """
        if not raw.startswith(b"PK"):
            raise ExtractError(_no_zip(raw, suffix))
        if raw.count(b"PK\x01\x02") > MAX_MEMBERS:
            raise ExtractError(f"it is an archive of more than {MAX_MEMBERS:,} files, and no document: unpack it first")
        self._zip = zipfile.ZipFile(io.BytesIO(raw))
        _check(self._zip.infolist())
        self._infos = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        self._left = MAX_UNPACKED
        stated = self._stated_main()
        self.main = stated if stated in self else _MAIN.get(suffix, "")
        """The name of the part that is the document itself."""
        if suffix not in (kinds := self._kinds()):
            raise ExtractError(_other_kind(kinds, suffix))

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def _stated_main(self) -> str:
        if _ROOT not in self:
            return ""
        links = (link for link in self.xml(_ROOT).iter(_RELATIONS) if link.get("Type", "").endswith("/officeDocument"))
        return next((self.resolved("", link.get("Target", "")) for link in links), "")

    def _kinds(self) -> list[str]:
        """The suffixes that fit what is inside."""
        if _TYPES in self and self.main in self:
            parts = self.xml(_TYPES).iter("{*}Override")
            said = next((part.get("ContentType", "") for part in parts if part.get("PartName") == f"/{self.main}"), "")
            if kind := next((kind for mark, kind in _KINDS if mark in said), ""):
                return [kind]
        kinds = [suffix for suffix, main in _MAIN.items() if main in self]
        if "mimetype" in self and "content.xml" in self:
            said = self.read("mimetype").decode("ascii", "replace").partition("opendocument.")[2].strip()
            kinds += [suffix for kind, suffix in _ODF.items() if said.removesuffix("-template") == kind]
        return kinds

    def read(self, name: str) -> bytes:
        """Unpack one part, whatever size it claims.

        Raises:
            ExtractError: it is missing, or too large.
        """
        if (info := self._infos.get(name)) is None:
            raise ExtractError(f"its part {name[:100]!r} is missing: copy it again, or save it again")
        if info.file_size > self._left:
            raise ExtractError(f"it unpacks to more than {MAX_UNPACKED >> 20} MB of text: save it in smaller parts")
        if info.file_size > max(_SMALL, MAX_RATIO * info.compress_size):
            raise ExtractError(
                f"its part {name[:100]!r} unpacks to {info.file_size // max(1, info.compress_size):,} times its size, "
                "as only files do that are made to harm: leave it out"
            )
        with self._zip.open(info) as part:
            data = part.read(info.file_size + 1)
        self._left -= len(data)
        return _STRICT.sub(rb"\1http://schemas.openxmlformats.org/\2/2006/\3", data) if _is_xml(name) else data

    def xml(self, name: str) -> Any:
        """The root element of one part.

        Raises:
            ExtractError: it is missing, too large, or declares entities.
        """
        return parse_xml(self.read(name))

    def repacked(self, edited: Callable[[str, bytes], bytes], *, main: str = "") -> io.BytesIO:
        """The package once more, with the XML of its text alone, for libraries that open files by themselves.

        Args:
            edited: gives each part as the library shall see it, from its name and bytes.
            main: the only name under which the library looks for the document itself.
        """
        names = {name: name for name in self._infos}
        if main:
            for of in (str, _relations_of):
                if of(self.main) in names:
                    names[of(main)] = names.pop(of(self.main))
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as packed:
            for name, real in names.items():
                if _is_xml(name) and _LEFT_OUT.isdisjoint(name.split("/")):
                    packed.writestr(name, edited(name, check_xml(self.read(real))))
        out.seek(0)
        return out

    def relations(self, name: str) -> dict[str, str]:
        """Id → name of each part inside the package that a part refers to."""
        folder, listed = posixpath.dirname(name), _relations_of(name)
        if listed not in self:
            return {}
        return {
            relation.get("Id", ""): self.resolved(folder, relation.get("Target", ""))
            for relation in self.xml(listed).iter(_RELATIONS)
            if relation.get("TargetMode") != "External"
        }

    def resolved(self, folder: str, target: str) -> str:
        """The name of the part that a link leads to, which may not exist."""
        path = unquote(target.partition("#")[0])
        return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")

    def properties(self) -> tuple[str, str]:
        """Title and day of the last change that an office document states."""
        if _CORE not in self:
            return "", ""
        core = self.xml(_CORE)
        return real_title(core.findtext(f"{_ELEMENTS}title")), first_day(
            core.findtext(f"{_TERMS}modified"), core.findtext(f"{_TERMS}created")
        )


def _relations_of(name: str) -> str:
    folder, file = posixpath.split(name)
    return f"{folder}/_rels/{file}.rels"


def _is_xml(name: str) -> bool:
    return name.endswith((".xml", ".rels"))


def _check(infos: Sequence[zipfile.ZipInfo]) -> None:
    for info in infos:
        name = info.filename
        if info.flag_bits & 0x41:
            raise ExtractError("it is encrypted with a password: save a copy without one")
        if name.startswith(("/", "\\")) or _DRIVE.match(name) or ".." in re.split(r"[/\\]", name):
            raise ExtractError(f"it holds a file that wants to be unpacked elsewhere ({name[:100]!r}): leave it out")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ExtractError(f"it holds a symbolic link ({name[:100]!r}), as no document does: leave it out")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ExtractError("it is packed in a way that documents are not: save it again in the program it is from")
    ordered = sorted(infos, key=lambda info: info.header_offset)
    for info, following in pairwise(ordered):
        if info.header_offset + 30 + info.compress_size > following.header_offset:
            raise ExtractError("its parts overlap, as only in files that are damaged or made to harm: leave it out")


def _no_zip(raw: bytes, suffix: str) -> str:
    if not raw:
        return "it is empty"
    if raw.startswith(_OLD):
        if _ENCRYPTED in raw:
            return "it is encrypted with a password: save a copy without one"
        return f"it is in the old binary form of Word, Excel or PowerPoint: save it as {suffix}"
    begin = raw[:100].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if real := next((real for mark, real in _BEGINS if begin.startswith(mark.lower())), ""):
        return f"it is a {real} file: rename it so that it ends in {real}"
    return f"it is no {suffix} file: open it in the program that made it, and save it as {suffix}"


def _other_kind(kinds: Sequence[str], suffix: str) -> str:
    if ".xlsb" in kinds:
        return "it is a binary workbook (.xlsb): save it as .xlsx"
    if kinds:
        return f"it is a {kinds[0]} file: rename it so that it ends in {kinds[0]}"
    return f"it is a ZIP file that holds no {suffix} document: unpack it, and put the files of it there"


def real_title(stated: object) -> str:
    """A title of metadata, unless a program made it up."""
    title = one_line(str(stated or ""))
    return "" if _NO_TITLE.fullmatch(title) else title


def first_day(*stated: object) -> str:
    """The first of some dates that begins with a day of the calendar; none: empty."""
    for each in stated:
        if (found := _DAY.match(str(each or "").strip())) and _is_day(found[0]):
            return found[0]
    return ""


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).year >= 1000
    except ValueError:
        return False
