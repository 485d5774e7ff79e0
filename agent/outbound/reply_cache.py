"""Replies of a language model by what was requested: a line of JSON each, so a killed run requests nothing twice."""

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import SetupError
from agent.files.foreign import no_link, open_file


def reply_key(*parts: str) -> str:
    """The key of a reply: a digest of the model and of everything that was sent to it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class ReplyCache:
    """Replies in memory, and in a file where there is one. A line is `{"key": …, "reply": …}`."""

    def __init__(self, path: Path | None = None) -> None:
        """Read what is there; a last line that a kill cut off is removed.

        Raises:
            SetupError: a line in the middle is damaged, or the file cannot be read.
        """
        self._path = path
        self._replies: dict[str, str] = {}
        if path is not None:
            self._read(path)

    def get(self, key: str) -> str | None:
        return self._replies.get(key)

    def keep(self, key: str, reply: str) -> None:
        """Keep a reply.

        Raises:
            SetupError: the disk is full, or the file cannot be written.
        """
        if self._path is not None:
            line = json.dumps({"key": key, "reply": reply}, ensure_ascii=False) + "\n"
            with _file_errors(self._path), open(self._path, "ab", buffering=0, opener=no_link) as file:
                size = os.fstat(file.fileno()).st_size
                rest = memoryview(line.encode("utf-8", "replace"))
                try:
                    while rest:
                        rest = rest[file.write(rest) or 0 :]
                except OSError:
                    file.truncate(size)  # half a line would be a damaged one
                    raise
        self._replies[key] = reply

    def _read(self, path: Path) -> None:
        for number, line in enumerate(_whole_lines(path), start=1):
            try:
                row = json.loads(line)
                self._replies[str(row["key"])] = str(row["reply"])
            except (ValueError, LookupError, TypeError) as error:
                why = f"{path}, line {number} is damaged; remove it, and this reply is requested again"
                raise SetupError(why) from error


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of a file; what stands behind the last end of a line is removed from it."""
    with _file_errors(path):
        try:
            with open_file(path, follow=False) as file:
                raw = file.read()
        except FileNotFoundError:
            return []
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            with open(path, "ab", opener=no_link) as file:
                file.truncate(len(whole))
        return whole.splitlines()


@contextmanager
def _file_errors(path: Path) -> Generator[None]:
    """Say in a sentence why a file cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"{path} cannot be read or written: {error.strerror or error}; its contents are intact: free some "
            "space, or remove what is in its place, then run the same command again"
        ) from error
