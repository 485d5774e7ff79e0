"""The process that extracts: one request after the other on stdin, its answers on stdout, each with its length before.

It holds no keys (its environment is empty), limits its own memory, and ends by itself where the process that started it
is gone or where one request takes too long. A document is named by its path, a page comes with its bytes.
"""

import json
import os
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Final

from agent.sources.extract.document import read_document, reader_of
from agent.sources.extract.page import read_page
from agent.sources.extract.text import Extracted, ExtractError

LENGTH: Final = struct.Struct(">I")
GRACE_SECONDS: Final = 2
"""After a request's time, when no one has killed this process."""
PAGE_SHARE: Final = 0.7
"""Of a request's time, in which the pages of a PDF are read one by one; the rest is for the answer."""


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that started this ends it
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # what a library prints must not end up between two answers
    megabytes = int(sys.argv[1])
    _limit_memory(megabytes << 20)
    while (head := _read(requests)) is not None:
        body = _read(requests)
        if body is None:
            return
        request = json.loads(head)
        _load(request["kind"], request["how"])
        _write(answers, {"started": True})
        _alarm(int(request["seconds"]) + GRACE_SECONDS)
        answer = _answer(request, body, megabytes)
        _alarm(0)
        _write(answers, answer)
        if "broken" in answer:
            return


def _answer(request: dict[str, Any], body: bytes, megabytes: int) -> dict[str, Any]:
    """What was found, or why nothing was; `broken`: this process is used up."""
    try:
        return asdict(_extract(body, **request))
    except ExtractError as error:
        return {"why": str(error)}
    except MemoryError:
        most = f"{megabytes >> 10} GB" if megabytes >= 1024 else f"{megabytes} MB"
        return {"why": f"reading it takes more than {most} of memory: save it in smaller parts", "broken": True}
    except Exception as error:  # noqa: BLE001 - a stranger's file, four parsers: whatever they raise is an answer
        detail = f": {error}" if request["how"] == "document" else ""  # what a page says belongs into no note
        return {"why": f"its parser failed ({type(error).__name__}{detail})", "broken": True}


def _extract(body: bytes, *, kind: Any, charset: str, url: str, how: Any, seconds: float) -> Extracted:
    if how == "document":
        return read_document(Path(os.fsdecode(body)), kind)
    return read_page(body, kind=kind, charset=charset, url=url, how=how, seconds=PAGE_SHARE * seconds)


def _load(kind: str, how: str) -> None:
    """Import before the request's time begins."""
    if how == "document":
        reader_of(kind)
    if kind == "pdf":
        import pypdf  # noqa: F401  # pyright: ignore[reportUnusedImport]
    elif kind == "html" and how != "fast":
        import trafilatura  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import resiliparse  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _limit_memory(most: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):  # not every system has such a limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
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
