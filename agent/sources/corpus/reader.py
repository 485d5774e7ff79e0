"""Reads HTML and PDF files in a worker process: a parser that hangs, crashes or eats memory costs one file only.

The worker is this module too: it answers one line of JSON for each path on its standard input.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Final, Self

from agent.files.foreign import read_file
from agent.sources.corpus.extract import Extracted, ExtractError, html_text, pdf_text

SECONDS: Final = 60.0
"""A book of a thousand pages takes less."""
MEMORY_BYTES: Final = 4 << 30
"""Address space of the worker, where the system can limit it."""
MAX_BYTES: Final = 512 << 20
MAX_CHARS: Final = 64 << 20
"""Of the text of one file: a book has a million."""
_READERS: Final = {"html": html_text, "pdf": pdf_text}


class FileReader:
    """Owns one worker, which starts with the first file and is started again when it had to be killed."""

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def read(self, path: Path, kind: str) -> Extracted:
        """Read one file.

        Args:
            path: the file.
            kind: html or pdf.

        Raises:
            ExtractError: it has no text that can be read, or reading it took too long.
        """
        if self._worker is None or self._worker.poll() is not None:
            self.close()
            self._worker = _start(self._seconds)
        worker, started = self._worker, perf_counter()
        killer = threading.Timer(self._seconds, worker.kill)
        killer.start()
        try:
            line = _exchange(worker, json.dumps({"path": str(path), "kind": kind}).encode() + b"\n")
        finally:
            killer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            if perf_counter() - started >= self._seconds:
                raise ExtractError(f"reading it took more than {self._seconds:g} s")
            raise ExtractError(f"its reader died (status {worker.returncode})")
        answer = json.loads(line)
        if "why" in answer:
            raise ExtractError(answer["why"])
        return Extracted(**answer | {"pages": tuple(answer["pages"])})

    def close(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.kill()
        worker.communicate()


def _exchange(worker: "subprocess.Popen[bytes]", request: bytes) -> bytes:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(request)
        worker.stdin.flush()
        return worker.stdout.readline()
    except OSError:
        return b""


def _start(seconds: float) -> "subprocess.Popen[bytes]":
    """Start a worker that finds the packages where this process finds them, and runs nothing else of its program."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from agent.sources.corpus.reader import serve; serve({seconds!r})"
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-P", "-c", code], stdin=pipe, stdout=pipe, stderr=nothing)


def serve(seconds: float) -> None:
    """Be the worker: until standard input ends, read the files that it names."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    _limit_memory()
    for line in sys.stdin.buffer:
        _end_after(seconds)
        request = json.loads(line)
        answers.write(json.dumps(_answer(Path(request["path"]), request["kind"])).encode() + b"\n")
        answers.flush()


def _answer(path: Path, kind: str) -> dict[str, object]:
    try:
        found = _READERS[kind](read_file(path, most=MAX_BYTES, follow=False))
        if len(found.text) > MAX_CHARS:
            return {"why": f"it unpacks to more than {MAX_CHARS >> 20} million characters"}
        return vars(found)
    except ExtractError as error:
        return {"why": str(error)}
    except MemoryError:
        return {"why": f"reading it takes more than {MEMORY_BYTES >> 30} GB of memory"}
    except OSError as error:
        return {"why": unopened(error)}
    except Exception as error:  # noqa: BLE001 (a parser may raise anything; this is the boundary of its process)
        return {"why": f"its parser failed ({type(error).__name__}: {error})"}


def unopened(error: OSError) -> str:
    """Why a file cannot be read, as a sentence."""
    why = error.strerror or str(error)
    return why if why.startswith("it ") else f"it cannot be opened: {why}"


def _limit_memory() -> None:
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ImportError, ValueError, OSError):
        pass  # not every system has such a limit


def _end_after(seconds: float) -> None:
    """Whoever should kill this process may have been killed itself."""
    try:
        import signal

        signal.alarm(int(seconds) + 5)
    except (ImportError, AttributeError):
        pass
