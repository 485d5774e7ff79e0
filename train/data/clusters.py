"""Thematic groups by agglomerative clustering, and K-means again and again for what is too large."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import numpy as np

from train.data.duplicates import need
from train.data.folder import Array

WHOLE: Final = 8000
"""Documents whose distances are all held in memory; of more, only those of neighbours are."""
_NEAREST: Final = 15
_WAYS: Final = 8
"""Parts that K-means makes at once, at most."""


def clustered(points: Array, *, size: int, most: int, seed: int) -> list[list[list[int]]]:
    """The clusters of each thematic group, as rows of `points`; the same however many cores there are.

    Args:
        points: [documents, dimensions].
        size: documents of a group, in the mean.
        most: rows of a cluster.
        seed: of K-means.

    Raises:
        SetupError: scikit-learn is not installed.
    """
    need("sklearn.cluster")
    with one_thread():
        return [
            [sorted(leaf) for leaf in split(group, points, most=most, seed=seed)] for group in groups(points, size=size)
        ]


def one_thread() -> AbstractContextManager[object]:
    """Keep the libraries that are loaded to one thread: sums of floats do not depend on the number of cores then.

    Raises:
        SetupError: threadpoolctl, which scikit-learn needs, is not installed.
    """
    return need("threadpoolctl").threadpool_limits(1)


def groups(points: Array, *, size: int) -> list[list[int]]:
    """Rows of each thematic group (Ward's linkage), in the order of their first row.

    Args:
        points: [documents, dimensions].
        size: documents of a group, in the mean.

    Raises:
        SetupError: scikit-learn is not installed.
    """
    number = max(1, round(len(points) / size))
    if number == 1:
        return [list(range(len(points)))] if len(points) else []
    cluster, near = need("sklearn.cluster"), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # islands of the neighbours' graph are joined, and said to be
        if len(points) > WHOLE:
            near = need("sklearn.neighbors").kneighbors_graph(points, _NEAREST, include_self=False)
        labels = cluster.AgglomerativeClustering(n_clusters=number, connectivity=near).fit_predict(points)
    return _parts(range(len(points)), labels)


def split(rows: Sequence[int], points: Array, *, most: int, seed: int) -> Iterator[list[int]]:
    """A group as clusters of at most `most` rows, by K-means until each is small enough.

    Equal points are cut in their order.

    Args:
        rows: of the group.
        points: [documents, dimensions].
        most: rows of a cluster.
        seed: of K-means.

    Raises:
        SetupError: scikit-learn is not installed.
    """
    if len(rows) <= most:
        yield list(rows)
        return
    ways = min(_WAYS, -(-len(rows) // most))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different points than clusters
        means = need("sklearn.cluster").KMeans(n_clusters=ways, n_init=4, random_state=seed)
        parts = _parts(rows, means.fit_predict(points[list(rows)]))
    if len(parts) == 1:
        parts = [list(rows[at : at + most]) for at in range(0, len(rows), most)]
    for part in parts:
        yield from split(part, points, most=most, seed=seed)


def _parts(rows: Sequence[int], labels: Sequence[int]) -> list[list[int]]:
    parts: dict[int, list[int]] = {}
    for row, label in zip(rows, np.asarray(labels).tolist(), strict=True):
        parts.setdefault(label, []).append(row)
    return list(parts.values())
