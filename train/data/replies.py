"""What a model replied, by what it was asked: kept line by line, so that nothing is asked twice, also after a kill."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agent.errors import SetupError
from agent.files.foreign import no_link, open_file
from train.data.folder import writing

REPLIES: Final = "replies.jsonl"


def _read(path: Path) -> bytes:
    try:
        with open_file(path, follow=False) as file:
            return file.read()
    except FileNotFoundError:
        return b""


class Replies:
    """A file of replies. Use it as a context."""

    def __init__(self, folder: Path) -> None:
        """Read what is there; a last line that a kill cut off is left out.

        Raises:
            SetupError: a line in the middle is damaged, or the folder cannot be written.
        """
        self._path = folder / REPLIES
        self._kept: dict[str, str] = {}
        with writing(folder):
            raw = _read(self._path)
            whole = raw[: raw.rfind(b"\n") + 1]
            for number, line in enumerate(whole.splitlines(), start=1):
                try:
                    said = json.loads(line)
                    self._kept[str(said["key"])] = str(said["reply"])
                except (ValueError, LookupError, TypeError) as error:
                    why = f"{self._path}, line {number} is damaged; remove it, and this is asked again"
                    raise SetupError(why) from error
            handle = no_link(str(self._path), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._file = os.fdopen(handle, "ab", buffering=0)
            if len(whole) < len(raw):
                self._file.truncate(len(whole))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> str | None:
        return self._kept.get(key)

    def keep(self, key: str, reply: str) -> None:
        """Keep a reply.

        Raises:
            SetupError: the disk is full, or the file cannot be written.
        """
        line = (json.dumps({"key": key, "reply": reply}, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        size = os.fstat(self._file.fileno()).st_size
        with writing(self._path.parent):
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._file.write(rest) or 0 :]
            except OSError:
                self._file.truncate(size)  # half a line would be a damaged one
                raise
        self._kept[key] = reply
