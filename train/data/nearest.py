"""Which document is nearest to which cluster, the best pair first. All pairs are never held at the same time.

Of each cluster the best few are held; once others have taken all of them, its next ones are looked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from train.data.folder import Array

HELD: Final = 32
"""Documents that are held of each cluster."""
CELLS: Final = 1 << 22
"""Pairs that are looked at together: 16 MiB of them."""

Mask = NDArray[np.bool_]
_Best = tuple[NDArray[np.float64], NDArray[np.intp]]


@dataclass(frozen=True)
class Nearest:
    """Clusters, and the documents that may join them."""

    centres: Array
    """[clusters, dimensions], each of length 1."""
    vectors: Array
    """[documents, dimensions], each of length 1."""
    free: Mask
    """[documents]: a cluster that takes one marks it here."""
    may_join: Callable[[int], Mask]
    """From a cluster to [documents]."""
    reach: float
    """The least cosine."""
    held: int = HELD
    cells: int = CELLS

    def pairs(self, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """A cluster and a document that is free: large clusters first, then the nearest pairs; equal ones by number.

        Each cluster comes once; one that no document is left for does not come.

        Args:
            sizes: of the clusters.
        """
        waiting: dict[int, Iterator[tuple[float, int]]] = {}
        heap: list[tuple[int, float, int, int]] = []

        def push(place: int) -> None:
            for near, document in waiting[place]:
                if self.free[document]:
                    heappush(heap, (-sizes[place], -near, place, document))
                    break

        for place, best in self._first():
            waiting[place] = self._of(place, best)
            push(place)
        while heap:
            _, _, place, document = heappop(heap)
            if self.free[document]:
                yield place, document
            else:
                push(place)

    def _first(self) -> Iterator[tuple[int, _Best]]:
        rows = max(1, self.cells // max(1, len(self.vectors)))
        for at in range(0, len(self.centres), rows):
            for place, near in enumerate(self.centres[at : at + rows] @ self.vectors.T, start=at):
                yield place, self._best(place, near)

    def _of(self, place: int, best: _Best) -> Iterator[tuple[float, int]]:
        """All that may join one cluster, the nearest first."""
        while len(best[0]):
            for near, document in zip(*best, strict=True):
                yield float(near), int(document)
            if len(best[0]) < self.held:
                break
            best = self._best(place, self.centres[place] @ self.vectors.T)

    def _best(self, place: int, near: Array) -> _Best:
        fit = np.flatnonzero((near >= self.reach) & self.free & self.may_join(place))
        rounded = near[fit].astype(np.float64).round(6)
        order = np.argsort(-rounded, kind="stable")[: self.held]
        return rounded[order], fit[order]
