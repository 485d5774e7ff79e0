"""Arrays of numpy on disk, as a stranger may have written them: mapped into memory once what they claim is checked."""

import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agent.errors import CorpusError
from agent.files.foreign import open_file

T = TypeVar("T", bound=np.generic)


def load_array(path: Path, kind: type[T], *, ndim: int = 1) -> NDArray[T]:
    """Map an .npy file into memory; nothing of it is unpickled or read yet, and no link is followed.

    Args:
        path: the file.
        kind: of its numbers, such as np.float32, in the order of bytes of this machine.
        ndim: how many dimensions it has.

    Raises:
        CorpusError: it is missing, holds something else, or less than its header says.
    """
    try:
        with open_file(path, follow=False) as file:
            shape, fortran, dtype = _header(file)
            at = file.tell()
            count = 1
            for length in shape:
                count *= length
            fits = len(shape) == ndim and all(length > 0 for length in shape) and dtype == np.dtype(kind)
            if fortran or not fits or at + count * dtype.itemsize != os.fstat(file.fileno()).st_size:
                raise CorpusError(f"{path} does not hold what its index needs; build it again")
            return np.memmap(file, dtype=dtype, mode="r", offset=at, shape=shape)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror or error}); build it again") from error
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError, EOFError) as error:
        raise CorpusError(f"{path} is not a readable array ({error}); build it again") from error


def _header(file: Any) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of the format")
    return read(file)
