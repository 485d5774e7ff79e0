"""Opens files that someone else may have made: regular ones or pipes, up to a bound, on request through no link.

A device, a socket, a link where none is followed or a file past its bound raise `OSError` with a sentence as
`strerror`, as a missing file does. Nothing waits for ever: a pipe that says nothing for a while is
given up.
"""

import errno
import os
import select
import stat
import sys
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import BinaryIO, Final

PIPE_SECONDS: Final = 20.0
"""A pipe whose writer needs longer for its next bytes is given up."""
MIB: Final = 1 << 20
WHOLE_BYTES: Final = 256 << 20
"""Of a file that is read as a whole, where nothing else is said."""
_PIECE: Final = 1 << 16
_WITHOUT_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_KINDS: Final = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe, not a file; save its output as a file first"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)


def open_file(path: Path, *, follow: bool = True) -> BufferedReader:
    """Open a regular file for reading bytes.

    Args:
        path: the file.
        follow: whether the last part of the path may be a symbolic link: where the user named it.

    Raises:
        OSError: it is missing, cannot be opened, or is no regular file.
    """
    handle, mode = _open(path, follow=follow)
    if why := not_a_file(mode):
        os.close(handle)
        raise OSError(errno.EINVAL, why, str(path))
    return os.fdopen(handle, "rb")


def read_file(path: Path, *, most: int, follow: bool = True, pipe: bool = False) -> bytes:
    """Read a whole file of at most `most` bytes; on request a pipe, too, such as a shell's `<(command)`.

    Raises:
        OSError: as `open_file`; or it is larger, or the pipe's writer says nothing for `PIPE_SECONDS`.
    """
    handle, mode = _open(path, follow=follow)
    if pipe and stat.S_ISFIFO(mode):
        with os.fdopen(handle, "rb") as opened:
            return _read_pipe(opened, path, most)
    if why := not_a_file(mode):
        os.close(handle)
        raise OSError(errno.EINVAL, why, str(path))
    with os.fdopen(handle, "rb") as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def read_text(path: Path, *, most: int = WHOLE_BYTES, follow: bool = True, pipe: bool = False) -> str:
    """Read a whole file as UTF-8.

    Raises:
        OSError: as `read_file`; UnicodeDecodeError where it is no UTF-8.
    """
    return read_file(path, most=most, follow=follow, pipe=pipe).decode("utf-8")


def no_link(path: str, flags: int) -> int:
    """Open a file for writing where a stranger may have put something: an `opener` for `open`.

    A folder that holds a run or a checkpoint may come from someone else. A link in it would lead what Cairn writes to
    any file of the user's, and a pipe would never take it.

    Raises:
        OSError: there is a link, or something else that is no regular file.
    """
    try:
        handle = os.open(path, flags | _WITHOUT_WAITING | _NO_LINK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed; remove it", path) from error
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe, a socket or a device; remove it", path) from error
        raise
    if why := not_a_file(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, why, path)
    return handle


def not_a_file(mode: int) -> str:
    """Why a file of this mode is not read; empty for a regular one."""
    if stat.S_ISREG(mode):
        return ""
    return next((why for is_kind, why in _KINDS if is_kind(mode)), "it is not a file")


def is_real_file(path: Path) -> bool:
    """Whether there is a regular file, and no link in its place."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_real_folder(path: Path) -> bool:
    """Whether there is a folder, and no link in its place."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def has_holes(file: BinaryIO) -> bool:
    """Whether a part of a file was never written, as far as the file system reports: it may claim any size."""
    if sys.platform == "win32":
        return False
    try:
        return os.lseek(file.fileno(), 0, os.SEEK_HOLE) < os.fstat(file.fileno()).st_size
    except OSError:
        return False
    finally:
        file.seek(0)


def _open(path: Path, *, follow: bool) -> tuple[int, int]:
    """An open file, and its mode."""
    try:
        if not follow and not _NO_LINK and path.is_symlink():
            raise OSError(errno.ELOOP, "", str(path))
        handle = os.open(path, os.O_RDONLY | _WITHOUT_WAITING | (0 if follow else _NO_LINK))
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, "its name cannot be used", str(path)) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", str(path)) from error
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a socket or a device, not a file", str(path)) from error
        raise
    return handle, os.fstat(handle).st_mode


def _read_pipe(file: BinaryIO, path: Path, most: int) -> bytes:
    """What a pipe gives until its writer ends, waiting a bounded time for each piece."""
    pieces: list[bytes] = []
    size = 0
    until = monotonic() + PIPE_SECONDS
    while size <= most:
        if sys.platform != "win32" and not select.select([file], [], [], max(0.0, until - monotonic()))[0]:
            raise OSError(errno.ETIMEDOUT, f"the pipe sent nothing for {PIPE_SECONDS:g} s", str(path))
        piece = os.read(file.fileno(), _PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        until = monotonic() + PIPE_SECONDS
    raise _too_large(path, most)


def _too_large(path: Path, most: int) -> OSError:
    size = f"{most // MIB:,} MB" if most >= MIB else f"{most:,} bytes"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))
