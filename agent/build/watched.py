"""A folder of documents that is watched while a server runs: when its files change, its index is updated and swapped.

A thread watches. The index is updated by a process of its own, so the event loop never waits, and what did not change
is kept. Searches go on with the old index until the new one is open; those on their way end with the one they began
with. The library `watchfiles` reports changes at once; every half minute the files are looked at anyway, since network
drives report none.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Final

from agent.errors import AgentError, CorpusError, SetupError
from agent.parallel.processes import spawning
from agent.sources.base import Closable, SearchRequest, SearchResult, Source, close_sources
from agent.sources.corpus.finding import find_files
from agent.sources.corpus.folder import is_index
from agent.sources.corpus.source import CACHE, cached_index

QUIET_MS: Final = 400
"""Without a change, before the index is updated …"""
LONGEST_MS: Final = 2_000
"""… and after so long anyway."""
LOOK_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0
"""For the thread to end."""
_STEP_SECONDS: Final = 0.1
_TURN_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)

Signature = dict[str, tuple[int, int]]
"""Of each file its size, and when it was changed."""


class _Held:
    """An open index, with how many searches use it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.users = 0
        self.retired = False


class WatchedSource:
    """The documents of a folder as they are now."""

    def __init__(
        self,
        path: Path,
        open_index: Callable[[Path], Source],
        *,
        cache: Path = CACHE,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Index the documents, and begin to watch them.

        Args:
            path: a folder of documents, or one file.
            open_index: opens the folder of an index.
            cache: where the index is kept.
            look_seconds: between looks at the files when nothing was reported.

        Raises:
            CorpusError: documents that cannot be read.
            SetupError: `path` is itself an index.
        """
        if is_index(path):
            raise SetupError(
                f"{path} is an index, and what is watched is documents: name their folder with --corpus, "
                f"or leave --watch out and update the index with: cairn index build DOCS --out {path}"
            )
        self._problems = {"index": "", "watch": ""}
        self._path, self._open, self._cache = path, open_index, cache
        self._look_seconds = look_seconds
        self._seen = _signature(path)
        self._lock = threading.Lock()
        self._current = _Held(open_index(cached_index([path], cache=cache)))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watched documents", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why the last change is not in the index yet, or comes late; empty where all is well."""
        return self._problems["index"] or self._problems["watch"]

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search the index that is current when the search begins.

        Raises:
            SourceError: as the index does.
        """
        with self._lock:
            held = self._current
            held.users += 1
        try:
            found = await held.source.search(request)
            return replace(found, notes=(*found.notes, self.problem)) if self.problem else found
        finally:
            with self._lock:
                held.users -= 1
                over = held.retired and not held.users
            if over:
                await close_sources([held.source])

    async def aclose(self) -> None:
        """Stop watching; an update on its way is given up."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join, STOP_SECONDS)
        await close_sources([self._current.source])

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except (OSError, RuntimeError) as error:
                self._look()
                gone = not self._path.exists()
                late = f"{self._path} is looked at every {self._look_seconds:g} s: it cannot be watched ({error})"
                self._report("watch", "" if gone else late)  # the index says that it is gone
                self._stop.wait(min(self._look_seconds, _TURN_SECONDS) if gone else self._look_seconds)

    def _follow(self) -> None:
        """Look whenever a change is reported, and from time to time; ends where another folder takes this one's place.

        Raises:
            OSError: the folder is gone, or the system's limit of watches is reached.
            RuntimeError: as the library says the same.
        """
        from watchfiles import watch

        inode, due = self._path.stat().st_ino, 0.0  # due at once, for what changed before there was a watch
        turns = watch(
            self._path,
            watch_filter=None,
            stop_event=self._stop,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=int(min(self._look_seconds, _TURN_SECONDS) * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        for changes in turns:
            self._report("watch", "")
            if self._path.stat().st_ino != inode:
                return
            if changes or monotonic() >= due:
                self._look()
                due = monotonic() + self._look_seconds

    def _look(self) -> None:
        """Bring the index up to date where a file changed."""
        try:
            now = _signature(self._path)
            if now != self._seen:
                folder = self._updated()
                if folder is None:
                    return  # it ends
                self._swap(self._open(folder))
                self._seen = now
            self._report("index", "")
        except (AgentError, OSError) as error:
            self._report("index", f"the changes of {self._path} cannot be searched yet: {error}")

    def _updated(self) -> Path | None:
        """The index after an update, in a process of its own; None where watching ends meanwhile.

        Raises:
            CorpusError: documents that cannot be read, or the process died.
        """
        context = spawning()
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_update, args=(self._path, self._cache, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            while not ours.poll(_STEP_SECONDS):
                if self._stop.is_set():
                    return None
            folder, why = json.loads(ours.recv_bytes())
            process.join(STOP_SECONDS)
        except EOFError:
            raise CorpusError("the process that updates the index died") from None
        finally:
            process.kill()
            process.join()
            ours.close()
        if why:
            raise CorpusError(why)
        return Path(folder)

    def _swap(self, source: Source) -> None:
        with self._lock:
            old, self._current = self._current, _Held(source)
            old.retired = True
            idle = not old.users
        if idle and isinstance(old.source, Closable):
            asyncio.run(close_sources([old.source]))

    def _report(self, about: str, why: str) -> None:
        if why and why != self._problems[about]:
            _log.warning("%s", why)
        self._problems[about] = why


def _update(path: Path, cache: Path, into: Connection) -> None:
    """Update the index of these documents, in a process of its own."""
    try:
        said = str(cached_index([path], cache=cache)), ""
    except AgentError as error:
        said = "", str(error)
    into.send_bytes(json.dumps(said).encode())


def _signature(path: Path) -> Signature:
    found: Signature = {}
    for file in find_files([path]).files:
        try:
            state = file.place.stat()
        except OSError:
            continue  # it went away just now
        found[file.name] = (state.st_size, state.st_mtime_ns)
    return found
