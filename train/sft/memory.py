"""What batches of ever other shapes leave behind in a process, and how it is kept small. No tensor is freed here.

Their tensors leave holes in glibc's heap that nothing fits into later, and oneDNN keeps its kernels for each shape: a
long run on a CPU grew to several times of what it used.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from agent.settings import default_environment

_KERNELS: Final = "64"
"""oneDNN's own default is 1024: a few batches of the little models, and hundreds of MB."""


def keep_few_kernels() -> None:
    """Let oneDNN forget kernels soon, where the user said nothing. It hears of it before the first kernel alone."""
    default_environment({"ONEDNN_PRIMITIVE_CACHE_CAPACITY": _KERNELS})


def give_back() -> None:
    """Let the system have every free page. Where the C library is another one than glibc, nothing happens."""
    if trim := _trim():
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; on Windows there is no library of that name
        return None
