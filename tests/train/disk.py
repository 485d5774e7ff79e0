"""A disk that is full, wherever a test needs one."""

import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def full_disk(most: int = 100_000) -> Generator[None]:
    """No file may become longer than `most` bytes: writing more fails as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
