"""From clusters to bundles: two to four documents that belong together and differ in source.

The paper does not say what becomes of a cluster of one source. Here it takes in the document of another source that is
nearest to its centre, of those that no bundle holds, if that is near enough; the figures tell how many did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from train.data.folder import Array
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Doc, Leaf
from train.data.vectors import unit

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
        poor = [leaf for leaf in leaves if not made.as_it_is(leaf)]
        made.join(poor)
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
        for place, key in self._pairs(leaves, list(home)):
            held = left.get(place, [])
            if key not in home or not held or len(held) + 1 < self._recipe.least:
                continue
            left[home.pop(key)].remove(key)
            for taken in left.pop(place):
                del home[taken]
            self._take(held, key, leaves[place].group)
        for place, held in left.items():
            self._dropped |= dict.fromkeys(held, ALONE if len(leaves[place].documents) == 1 else ONE_SOURCE)

    def _take(self, held: list[str], key: str, group: int) -> None:
        while len(held) + 1 > self._recipe.most:  # the one that is farthest from the newcomer makes room
            worst = min(held, key=lambda one: (float(self._vectors[one] @ self._vectors[key]), one))
            held.remove(worst)
            self._dropped[worst] = FARTHEST
        self._bundles.append(((*held, key), group, True))

    def _pairs(self, leaves: Sequence[Leaf], keys: Sequence[str]) -> list[tuple[int, str]]:
        """Cluster and document of another source and of the same part, if near enough, in the order of the choice."""
        if not leaves:
            return []
        centres = unit(np.stack([np.mean([self._vectors[key] for key in leaf.documents], axis=0) for leaf in leaves]))
        near = centres @ np.stack([self._vectors[key] for key in keys]).T
        pairs = [
            (float(near[place, column]), place, keys[column])
            for place, column in np.argwhere(near >= self._recipe.reach).tolist()
            if self._may_meet(leaves[place].documents[0], keys[column])
        ]
        pairs.sort(key=lambda pair: (-len(leaves[pair[1]].documents), -round(pair[0], 6), pair[1], pair[2]))
        return [(place, key) for _, place, key in pairs]

    def _may_meet(self, one: str, other: str) -> bool:
        return self._docs[one].source != self._docs[other].source and self._docs[one].part == self._docs[other].part

    def _sources(self, documents: Sequence[str]) -> set[str]:
        return {self._docs[key].source for key in documents}
