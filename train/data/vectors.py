"""Documents as vectors, piece by piece, each piece kept; and fewer dimensions by UMAP (McInnes et al., 2018)."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.parallel.spread import HERE, Spread
from train.data.clusters import one_thread
from train.data.duplicates import Show, need
from train.data.folder import Array, Folder
from train.data.recipe import WORDS
from train.data.records import Doc
from train.rewards.support.vectors import DIMENSIONS, hashed_words

Embed = Callable[[Sequence[str]], Array]
"""From n texts to [n, dimensions]."""
Embeds = Callable[[Iterable[list[str]]], Iterator[Array]]
"""From lists of texts to the vectors of each list, in their order."""
PIECE: Final = 256
"""Documents that are embedded and kept at once: at most this many are embedded again after a kill."""
_SPARE: Final = 3
"""UMAP lays out at least this many documents more than it leaves dimensions."""


def embedder(name: str, docs: Sequence[Doc], spread: Spread = HERE) -> Embeds:
    """The model of a name; `words` needs none.

    Args:
        name: of a sentence-transformers model, or `words`.
        docs: all that will be embedded; `words` weighs a word by how few of them have it.
        spread: who makes the vectors.

    Raises:
        SetupError: it cannot be loaded.
    """
    if name == WORDS:
        return weighed_words(docs, spread)
    from agent.sources.corpus.elsewhere import encode_with
    from agent.sources.corpus.encoder import Encoder

    encoder = Encoder.load(name, half=False)  # the same in every precision that a machine may prefer
    return in_lists(encoder.encode_passages) if spread.here else encode_with(spread, encoder)


def in_lists(embed: Embed) -> Embeds:
    """In this process, list after list."""
    return lambda lists: map(embed, lists)


def weighed_words(docs: Sequence[Doc], spread: Spread = HERE) -> Embeds:
    """Hashed words, each weighed by log(documents / those that have it): what only a few share counts most."""
    pieces = (_texts(docs, at) for at in range(0, len(docs), PIECE))
    having = sum(spread.mapped(_having, pieces), start=np.zeros(DIMENSIONS))
    weights = np.log(len(docs) / np.maximum(having, 1)).astype(np.float32)
    return lambda lists: (counts * weights for counts in spread.mapped(hashed_words, lists))


def _having(texts: Sequence[str]) -> NDArray[np.int64]:
    """How many of the texts have a word of each column: [DIMENSIONS]."""
    return (hashed_words(texts) > 0).sum(axis=0)


def embedded(docs: Sequence[Doc], load: Callable[[], Embeds], folder: Folder, *, show: Show) -> Array:
    """Vectors of length 1: [documents, dimensions]. Pieces that are in the folder are read.

    Args:
        docs: in their order.
        load: gives the embedder, called only where a piece is missing.
        folder: of the build.
        show: called with how far it is.

    Raises:
        SetupError: the embedder cannot be loaded, or a piece cannot be written.
    """
    names = {at: f"vectors/{at // PIECE:06d}.npy" for at in range(0, len(docs), PIECE)}
    pieces = {at: piece for at, name in names.items() if (piece := folder.array(name)) is not None}
    if missing := [at for at in names if at not in pieces]:
        made = load()(_texts(docs, at) for at in missing)
        for at, vectors in zip(missing, made, strict=True):
            pieces[at] = unit(vectors)
            folder.write_array(names[at], pieces[at])
            show(min(len(pieces) * PIECE, len(docs)), len(docs))
    return np.concatenate([pieces[at] for at in names])


def _texts(docs: Sequence[Doc], at: int) -> list[str]:
    return [doc.whole for doc in docs[at : at + PIECE]]


def reduced(vectors: Array, *, dimensions: int, neighbours: int, seed: int) -> Array:
    """Fewer dimensions: [documents, dimensions]; the vectors as they are where there are too few to lay out.

    Args:
        vectors: [documents, d].
        dimensions: that are left.
        neighbours: that UMAP keeps together.
        seed: the same seed gives the same layout on one machine.

    Raises:
        SetupError: umap-learn is not installed.
    """
    if len(vectors) < dimensions + _SPARE or vectors.shape[1] <= dimensions:
        return vectors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of umap about parts that are not used, of numba about its future
        umap = need("umap")  # before the threads are bounded: those of what it brings are, too
        with one_thread():
            made = umap.UMAP(
                n_components=dimensions,
                n_neighbors=min(neighbours, len(vectors) - 1),
                min_dist=0.0,
                metric="cosine",
                random_state=seed,
                n_jobs=1,
            )
            return np.asarray(made.fit_transform(np.array(vectors)), np.float32)


def unit(vectors: Array) -> Array:
    """Each of length 1; a zero vector stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
