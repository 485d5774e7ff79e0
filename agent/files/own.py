"""Files as Cairn trusts them: small ones are read with a bound, and its own are for the user alone.

What a user names by `--out` is not meant here: it keeps the mode that the system gives it.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from agent.errors import SetupError

SETTINGS_BYTES: Final = 1 << 20
"""Of a settings file, a protocol file, or a text beside it."""
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class NotPrivate(SetupError):
    """A folder or file of Cairn's that other users could change."""


def read_bounded(path: Path, *, most: int = SETTINGS_BYTES, regular: bool = True) -> bytes:
    """Read a small file whole.

    Args:
        path: the file. A link is followed.
        most: bytes that it may have.
        regular: refuse pipes and devices. Without it they are read, up to `most` bytes.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    if regular:
        flags |= getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its writer
    with os.fdopen(os.open(path, flags), "rb") as file:
        if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"{path} is larger than {most:,} bytes")
    return content


def private_folder(folder: Path) -> Path:
    """Make a folder for the user alone (0700), or check that no other user can write into the one that is there.

    A folder of root's may be writable by a group: that is how an administrator or Kubernetes hands out a volume.

    Raises:
        NotPrivate: another user owns it, or others may write into it.
        OSError: it cannot be made.
    """
    folder = folder.expanduser()
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    _check_owner(folder, found)
    lent = found.st_uid == 0 and not found.st_mode & stat.S_IWOTH
    if found.st_mode & _WRITABLE and not lent and _posix():
        raise NotPrivate(f"other users may write into {folder}; run: chmod go-w '{folder}'")
    return folder


def private_file(path: Path) -> Path:
    """Make an empty file for the user alone (0600), or take the rights of others away from the one that is there.

    Raises:
        NotPrivate: another user owns it, or it is no regular file.
        OSError: it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        found = path.lstat()  # it is not opened: closing it would end the locks that SQLite holds on it in this process
        if stat.S_ISLNK(found.st_mode):
            raise NotPrivate(f"{path} is a link; Cairn keeps its own data in a file, so name that one") from None
        if not stat.S_ISREG(found.st_mode):
            raise NotPrivate(f"{path} is not a regular file; choose another place") from None
        _check_owner(path, found)
        if found.st_mode & _OTHERS and _posix() and found.st_uid == os.geteuid():
            path.chmod(0o600)
    return path


def make_private(folder: Path) -> None:
    """Take the rights of others away from everything in a folder of Cairn's own. Links are left alone."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            with suppress(FileNotFoundError):  # another process removes what an older build left
                path.chmod(0o700 if path.is_dir() else 0o600)


def lock_file(file: IO[bytes], *, wait: bool) -> bool:
    """Lock an open file; closing it or the end of the process unlocks it. False where another one holds the lock.

    Raises:
        OSError: this file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_owner(path: Path, found: os.stat_result) -> None:
    if _posix() and found.st_uid not in (os.geteuid(), 0):
        raise NotPrivate(f"{path} belongs to another user; choose a folder of your own")


def _posix() -> bool:
    return hasattr(os, "geteuid")
