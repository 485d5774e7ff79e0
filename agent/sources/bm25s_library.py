"""The library bm25s, imported without JAX: where JAX is installed bm25s starts it, and it takes most of a GPU's memory.

Nothing of what is used here needs it.
"""

import sys
from typing import Any, Final, cast

_MISSING: Final = object()
_before = sys.modules.get("jax", _MISSING)
_unknown: dict[str, Any] = sys.modules  # None in it makes an import fail
if _before is _MISSING:
    _unknown["jax"] = None
try:
    import bm25s  # pyright: ignore[reportMissingTypeStubs]
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # pyright: ignore[reportMissingTypeStubs]
finally:
    if _before is _MISSING:
        _unknown.pop("jax", None)

BM25: Final = cast(Any, bm25s.BM25)
STOP_WORDS: Final = frozenset(cast(tuple[str, ...], STOPWORDS_EN_PLUS))
