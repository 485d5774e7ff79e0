"""An index folder: its card, its lock, and how a new index takes the place of an older one in one step.

    DIR/index.json       the card: what the index holds, and in which data folder; replaced in one step
    DIR/data-1a2b3c4d/   documents.jsonl, offsets.npy, files.jsonl, bm25/, dense/: written once, never changed
    DIR/.lock            held by the one build that may write; removed at its end
    DIR/.building-…/     what a build has not finished; the next one removes it
    DIR/.vectors/        what a killed build had encoded; the next one goes on from there

A reader sees the older index or the newer one, whole, whenever it opens: there is no moment without one. A stranger may
have made the folder: nothing outside it is read, written or removed, whatever its card and its links say.
"""

import os
import re
import shutil
import stat
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from time import monotonic, sleep
from typing import IO, Any, Final, cast

from pydantic import BaseModel, field_validator
from pydantic_core import from_json

from agent.errors import CorpusError
from agent.evidence import Frozen
from agent.files.foreign import is_real_file, is_real_folder, read_file
from agent.files.own import lock_file
from agent.sources.bm25 import K1, B
from agent.sources.corpus.dense import DENSE, DenseCard
from agent.sources.corpus.documents import READING, RECORD_CHARS
from agent.sources.corpus.split import PASSAGE_CHARS

CARD: Final = "index.json"
RECORDS: Final = "documents.jsonl"
OFFSETS: Final = "offsets.npy"
FILES: Final = "files.jsonl"
INDEX: Final = "bm25"
VECTORS: Final = ".vectors"
FORMAT: Final = 2
TITLE_WEIGHT: Final = 2
"""How often a title counts: what a document is about matters more than what it mentions."""

_LOCK: Final = ".lock"
_DATA: Final = "data-"
_BUILDING: Final = ".building-"
_OWN: Final = re.compile(r"(?:data-|\.building-)[0-9a-f]{8}")
_PATIENCE_SECONDS: Final = 1.0
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_CARD_BYTES: Final = 4 << 20
_ENTRIES_BYTES: Final = 1 << 30
_DATA_NAME: Final = re.compile(r"data-[0-9A-Za-z]{1,32}")
_PART: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,100}")
_NEXT_CARD: Final = ".index.json"
_VERSION_1: Final = (RECORDS, OFFSETS, INDEX)
"""What the first version kept beside its card."""


class IndexCard(Frozen):
    """What an index folder says of itself."""

    version: int = FORMAT
    data: str
    """Name of the folder that holds the index."""
    documents: int
    """Files and JSON lines are cut into passages; this counts what is searched and shown."""
    sources: int
    """Files that these come from."""
    dated: int
    with_url: int
    sha256: str
    """Of the documents' file: two indices with the same hash hold the same."""
    files: dict[str, int]
    """Every file of the data folder, with its size in bytes."""
    reading: int = READING
    """How files were read and cut: where it changes, nothing of an older index is kept."""
    passage_chars: int = PASSAGE_CHARS
    record_chars: int = RECORD_CHARS
    k1: float = K1
    b: float = B
    title_weight: int = TITLE_WEIGHT
    dense: DenseCard | None = None
    """Where passages are found by their meaning, too."""

    @field_validator("data")
    @classmethod
    def _inside(cls, value: str) -> str:
        if not _DATA_NAME.fullmatch(value):
            raise ValueError("is not the name of a data folder")
        return value

    @field_validator("files")
    @classmethod
    def _below(cls, value: dict[str, int]) -> dict[str, int]:
        if not all(_PART.fullmatch(part) for name in value for part in name.split("/")):
            raise ValueError("names a file outside the data folder")
        if lacking := {RECORDS, OFFSETS, FILES} - set(value):
            raise ValueError(f"does not name {min(lacking)}")
        return value

    @property
    def kept(self) -> tuple[int, int, int]:
        """What must be the same for passages of an older index to be kept."""
        return (self.reading, self.passage_chars, self.record_chars)


class _Version(BaseModel):
    """What a card of any version has."""

    version: int


class FileEntry(Frozen):
    """What an index keeps of one file that it read."""

    name: str
    path: str
    size: int
    mtime_ns: int
    read_ns: int
    """When it was read, in nanoseconds: a change right after that may not show in the time of the file."""
    sha256: str
    rows: int
    """Passages; those of one file lie together."""
    why: str = ""
    """Why there are none; or of the first line that was left out, which one it is and why."""
    bad: int = 0
    """Lines that were left out."""
    doubles: int = 0
    """How many of those for an id that occurs twice: other files decide that, so they are looked at again."""
    again: bool = False
    """It could not be read, for a reason that may pass, and is tried again although it did not change."""


def read_card(folder: Path) -> IndexCard:
    """Read the card of an index folder and look whether its files are all there.

    Raises:
        CorpusError: the folder is no index, one of another version, or a damaged one.
    """
    card = _parse_card(folder)
    while missing := _missing(folder, card):
        again = _parse_card(folder)
        if again.data == card.data:
            raise CorpusError(
                f"the index in {folder} is damaged: {missing} is missing or has another size; {_hint(folder)}"
            )
        card = again  # a build has put another one in its place just now
    return card


def _parse_card(folder: Path) -> IndexCard:
    if not folder.is_dir():
        raise CorpusError(f"there is no index folder {folder}; {_hint(folder)}")
    if not (folder / CARD).is_file():
        raise CorpusError(f"the folder {folder} is not an index: it has no {CARD}; {_hint(folder)}")
    try:
        content = read_file(folder / CARD, most=_CARD_BYTES, follow=False)
        if (version := _Version.model_validate_json(content).version) != FORMAT:
            raise CorpusError(
                f"the index in {folder} has the version {version}, this one reads {FORMAT}; {_hint(folder)}"
            )
        return IndexCard.model_validate_json(content)
    except (OSError, ValueError) as error:
        raise CorpusError(f"the index in {folder} is damaged: {CARD} cannot be read; {_hint(folder)}") from error


def _hint(folder: Path) -> str:
    return f"build it with: cairn index build CORPUS --out {folder}"


def _missing(folder: Path, card: IndexCard) -> str:
    """The first part that is not there as the card says, with no link in its place; empty where all are."""
    data = folder / card.data
    folders = {data.joinpath(above) for name in card.files for above in PurePosixPath(name).parents} | {data / INDEX}
    folders |= {data / DENSE} if card.dense or (data / DENSE).is_symlink() else set()
    if linked := next((path for path in sorted(folders) if not is_real_folder(path)), None):
        return linked.relative_to(folder).as_posix()
    return next((name for name, size in card.files.items() if _size(data / name) != size), "")


def _size(path: Path) -> int:
    """Of a regular file, in bytes; -1 where there is none, or a link in its place."""
    try:
        state = path.lstat()
    except OSError:
        return -1
    return state.st_size if stat.S_ISREG(state.st_mode) else -1


def read_entries(folder: Path, card: IndexCard) -> list[FileEntry]:
    """What the index keeps of each file, in the order of its passages.

    Raises:
        CorpusError: the list is damaged.
    """
    try:
        lines = read_file(folder / card.data / FILES, most=_ENTRIES_BYTES, follow=False).splitlines()
        return [FileEntry.model_validate_json(line) for line in lines]
    except (OSError, ValueError) as error:
        raise CorpusError(f"the index in {folder} is damaged: {FILES} cannot be read; {_hint(folder)}") from error


def refuse_strange(out: Path) -> None:
    """Never write where something else lies.

    Raises:
        CorpusError: the folder is a file, or holds what is no index.
    """
    if out.exists() and not out.is_dir():
        raise CorpusError(f"{out} is a file; choose a folder for the index")
    if not out.is_dir():
        return
    strange = [path.name for path in out.iterdir() if not _ours(path)]
    if strange and not _is_card(out / CARD):
        raise CorpusError(f"the folder {out} has other files in it; choose a new folder for the index")


def _ours(path: Path) -> bool:
    return path.name in (_LOCK, _NEXT_CARD, VECTORS, CARD) or _is_part(path)


def _is_part(path: Path) -> bool:
    """Whether it is a folder as builds make them: users have files called data-2024.csv, too."""
    return bool(_OWN.fullmatch(path.name)) and is_real_folder(path)


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index, of any version or damaged; other programs have an index.json, too."""
    return (folder / CARD).is_file() and _is_card(folder / CARD)


def _is_card(path: Path) -> bool:
    """Whether it is a card of any version, or was one before it was damaged."""
    try:
        card = from_json(read_file(path, most=_CARD_BYTES, follow=False))
    except ValueError:
        return any(map(_is_part, path.parent.iterdir())) or (path.parent / RECORDS).exists()
    except OSError:
        return False
    if not isinstance(card, dict):
        return False
    said = cast(dict[str, Any], card)
    return isinstance(said.get("version"), int) and "documents" in said


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Generator[None]:
    """Be the only one who writes into an index folder, which is made if it is not there.

    Raises:
        CorpusError: another process writes there, and `wait` is not set.
        OSError: the folder cannot be made.
    """
    made = not folder.exists()
    lock = folder / _LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        _unlink_if_strange(lock)
        try:
            file = os.fdopen(os.open(lock, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600), "ab")
        except FileNotFoundError:
            continue  # another build has just failed and removed the folder
        if not (lock_file(file, wait=wait) or _take_soon(file)):
            file.close()
            raise CorpusError(f"another build is writing to {folder}; wait until it ends")
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), lock.lstat()):
                break
        file.close()  # who held it before has removed it
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        file.close()
        if made:
            with suppress(OSError):
                folder.rmdir()  # only an empty one can be removed


def _take_soon(file: IO[bytes]) -> bool:
    """Try a little longer: a process that a killed build had just started may hold its lock for a moment."""
    until = monotonic() + _PATIENCE_SECONDS
    while monotonic() < until:
        sleep(_PATIENCE_SECONDS / 20)
        if lock_file(file, wait=False):
            return True
    return False


def new_building(folder: Path) -> Path:
    """A folder to write the next index into."""
    building = folder / f"{_BUILDING}{uuid.uuid4().hex[:8]}"
    building.mkdir()
    return building


def new_data_name() -> str:
    return f"{_DATA}{uuid.uuid4().hex[:8]}"


def publish(building: Path, folder: Path, card: IndexCard) -> None:
    """Put a finished index in the place of the older one."""
    for path in building.rglob("*"):
        if path.is_file():
            _sync(path)
    building.rename(folder / card.data)
    first_version = _version(folder / CARD) == 1
    following = folder / _NEXT_CARD
    following.unlink(missing_ok=True)  # whatever lies there: writing through a link would change another file
    with following.open("x", encoding="utf-8") as file:
        file.write(card.model_dump_json(indent=2) + "\n")
    _sync(following)
    following.replace(folder / CARD)
    _sync(folder)
    sweep(folder, keep=card.data)
    for name in _VERSION_1 if first_version else ():
        _remove(folder / name)


def _version(card: Path) -> object:
    try:
        said = from_json(read_file(card, most=_CARD_BYTES, follow=False))
    except (OSError, ValueError):
        return None
    return cast(dict[str, Any], said).get("version") if isinstance(said, dict) else None


def sweep(folder: Path, *, keep: str | None) -> None:
    """Remove what killed builds and older indices left; who holds an old one open goes on with it."""
    for path in folder.iterdir():
        if path.name != keep and _is_part(path):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a file, a folder, or a link, of which only the link itself goes."""
    if is_real_folder(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _unlink_if_strange(path: Path) -> None:
    """Make room for a file of our own where a link or another kind of thing lies."""
    with suppress(OSError):
        if path.is_symlink() or (path.exists() and not is_real_file(path)):
            _remove(path)


def _sync(path: Path) -> None:
    """Have the disk keep what was written, also where the power fails."""
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
