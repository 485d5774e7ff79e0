"""A library of many documents: how long and with how much memory it is indexed, after a kill too, and searched.

The store, the folder, the process that indexes and the searches are the server's own; only HTTP is left out.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.errors import SetupError
from agent.sources.base import SearchRequest, Source
from lab.benchmarks.percentiles import percentiles
from server.libraries.folder import LibraryFolder
from server.libraries.manager import LibraryManager, Quota
from server.store import RunStore
from server.store.database import Database

_WORDS: Final = 60_000
_STOP_WORDS: Final = 150
_SENTENCE: Final = 14
"""Words."""
_PARAGRAPH: Final = 6
"""Sentences."""
_LOOK_SECONDS: Final = 0.25
_WITHOUT_LIMITS: Final = Quota(1 << 40, 1 << 50, 1 << 30)

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class LibraryFigures:
    """Of one library."""

    documents: int
    megabytes: float
    passages: int
    upload_seconds: float
    index_seconds: float
    """Until everything can be found, the kill included."""
    kept_after_kill: int
    """Documents that were indexed already when the process that indexes was killed, and were not read again."""
    indexing_peak_mb: float
    """The most memory of the process that indexes."""
    server_mb: float
    """Memory of the process that searches, with the whole library open."""
    search_ms_p50: float
    search_ms_p99: float
    index_mb: float
    """On disk."""


def vocabulary() -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """Pseudo-words, the most frequent first, and how frequent each one is (Zipf)."""
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(random.choice(letters, size)) for size in random.integers(2, 11, _WORDS)])
    weights = 1 / np.arange(1, _WORDS + 1)
    return words, weights / weights.sum()


def texts(count: int, megabytes: float, *, seed: int = 0) -> Iterator[str]:
    """Documents of pseudo-words that are as unevenly frequent as those of a language (Zipf), with headings."""
    words, weights = vocabulary()
    random = np.random.default_rng(seed)
    per_document = int(megabytes * 1e6 / count / 7)
    for number in range(count):
        drawn = words[random.choice(_WORDS, per_document, p=weights)]
        lines = [f"# {' '.join(drawn[:4])} {number}", ""]
        for at in range(0, per_document, _SENTENCE):
            end = "\n\n" if at // _SENTENCE % _PARAGRAPH == _PARAGRAPH - 1 else " "
            lines.append(f"{' '.join(drawn[at : at + _SENTENCE]).capitalize()}.{end}")
        yield "\n".join(lines[:2]) + "\n" + "".join(lines[2:])


async def measure(
    *, documents: int, megabytes: float, queries: int = 500, folder: Path | None = None, progress: Progress
) -> LibraryFigures:
    """Fill a library, kill its indexing once, and search it.

    Args:
        documents: how many there are.
        megabytes: of all of them together.
        queries: of two to six words each, one after the other.
        folder: where it is kept meanwhile; None: a temporary one.
        progress: hears of the stage, how much is done, and of how much.

    Raises:
        SetupError: the index was not finished.
    """
    place = Path(tempfile.mkdtemp(prefix="cairn-bench-", dir=folder))
    store = RunStore(Database(str(place / "runs.sqlite")))
    manager = LibraryManager(store, LibraryFolder(place / "libraries"), quota=_WITHOUT_LIMITS)
    try:
        await manager.open()
        return await _measured(manager, place, documents, megabytes, queries, progress)
    finally:
        await manager.aclose()
        await store.aclose()
        shutil.rmtree(place, ignore_errors=True)


async def _measured(
    manager: LibraryManager, place: Path, documents: int, megabytes: float, queries: int, progress: Progress
) -> LibraryFigures:
    library = await manager.add_library("bench", {}, key_id="")
    began = perf_counter()
    size = 0
    files = []
    for number, text in enumerate(texts(documents, megabytes)):
        upload = manager.upload()
        await upload.write(text.encode())
        await upload.finish()
        files.append(await manager.keep(upload, f"document {number}.md", key_id=""))
        size += upload.bytes
        progress("uploading", number + 1, documents)
    for file in files:
        await manager.add(library.id, file)
    uploaded = perf_counter()
    peak, kept = await _indexed(manager, library.id, documents, progress)
    indexed = perf_counter()
    source = await manager.source([library.id])
    times = await _searched(source, queries)
    counts = (await manager.counts([library]))[library.id]
    if counts.indexed != documents:
        raise SetupError(f"{documents - counts.indexed} documents were not indexed; the log says why")
    found = [await manager.rows.member(library.id, file.id) for file in files]
    milliseconds = percentiles([1000 * seconds for seconds in times])
    return LibraryFigures(
        documents=documents,
        megabytes=size / 1e6,
        passages=sum(member.passages for member in found if member),
        upload_seconds=uploaded - began,
        index_seconds=indexed - uploaded,
        kept_after_kill=kept,
        indexing_peak_mb=peak,
        server_mb=_status(os.getpid(), "VmRSS"),
        search_ms_p50=milliseconds[49],
        search_ms_p99=milliseconds[98],
        index_mb=sum(path.stat().st_size for path in (place / "libraries" / "indices").rglob("*") if path.is_file())
        / 1e6,
    )


async def _indexed(manager: LibraryManager, library: str, documents: int, progress: Progress) -> tuple[float, int]:
    """Wait until all is indexed, and kill the process that does it once, half way; gives its peak memory in MB, and how
    many documents were indexed before the kill.
    """  # noqa: D205 - one sentence over two lines
    peak, kept = 0.0, 0
    while True:
        counts = (await manager.rows.counts([library]))[library]
        progress("indexing", counts.indexed, documents)
        if not counts.waiting:
            return peak, kept
        for process in _children():
            peak = max(peak, _status(process, "VmHWM"))
            if not kept and counts.indexed * 2 >= documents:
                kept = counts.indexed
                os.kill(process, signal.SIGKILL)
        await asyncio.sleep(_LOOK_SECONDS)


async def _searched(source: Source, queries: int) -> list[float]:
    """Seconds of each search. The first ones, which open files, don't count.

    Words are drawn as often as they occur, but for the most frequent ones, which a real query's stop words are.
    """
    words, weights = vocabulary()
    words, weights = words[_STOP_WORDS:], weights[_STOP_WORDS:] / weights[_STOP_WORDS:].sum()
    random = np.random.default_rng(1)
    times: list[float] = []
    for number in range(queries + 20):
        query = " ".join(random.choice(words, int(random.integers(2, 7)), p=weights))
        began = perf_counter()
        await source.search(SearchRequest(query, 10))
        if number >= 20:
            times.append(perf_counter() - began)
    return times


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _children() -> list[int]:
    """The processes of this one that index."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            parent = (path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"server.libraries.build" in command and int(parent) == os.getpid():
            found.append(int(path.name))
    return found


def _status(process: int, field: str) -> float:
    """Memory of a process in MB; 0 where it is gone, or this system does not say."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith(f"{field}:")), 0.0)
