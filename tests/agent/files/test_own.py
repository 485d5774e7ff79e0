"""Bounded reading, and folders and files of the user alone."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent.files.own import NotPrivate, make_private, private_file, private_folder, read_bounded

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are those of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_bounded(tmp_path / "a", most=10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes"):
        read_bounded(tmp_path / "a", most=9)


def test_a_pipe_is_not_waited_for_and_a_device_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_bounded(path)
    with pytest.raises(OSError, match="larger than"):
        read_bounded(Path("/dev/zero"), regular=False)
    assert read_bounded(Path(os.devnull), regular=False) == b""


def test_a_private_folder_is_made_with_all_its_parents(tmp_path: Path):
    folder = private_folder(tmp_path / "a" / "b")
    assert (mode(folder), mode(folder.parent)) == (0o700, 0o700)
    assert private_folder(folder) == folder


@pytest.mark.parametrize("rights", [0o777, 0o1777])
def test_a_folder_that_everyone_may_write_into_is_refused(tmp_path: Path, rights: int):
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(rights)
    with pytest.raises(NotPrivate, match="chmod go-w"):
        private_folder(tmp_path / "a")


def test_a_private_file_loses_the_rights_of_others(tmp_path: Path):
    (tmp_path / "a").write_text("kept", encoding="utf-8")
    (tmp_path / "a").chmod(0o666)
    assert mode(private_file(tmp_path / "a")) == 0o600
    assert (tmp_path / "a").read_text(encoding="utf-8") == "kept"
    assert mode(private_file(tmp_path / "new")) == 0o600


def test_a_link_or_a_pipe_is_no_private_file(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPrivate, match="is a link"):
        private_file(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotPrivate, match="not a regular file"):
        private_file(tmp_path / "pipe")


def test_a_folder_is_made_private_without_what_its_links_name(tmp_path: Path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.write_text("x", encoding="utf-8")
    other.chmod(0o644)
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a").write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(other)
    make_private(folder)
    assert (mode(folder), mode(folder / "in"), mode(folder / "in" / "a"), mode(other)) == (0o700, 0o700, 0o600, 0o644)


def test_looking_at_a_private_file_ends_no_lock_of_sqlite_on_it(tmp_path: Path):
    path = private_file(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as held:
        held.execute("CREATE TABLE t (x)")
        held.execute("BEGIN EXCLUSIVE")
        private_file(path)
        begin = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN EXCLUSIVE')"
        tried = subprocess.run([sys.executable, "-P", "-c", begin], capture_output=True, text=True, check=False)
    assert "database is locked" in tried.stderr
