"""Keys of recipes that have a new name: a recipe with the previous one is refused with the new one."""

from collections.abc import Mapping
from typing import Any


def refuse_renamed(said: Any, renamed: Mapping[str, str]) -> None:
    """Refuse a table of a recipe that has a previous name of a key.

    Raises:
        ValueError: it has one; the message gives the new name.
    """
    if isinstance(said, Mapping):
        for old, new in renamed.items():
            if old in said:
                raise ValueError(f"`{old}` is called `{new}` now: rename it")
