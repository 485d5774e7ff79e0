"""Your documents as a source: an index on disk, written as a whole or not at all, opened by mmap."""

import asyncio
import hashlib
import mmap
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel

from agent.errors import CorpusError
from agent.evidence import Frozen, Passage
from agent.plan import Filter
from agent.sources.bm25 import K1, B, Bm25Index
from agent.sources.documents import PASSAGE_CHARS, RECORD_CHARS, Document, document_files, read_documents

CARD: Final = "index.json"
RECORDS: Final = "documents.jsonl"
OFFSETS: Final = "offsets.npy"
INDEX: Final = "bm25"
TITLE_WEIGHT: Final = 2
"""How often a title counts: what a document is about matters more than what it mentions."""
THREAD_ROWS: Final = 20_000
"""From here on a search takes so long that it leaves the event loop."""
CACHE: Final = Path.home() / ".cache" / "cairn" / "indexes"
FORMAT: Final = 1


class Card(Frozen):
    """What an index folder says of itself."""

    version: int = FORMAT
    documents: int
    """Files and JSON lines are cut into passages; this counts what is searched and shown."""
    dated: int
    with_url: int
    sha256: str
    """Of the documents' file: two indices with the same hash hold the same."""
    files: dict[str, int]
    """Every other file of the index, with its size in bytes."""
    k1: float = K1
    b: float = B
    title_weight: int = TITLE_WEIGHT


class _Version(BaseModel):
    """What a card of any version has."""

    version: int


Progress = Callable[[Literal["reading", "writing"], int, int], None]
"""Is told how far the building came: the stage, and how many bytes of input are done, of how many."""


def _silent(stage: Literal["reading", "writing"], done: int, total: int) -> None:
    """Nobody watches."""


def build_index(paths: Sequence[Path], out: Path, *, progress: Progress = _silent) -> Card:
    """Index documents into the folder `out`; an index that is there already is replaced.

    The folder appears when everything is written: whatever ends the work before leaves what was there.

    Raises:
        CorpusError: documents that cannot be read, or `out` holds something that is no index.
    """
    _refuse_strange(out)
    total = sum(file.stat().st_size for file in document_files(paths))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        building = _beside(out, "building")
        building.mkdir()
    except OSError as error:
        raise CorpusError(f"the index cannot be written to {out}: {error}") from error
    try:
        card = _write(paths, building, total, progress)
        _replace(building, out)
    except OSError as error:
        raise CorpusError(f"the index cannot be written to {out}: {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return card


def _refuse_strange(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()) and not (out / CARD).exists():
        raise CorpusError(f"the folder {out} holds something else; choose a new one for the index")
    if out.exists() and not out.is_dir():
        raise CorpusError(f"{out} is a file; choose a folder for the index")


def _replace(building: Path, out: Path) -> None:
    """Put the finished folder in its place; an older index is moved aside first."""
    old = _beside(out, "old")
    if out.exists():
        out.rename(old)
    building.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _beside(out: Path, state: str) -> Path:
    return out.parent / f".{out.name}.{state}-{uuid.uuid4().hex[:8]}"


class _Recorder:
    """Writes documents one by one and keeps count."""

    def __init__(self, paths: Sequence[Path], folder: Path, total: int, progress: Progress) -> None:
        self.offsets = [0]
        self.dated = self.with_url = 0
        self.hash = hashlib.sha256()
        self._paths, self._folder, self._total, self._progress = paths, folder, total, progress
        self._read = 0

    def texts(self) -> Iterator[str]:
        """What is indexed of each document, which is written on the way."""
        with (self._folder / RECORDS).open("wb") as records:
            for document in read_documents(self._paths, tick=self._tick):
                line = document.model_dump_json().encode() + b"\n"
                records.write(line)
                self.hash.update(line)
                self.offsets.append(self.offsets[-1] + len(line))
                self.dated += bool(document.date)
                self.with_url += bool(document.url)
                yield f"{document.title} " * TITLE_WEIGHT + document.text

    def _tick(self, read: int) -> None:
        self._read += read
        self._progress("reading", self._read, self._total)


def _write(paths: Sequence[Path], folder: Path, total: int, progress: Progress) -> Card:
    recorder = _Recorder(paths, folder, total, progress)
    index = Bm25Index.build(recorder.texts())
    progress("writing", total, total)
    index.save(folder / INDEX)
    np.save(folder / OFFSETS, np.array(recorder.offsets, dtype=np.int64))
    card = Card(
        documents=index.rows,
        dated=recorder.dated,
        with_url=recorder.with_url,
        sha256=recorder.hash.hexdigest(),
        files={p.relative_to(folder).as_posix(): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()},
    )
    (folder / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return card


def read_card(folder: Path) -> Card:
    """Read the card of an index folder and look whether its files are all there.

    Raises:
        CorpusError: the folder is no index, one of another version, or a damaged one.
    """
    again = f"build it with: cairn index build CORPUS --out {folder}"
    if not folder.is_dir():
        raise CorpusError(f"there is no index folder {folder}; {again}")
    if not (folder / CARD).is_file():
        raise CorpusError(f"the folder {folder} is no index: it has no {CARD}; {again}")
    try:
        content = (folder / CARD).read_bytes()
        if (version := _Version.model_validate_json(content).version) != FORMAT:
            raise CorpusError(f"the index in {folder} has the version {version}, this one reads {FORMAT}; {again}")
        card = Card.model_validate_json(content)
    except (OSError, ValueError) as error:
        raise CorpusError(f"the index in {folder} is damaged: {CARD} cannot be read; {again}") from error
    for name, size in card.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise CorpusError(f"the index in {folder} is damaged: {name} is missing or has another size; {again}")
    return card


class CorpusSource:
    """An index as a `Source`. Filters: after, before and site, where the documents have dates and addresses."""

    def __init__(self, folder: Path, *, name: str = "corpus") -> None:
        """Open an index folder.

        Raises:
            CorpusError: the folder is no index, or a damaged one.
        """
        self.card = read_card(folder)
        self.name = name
        self._index = Bm25Index.open(folder / INDEX)
        self._offsets: list[int] = np.load(folder / OFFSETS).tolist()
        if self._index.rows != self.card.documents or len(self._offsets) != self.card.documents + 1:
            raise CorpusError(f"the index in {folder} is damaged: its parts do not fit; build it again")
        with (folder / RECORDS).open("rb") as records:
            self._records = mmap.mmap(records.fileno(), 0, access=mmap.ACCESS_READ)

    @classmethod
    def open(cls, path: Path, *, name: str = "corpus", cache: Path = CACHE) -> Self:
        """Open an index folder; of a file or folder of documents, an index is made in the cache and opened.

        Raises:
            CorpusError: there is nothing, nothing that can be read, or a damaged index.
        """
        if (path / CARD).is_file():
            return cls(path, name=name)
        return cls(cached_index([path], cache=cache), name=name)

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        if self.card.documents < THREAD_ROWS:
            return self.find(query, limit=limit, filters=filters)
        return await asyncio.to_thread(self.find, query, limit=limit, filters=filters)

    def find(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Search right here: best first, at most `limit`."""
        wanted = [f for f in filters if self._honours(f)]
        found: list[Passage] = []
        for row, score in self._index.search(query, self.card.documents if wanted else limit):
            document = self._document(row)
            if all(allows(document, condition) for condition in wanted):
                found.append(_passage(document, source=self.name, score=score, rank=len(found) + 1))
            if len(found) >= limit:
                break
        return found

    def _honours(self, condition: Filter) -> bool:
        """A condition on what no document says would only hide everything."""
        return bool(self.card.with_url) if condition.name == "site" else condition.name in ("after", "before")

    def _document(self, row: int) -> Document:
        return Document.model_validate_json(self._records[self._offsets[row] : self._offsets[row + 1]])


def _passage(document: Document, *, source: str, score: float, rank: int) -> Passage:
    return Passage(
        id=document.id,
        source=source,
        title=document.title,
        text=document.text,
        url=document.url,
        date=document.date,
        score=score,
        rank=rank,
    )


def allows(document: Document, condition: Filter) -> bool:
    """Whether a document meets a condition. One without a date passes: nothing is known that would exclude it."""
    length = len(condition.value)
    match condition.name:
        case "after":
            return not document.date or document.date >= condition.value
        case "before":
            return not document.date or document.date[:length] <= condition.value
        case "site":
            host = urlsplit(document.url).hostname or ""
            wanted = condition.value.lower().removeprefix("www.")
            return host.removeprefix("www.") == wanted or host.endswith(f".{wanted}")
        case _:
            return True


def cached_index(paths: Sequence[Path], *, cache: Path = CACHE) -> Path:
    """Give an index of these documents: the one that was made of the very same files before, or a new one.

    Raises:
        CorpusError: documents that cannot be read.
    """
    key = hashlib.sha256(repr((FORMAT, K1, B, TITLE_WEIGHT, PASSAGE_CHARS, RECORD_CHARS)).encode())
    for file in document_files(paths):
        state = file.stat()
        key.update(repr((file.resolve().as_posix(), state.st_size, state.st_mtime_ns)).encode())
    folder = cache / key.hexdigest()[:24]
    try:
        read_card(folder)
    except CorpusError:
        build_index(paths, folder)
    return folder
