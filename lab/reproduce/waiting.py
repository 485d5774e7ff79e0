"""Whether the process that started this one still waits for it."""

import multiprocessing


class Orphaned(SystemExit):
    """The process that started this one is gone: its result would be lost."""


def beat() -> None:
    """Go on as long as the parent process lives.

    Raises:
        Orphaned: it has ended.
    """
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise Orphaned(1)
