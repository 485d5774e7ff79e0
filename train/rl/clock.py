"""Seconds of a step by what they went into."""

import time


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._at = time.perf_counter()

    def lap(self, name: str) -> None:
        """What went by since the last lap was for this."""
        now = time.perf_counter()
        self._spent[name] = self._spent.get(name, 0.0) + now - self._at
        self._at = now

    def figures(self) -> dict[str, float]:
        """Name → seconds."""
        return {f"seconds_{name}": spent for name, spent in self._spent.items()}
