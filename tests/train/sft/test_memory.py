"""What a process has freed goes back to the system, holes in its heap included."""

import gc
import platform
import resource
from pathlib import Path

import pytest

from train.sft.memory import give_back

MIB = 2**20


def resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / MIB


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives back")
def test_holes_between_what_is_used_go_back_to_the_system() -> None:
    held = [b"x" * 100_000 for _ in range(2_000)]
    del held[: len(held) - 1]  # the last one keeps the heap from shrinking by itself
    gc.collect()
    before = resident()
    give_back()
    assert resident() < before - 100
    assert len(held) == 1
