"""How Cairn's processes run, and how it starts others: as fresh ones that never import from the current folder.

Python puts the current folder first on the path of `python -c` and `python -m`, which is how processes are spawned: a
file `multiprocessing.py` there would run. `PYTHONSAFEPATH` takes it off, for everything that such a process starts.
"""

import sys
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from typing import Final

from agent.settings import environment_of_children

SAFE_PATH: Final = {"PYTHONSAFEPATH": "1"}
GC_THRESHOLD: Final = (10_000, 10, 10)
"""For `gc.set_threshold`: new objects before Python looks for cycles among them, and how many of these looks go to one
at the next older ones. With its own 700, torch loads an eighth slower.
"""


class SafeProcess(SpawnProcess):
    """A spawned process whose path is that of its parent, without the current folder."""

    def start(self) -> None:
        with environment_of_children(SAFE_PATH):
            super().start()


class SafeContext(SpawnContext):
    """Python's `spawn`, with `SafeProcess`."""

    Process = SafeProcess  # pyright: ignore[reportAssignmentType] - as the standard library's contexts do


def spawning() -> SafeContext:
    """The only way in which Cairn starts processes of `multiprocessing`, and pools of them."""
    with environment_of_children(SAFE_PATH):
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # a Python of its own, which the first lock would start
    return SafeContext()


def preloaded(*modules: str) -> BaseContext:
    """Processes that begin with modules imported, where the system is Linux: elsewhere they are spawned.

    They are forked from a fresh Python that has imported the modules and done nothing else. It ends with this process,
    for all of which the first call chooses the modules.
    """
    if sys.platform != "linux":
        return spawning()
    from multiprocessing import forkserver
    from multiprocessing.context import ForkServerContext

    forkserver.set_forkserver_preload([*modules])
    with environment_of_children(SAFE_PATH):
        resource_tracker.ensure_running()
        forkserver.ensure_running()
    return ForkServerContext()
