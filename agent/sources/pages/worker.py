"""The process that extracts: one request after the other on stdin, its answers on stdout, each with its length before.

It holds no keys (its environment is empty), limits its own memory, and ends by itself where the process that started it
is gone or where one page takes it too long.
"""

import json
import os
import signal
import struct
import sys
from dataclasses import asdict
from typing import Any, BinaryIO, Final

from agent.sources.pages.extract import extract

LENGTH: Final = struct.Struct(">I")
GRACE_SECONDS: Final = 2
"""After a page's time, when nobody has killed this process."""


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that started this ends it
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # what a library prints must not end up between two answers
    _limit_memory(int(sys.argv[1]))
    while (head := _read(requests)) is not None:
        body = _read(requests)
        if body is None:
            return
        asked = json.loads(head)
        if not _serve(asked, body, answers):
            return


def _serve(asked: dict[str, Any], body: bytes, answers: BinaryIO) -> bool:
    """Answer one request twice, when its libraries are there and when it is done; False: this process is used up."""
    _load(asked["kind"], asked["how"])
    _write(answers, {"started": True})
    _alarm(int(asked["seconds"]) + GRACE_SECONDS)
    fit = True
    try:
        answer: dict[str, Any] = asdict(extract(body, **asked))
    except MemoryError:
        answer, fit = {"error": "it needs too much memory"}, False
    except Exception as error:  # noqa: BLE001 - a stranger's page, four parsers: whatever they raise is an answer
        answer = {"error": f"{type(error).__name__} in its text"}
    _alarm(0)
    _write(answers, answer)
    return fit


def _load(kind: str, how: str) -> None:
    """Import before the page's time begins."""
    if kind == "pdf":
        import pypdf  # noqa: F401  # pyright: ignore[reportUnusedImport]
    elif kind == "html" and how == "whole":
        import trafilatura  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import resiliparse  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _limit_memory(megabytes: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _alarm(seconds: int) -> None:
    if sys.platform != "win32":
        signal.alarm(seconds)  # its default action ends the process, whatever it is doing


def _read(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size = LENGTH.unpack(head)[0]
    body = stream.read(size)
    return body if len(body) == size else None


def _write(stream: BinaryIO, answer: dict[str, Any]) -> None:
    data = json.dumps(answer, ensure_ascii=False).encode("utf-8", errors="replace")
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    main()
