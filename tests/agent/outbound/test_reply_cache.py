"""Replies in a file: kept as they come, read again after a kill, and refused where they were changed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.errors import SetupError
from agent.outbound.reply_cache import ReplyCache, reply_key


def test_a_reply_is_there_at_once_and_in_a_later_run(tmp_path: Path):
    cache = ReplyCache(tmp_path / "replies.jsonl")
    key = reply_key("m", "question")
    assert cache.get(key) is None
    cache.keep(key, "ünd\n\u2028 \ud800")
    assert cache.get(key) == "ünd\n\u2028 \ud800"
    assert ReplyCache(tmp_path / "replies.jsonl").get(key) == "ünd\n\u2028 ?"


def test_the_parts_of_a_key_do_not_run_into_each_other():
    assert reply_key("a", "bc") != reply_key("ab", "c")


@pytest.mark.parametrize(
    "line",
    [
        '{"key": "k", "reply": "correct"}\n',  # as an older judge wrote it
        '{"key": "k", "reply": "correct", "more": 1}\n',
    ],
)
def test_files_of_older_runs_are_read(tmp_path: Path, line: str):
    (tmp_path / "judge.jsonl").write_text(line, encoding="utf-8")
    assert ReplyCache(tmp_path / "judge.jsonl").get("k") == "correct"


def test_without_a_file_replies_are_in_memory():
    cache = ReplyCache()
    cache.keep("k", "yes")
    assert cache.get("k") == "yes"


def test_a_line_that_a_kill_cut_off_is_removed_and_the_next_one_is_whole(tmp_path: Path):
    path = tmp_path / "replies.jsonl"
    ReplyCache(path).keep("a", "one")
    path.write_bytes(path.read_bytes() + b'{"key": "b", "repl')
    cache = ReplyCache(path)
    assert (cache.get("a"), cache.get("b")) == ("one", None)
    cache.keep("b", "two")
    assert [json.loads(line)["reply"] for line in path.read_bytes().splitlines()] == ["one", "two"]


@pytest.mark.parametrize("line", [b"7", b"{", b'{"key": "k"}', b"[]", b"\xff"])
def test_a_damaged_line_is_named_with_its_number(tmp_path: Path, line: bytes):
    path = tmp_path / "replies.jsonl"
    ReplyCache(path).keep("a", "one")
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(SetupError, match="line 2 is damaged; remove it"):
        ReplyCache(path)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_neither_read_nor_written(tmp_path: Path, kind: str):
    path, outside = tmp_path / "replies.jsonl", tmp_path / "thesis.txt"
    outside.write_bytes(b"mine\n")
    cache = ReplyCache(path)
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(SetupError, match="cannot be read or written"):
        ReplyCache(path)
    with pytest.raises(SetupError, match="cannot be read or written"):
        cache.keep("k", "x")
    assert outside.read_bytes() == b"mine\n"


def test_a_full_disk_leaves_whole_lines_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "replies.jsonl"
    cache = ReplyCache(path)
    cache.keep("a", "one")
    before = path.read_bytes()

    class Full:
        """A file that takes four bytes and no more."""

        def __init__(self, file: Any) -> None:
            self._file, self._left = file, 4

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *ended: object) -> None:
            self._file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, data: bytes) -> int:
            if not self._left:
                raise OSError(28, "No space left on device")
            written = self._file.write(bytes(data[: self._left]))
            self._left -= written
            return written

    def open_full(*args: Any, **how: Any) -> Full:
        return Full(open(*args, **how))

    monkeypatch.setattr("agent.outbound.reply_cache.open", open_full, raising=False)
    with pytest.raises(SetupError, match=r"No space left on device.*run the same command again"):
        cache.keep("b", "two")
    assert path.read_bytes() == before
    assert cache.get("b") is None
