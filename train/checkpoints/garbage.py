"""CTranslate2's converter calls for a full collection after every layer: most of a second in a large process."""

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


@contextmanager
def no_full_collections() -> Generator[None]:
    """What it converts is freed by its reference counts, and cycles by Python's own collections.

    For one thread at a time.
    """
    from ctranslate2.converters import transformers

    converter: Any = transformers
    before = converter.gc
    converter.gc = SimpleNamespace(collect=lambda: 0)
    try:
        yield
    finally:
        converter.gc = before
