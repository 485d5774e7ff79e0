"""The converter of CTranslate2 collects garbage after every layer. What was there before is kept out of its way."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Generator[None]:
    """Collections look only through what is made inside; a full one in a large process takes most of a second.

    A process that has frozen its heap already is left as it is: to unfreeze here would undo that.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
