"""How many cores this process may use, which can be fewer than the machine has."""

import os


def cores() -> int:
    """Those that the system lets it run on; where a system does not report them, all that there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
