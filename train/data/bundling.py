"""The steps from documents to bundles, in their order, and what is counted. What each of them does is elsewhere."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from agent.errors import SetupError
from train.data.bundles import bundled
from train.data.clusters import clustered
from train.data.documents import check_sources, without_thin
from train.data.duplicates import NearDuplicate, without_near_duplicates
from train.data.folder import Array, counted
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Doc, Leaf
from train.data.steps import Made, Steps
from train.data.vectors import Embeds, embedded, reduced


@dataclass(frozen=True)
class Grounds:
    """What questions are written about."""

    docs: dict[str, Doc]
    """By id, without thin ones and near-duplicates, in the order in which they were read."""
    bundles: list[Bundle]


def grounds(
    steps: Steps, recipe: DataRecipe, *, read: Callable[[], list[Doc]], load: Callable[[list[Doc]], Embeds]
) -> Grounds:
    """Documents and the bundles of them, made or read where they are done.

    Args:
        steps: of the build.
        recipe: of the build.
        read: gives every document.
        load: gives the embedder for these documents, where one is needed.

    Raises:
        SetupError: too little is left at some step; the sentence names what is missing.
    """
    diverse = recipe.bundles == "diverse"
    every = steps.rows("reading", Doc, lambda: _without_thin(read(), recipe))
    check_sources(every, diverse=diverse, after="After leaving out thin ones,")
    duplicates = {one.id for one in steps.rows("unique", NearDuplicate, lambda: _near_duplicates(every, recipe, steps))}
    docs = [doc for doc in every if doc.id not in duplicates]
    check_sources(docs, diverse=diverse, after="After leaving out near-duplicates,")
    held = {doc.id: doc for doc in docs}
    if not steps.done("bundling"):
        vectors = _embedded(docs, load, steps)
        points = _reduced(docs, vectors, recipe, steps)
        leaves = steps.rows("clustering", Leaf, lambda: _leaves(docs, points, recipe, steps))
        rows = {doc.id: vector for doc, vector in zip(docs, vectors, strict=True)}
        steps.rows("bundling", Bundle, lambda: _bundled(leaves, held, rows, recipe))
    return Grounds(held, steps.read("bundling", Bundle))


def _without_thin(every: list[Doc], recipe: DataRecipe) -> tuple[list[Doc], Made]:
    kept, dropped = without_thin(every, recipe.thin_words)
    return kept, Made(len(every), len(kept), dropped, _by_source(kept))


def _near_duplicates(docs: list[Doc], recipe: DataRecipe, steps: Steps) -> tuple[list[NearDuplicate], Made]:
    kept, duplicates = without_near_duplicates(
        docs,
        similar=recipe.similar,
        size=recipe.shingle,
        permutations=recipe.permutations,
        seed=recipe.seed,
        show=steps.progress("unique"),
        spread=steps.spread,
    )
    dropped = {f"near-duplicates (from {recipe.similar:g} on)": len(duplicates)} if duplicates else {}
    return duplicates, Made(len(docs), len(kept), dropped, _by_source(kept))


def _embedded(docs: list[Doc], load: Callable[[list[Doc]], Embeds], steps: Steps) -> Array:
    began = perf_counter()
    vectors = embedded(docs, lambda: load(docs), steps.folder, show=steps.progress("embedding"))
    steps.end("embedding", Made(len(docs), len(docs), figures={"dimensions": vectors.shape[1]}), began=began)
    return vectors


def _reduced(docs: list[Doc], vectors: Array, recipe: DataRecipe, steps: Steps) -> Array:
    """Part by part, since parts have nothing in common."""
    kept = steps.folder.array("reduced.npy")
    if kept is not None and steps.done("reducing"):
        return kept
    began = perf_counter()
    reduce = partial(reduced, dimensions=recipe.dimensions, neighbours=recipe.neighbours, seed=recipe.seed)
    small = list(steps.spread.mapped(reduce, (vectors[rows] for rows in _parts(docs))))
    width = max(part.shape[1] for part in small)
    made = np.zeros((len(docs), width), np.float32)
    for rows, part in zip(_parts(docs), small, strict=True):
        made[rows, : part.shape[1]] = part
    steps.folder.write_array("reduced.npy", made)
    steps.end("reducing", Made(len(docs), len(docs), figures={"dimensions": width}), began=began)
    return made


def _leaves(docs: list[Doc], points: Array, recipe: DataRecipe, steps: Steps) -> tuple[list[Leaf], Made]:
    """Part by part, too."""
    parts = _parts(docs)
    cluster = partial(clustered, size=recipe.group, most=recipe.most, seed=recipe.seed)
    found = steps.spread.mapped(cluster, (points[rows] for rows in parts))
    groups = [
        [[rows[at] for at in leaf] for leaf in group] for rows, part in zip(parts, found, strict=True) for group in part
    ]
    leaves = [
        Leaf(group=number, documents=tuple(docs[row].id for row in leaf))
        for number, group in enumerate(groups)
        for leaf in group
    ]
    source = {doc.id: doc.source for doc in docs}
    several = sum(len({source[key] for key in leaf.documents}) > 1 for leaf in leaves)
    figures = {"groups": len(groups), "clusters": len(leaves), "clusters of several sources": several}
    return leaves, Made(len(docs), len(leaves), figures=figures, gives="clusters")


def _bundled(
    leaves: list[Leaf], docs: dict[str, Doc], vectors: dict[str, Array], recipe: DataRecipe
) -> tuple[list[Bundle], Made]:
    done = bundled(leaves, docs, vectors, recipe)
    whys = counted(done.dropped.values())
    if not done.bundles:
        raise SetupError(
            f"none of {len(leaves)} clusters became a bundle, most often because a document is {next(iter(whys), '')}: "
            "lower --reach, or give documents whose subjects meet"
        )
    sizes = counted(f"of {len(bundle.documents)} documents" for bundle in done.bundles)
    joined = sum(bundle.joined for bundle in done.bundles)
    figures = {"bundles": len(done.bundles), "bundles with one taken in": joined} | dict(sorted(sizes.items()))
    held = sum(len(bundle.documents) for bundle in done.bundles)
    return done.bundles, Made(len(docs), held, whys, figures)


def _by_source(docs: Iterable[Doc]) -> dict[str, float]:
    return {f"of {source}": float(number) for source, number in counted(doc.source for doc in docs).items()}


def _parts(docs: Sequence[Doc]) -> list[list[int]]:
    """The rows of each part, in their order."""
    parts: dict[int, list[int]] = {}
    for row, doc in enumerate(docs):
        parts.setdefault(doc.part, []).append(row)
    return [parts[part] for part in sorted(parts)]
