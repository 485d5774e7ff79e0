"""The nearest pairs, a few at a time, against all pairs at once."""

import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from train.data.bundles import Mask, Nearest
from train.data.folder import Array

DIMENSIONS = 3
ROWS = st.lists(st.lists(st.integers(-4, 4), min_size=DIMENSIONS, max_size=DIMENSIONS), min_size=1, max_size=12)


def whole(rows: Sequence[Sequence[int]]) -> Array:
    """Small whole numbers over a power of two: their products are exact, in whichever order they are added."""
    return np.asarray(np.array(rows) / 8, np.float32)


def at_once(nearest: Nearest, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """By all pairs in one sorted list."""
    near = nearest.centres @ nearest.vectors.T
    there = [
        (-sizes[place], -round(float(near[place, document]), 6), place, document)
        for place in range(len(near))
        for document in range(len(near[place]))
        if near[place, document] >= nearest.reach and nearest.may_join(place)[document]
    ]
    come: set[int] = set()
    for _, _, place, document in sorted(there):
        if place not in come and nearest.free[document]:
            come.add(place)
            yield place, document


def chosen(pairs: Iterator[tuple[int, int]], free: Mask) -> list[tuple[int, int]]:
    """The pairs, where each one takes its document and the one before it."""
    found: list[tuple[int, int]] = []
    for place, document in pairs:
        found.append((place, document))
        free[[document, document - 1]] = False
    return found


@given(
    centres=ROWS,
    vectors=ROWS,
    sizes=st.lists(st.integers(1, 3), min_size=12, max_size=12),
    reach=st.floats(-1, 1),
    held=st.integers(1, 4),
    cells=st.integers(1, 40),
)
def test_a_few_at_a_time_give_what_all_pairs_at_once_give(
    centres: list[list[int]], vectors: list[list[int]], sizes: list[int], reach: float, held: int, cells: int
):
    def nearest() -> Nearest:
        numbers = np.arange(len(vectors))
        may_join = [numbers % 3 != place % 3 for place in range(len(centres))]
        return Nearest(
            whole(centres), whole(vectors), np.ones(len(vectors), bool), may_join.__getitem__, reach, held, cells
        )

    few, every = nearest(), nearest()
    sizes = sizes[: len(centres)]
    assert chosen(few.pairs(sizes), few.free) == chosen(at_once(every, sizes), every.free)


def test_all_pairs_are_never_held_at_the_same_time():
    many = 1000
    vectors = np.asarray(np.random.default_rng(0).normal(size=(many, DIMENSIONS)), np.float32)
    everyone = np.ones(many, bool)
    nearest = Nearest(vectors, vectors, np.ones(many, bool), lambda place: everyone, 0.0, held=8, cells=10 * many)
    tracemalloc.start()
    try:
        found = chosen(nearest.pairs([1] * many), nearest.free)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) > many // 3
    assert most < 2 * many * many, "half of what their cosines alone would take"
