"""From clusters to bundles: two to four documents that belong together and differ in source.

The paper does not say what becomes of a cluster of one source. Here it takes in the document of another source that is
nearest to its centre, of those that no bundle holds, if that is near enough; the figures say how many did.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from train.data.folder import Array
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Doc, Leaf
from train.data.vectors import unit

HELD: Final = 32
"""Documents that are held of each cluster."""
CELLS: Final = 1 << 22
"""Pairs that are looked at together: 16 MiB of them."""

Mask = NDArray[np.bool_]
_Best = tuple[NDArray[np.float64], NDArray[np.intp]]


@dataclass(frozen=True)
class Nearest:
    """Clusters, and the documents that may join them.

    It gives the best pair first. All pairs are never held at the same time: of each cluster the best few are held; once
    others have taken all of them, its next ones are looked for.
    """

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


ALONE = "alone in its cluster, and nothing of another source is near"
ONE_SOURCE = "in a cluster of one source, and nothing of another one is near"
ALONE_OF_SOURCE = "the only one of its source in its cluster"
FARTHEST = "one too many where another source came in"


@dataclass(frozen=True)
class Bundled:
    """What became of the clusters."""

    bundles: list[Bundle]
    dropped: dict[str, str]
    """Document → why it is in no bundle."""


def bundled(
    leaves: Sequence[Leaf], docs: Mapping[str, Doc], vectors: Mapping[str, Array], recipe: DataRecipe
) -> Bundled:
    """The bundles of all clusters, and why documents are in none.

    Args:
        leaves: the clusters.
        docs: by their ids.
        vectors: by the same ids, each [dimensions], of length 1.
        recipe: of the build.
    """
    made = _Bundling(docs, vectors, recipe)
    if recipe.bundles == "same":
        for leaf in leaves:
            made.by_source(leaf)
    else:
        incomplete = [leaf for leaf in leaves if not made.as_it_is(leaf)]
        if incomplete:
            made.join(incomplete)
    return made.made()


class _Bundling:
    def __init__(self, docs: Mapping[str, Doc], vectors: Mapping[str, Array], recipe: DataRecipe) -> None:
        self._docs, self._vectors, self._recipe = docs, vectors, recipe
        self._bundles: list[tuple[tuple[str, ...], int, bool]] = []
        self._dropped: dict[str, str] = {}

    def made(self) -> Bundled:
        bundles = [
            Bundle(
                id=f"bundle-{number}",
                documents=documents,
                sources=tuple(sorted({self._docs[key].source for key in documents})),
                group=group,
                joined=joined,
            )
            for number, (documents, group, joined) in enumerate(self._bundles)
        ]
        return Bundled(bundles, self._dropped)

    def as_it_is(self, leaf: Leaf) -> bool:
        """Take a cluster of several sources."""
        if len(leaf.documents) < self._recipe.least or len(self._sources(leaf.documents)) < 2:
            return False
        self._bundles.append((leaf.documents, leaf.group, False))
        return True

    def by_source(self, leaf: Leaf) -> None:
        """Take what a cluster has of each source, one bundle of each."""
        for source in sorted(self._sources(leaf.documents)):
            own = tuple(key for key in leaf.documents if self._docs[key].source == source)
            if len(own) >= self._recipe.least:
                self._bundles.append((own, leaf.group, False))
            else:
                self._dropped |= dict.fromkeys(own, ALONE_OF_SOURCE)

    def join(self, leaves: Sequence[Leaf]) -> None:
        """Let each of these clusters take in a document of another source: large ones first, then the nearest pairs."""
        left = {place: list(leaf.documents) for place, leaf in enumerate(leaves)}
        home = {key: place for place, held in left.items() for key in held}
        keys = sorted(home)
        column = {key: number for number, key in enumerate(keys)}
        near = self._nearest(leaves, keys, [home[key] for key in keys])
        for place, number in near.pairs([len(leaf.documents) for leaf in leaves]):
            key, held = keys[number], left[place]
            if not held or len(held) + 1 < self._recipe.least:
                continue
            left[home[key]].remove(key)
            del left[place]
            near.free[[column[taken] for taken in (key, *held)]] = False
            self._take(held, key, leaves[place].group)
        for place, held in left.items():
            self._dropped |= dict.fromkeys(held, ALONE if len(leaves[place].documents) == 1 else ONE_SOURCE)

    def _take(self, held: list[str], key: str, group: int) -> None:
        while len(held) + 1 > self._recipe.most:  # the one that is farthest from the newcomer makes room
            worst = min(held, key=lambda one: (float(self._vectors[one] @ self._vectors[key]), one))
            held.remove(worst)
            self._dropped[worst] = FARTHEST
        self._bundles.append(((*held, key), group, True))

    def _nearest(self, leaves: Sequence[Leaf], keys: Sequence[str], homes: Sequence[int]) -> Nearest:
        """What may join which cluster: a document of another cluster, of another source, and of the same part."""
        centres = [np.mean([self._vectors[key] for key in leaf.documents], axis=0) for leaf in leaves]
        cluster = np.array(homes)
        source = np.array([self._docs[key].source for key in keys])
        part = np.array([self._docs[key].part for key in keys])

        def may_join(place: int) -> Mask:
            first = self._docs[leaves[place].documents[0]]
            return (cluster != place) & (source != first.source) & (part == first.part)

        vectors = np.stack([self._vectors[key] for key in keys])
        return Nearest(unit(np.stack(centres)), vectors, np.ones(len(keys), bool), may_join, self._recipe.reach)

    def _sources(self, documents: Sequence[str]) -> set[str]:
        return {self._docs[key].source for key in documents}
