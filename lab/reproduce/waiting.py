"""Whether the process that started this one still waits for it."""

import multiprocessing


class Orphaned(SystemExit):
    """Who started this process is gone: nobody would write down what it makes."""


def beat() -> None:
    """Go on as long as somebody waits for it.

    Raises:
        Orphaned: nobody does.
    """
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise Orphaned(1)
