"""What was computed for contexts that wait for their next turn, and how much of it is kept."""

import threading
import weakref
from collections import deque
from collections.abc import Sequence

from agent.policies.torch_rows import EMPTY, Cache


class ContextMemory:
    """Of one context. A fork's begins with its parent's."""

    def __init__(self, parent: "ContextMemory | None" = None) -> None:
        self._parent = parent
        self.cache = EMPTY
        """Written by `MemoryPool` alone."""

    def known(self, ids: Sequence[int]) -> Cache:
        """What was computed already of `ids`, here or where this was forked."""
        own = self.cache.common(ids)
        inherited = self._parent.cache.common(ids) if self._parent else EMPTY
        return max(own, inherited, key=lambda cache: len(cache.ids))


class MemoryPool:
    """All memories of an engine, up to a number of bytes. Any thread may call it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Of keys and values: bytes."""
        self._order: deque[weakref.ref[ContextMemory]] = deque()
        """The one that was used longest ago first."""
        self._changing = threading.Lock()

    def keep(self, memory: ContextMemory, cache: Cache) -> None:
        """Remember what was computed; where that is too much, what was used longest ago is forgotten."""
        with self._changing:
            memory.cache = cache
            others = (ref for ref in self._order if (held := ref()) and held is not memory and held.cache.ids)
            self._order = deque([*others, weakref.ref(memory)])
            while self._order and self._bytes() > self.limit:
                if oldest := self._order.popleft()():
                    oldest.cache = EMPTY

    def _bytes(self) -> int:
        """One cache may serve for several contexts."""
        held = {id(memory.cache): memory.cache.bytes for ref in self._order if (memory := ref())}
        return sum(held.values())
