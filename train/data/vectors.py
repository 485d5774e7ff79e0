"""Documents as vectors, piece by piece, each piece kept; and fewer dimensions by UMAP (McInnes et al., 2018)."""

import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from train.data.duplicates import Show, need
from train.data.folder import Array, Folder
from train.data.recipe import WORDS
from train.data.records import Doc
from train.rewards.vectors import DIMENSIONS, hashed_words

Embed = Callable[[Sequence[str]], Array]
"""From n texts to [n, dimensions]."""
PIECE: Final = 256
"""Documents that are embedded and kept at once: at most so many are embedded again after a kill."""
_ROOM: Final = 3
"""UMAP lays out at least so many documents more than it leaves dimensions."""


def embedder(name: str, docs: Sequence[Doc]) -> Embed:
    """The model of a name; `words` needs none.

    Args:
        name: of a sentence-transformers model, or `words`.
        docs: all that will be embedded; `words` weighs a word by how few of them have it.

    Raises:
        SetupError: it cannot be loaded.
    """
    if name == WORDS:
        return weighed_words(docs)
    from agent.sources.corpus.encoder import Encoder

    return Encoder.load(name, half=False).encode_passages  # the same in every precision that a machine may prefer


def weighed_words(docs: Sequence[Doc]) -> Embed:
    """Hashed words, each weighed by log(documents / those that have it): what only a few share counts most."""
    having = np.zeros(DIMENSIONS)
    for at in range(0, len(docs), PIECE):
        having += (hashed_words([doc.whole for doc in docs[at : at + PIECE]]) > 0).sum(axis=0)
    weights = np.log(len(docs) / np.maximum(having, 1)).astype(np.float32)
    return lambda texts: hashed_words(texts) * weights


def embedded(docs: Sequence[Doc], load: Callable[[], Embed], folder: Folder, *, show: Show) -> Array:
    """Vectors of length 1: [documents, dimensions]. Pieces that are in the folder are read.

    Args:
        docs: in their order.
        load: the embedder, asked for only where a piece is missing.
        folder: of the build.
        show: is told how far it came.

    Raises:
        SetupError: the embedder cannot be loaded, or a piece cannot be written.
    """
    embed: Embed | None = None
    pieces: list[Array] = []
    for at in range(0, len(docs), PIECE):
        name = f"vectors/{at // PIECE:06d}.npy"
        piece = folder.array(name)
        if piece is None:
            embed = embed or load()
            piece = unit(embed([doc.whole for doc in docs[at : at + PIECE]]))
            folder.write_array(name, piece)
        pieces.append(piece)
        show(min(at + PIECE, len(docs)), len(docs))
    return np.concatenate(pieces)


def reduced(vectors: Array, *, dimensions: int, neighbours: int, seed: int) -> Array:
    """So many dimensions: [documents, dimensions]; the vectors as they are where there are too few to lay out.

    Args:
        vectors: [documents, d].
        dimensions: that are left.
        neighbours: that UMAP keeps together.
        seed: the same seed gives the same layout on one machine.

    Raises:
        SetupError: umap-learn is not installed.
    """
    if len(vectors) < dimensions + _ROOM or vectors.shape[1] <= dimensions:
        return vectors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of umap about parts that are not used, of numba about its future
        made = need("umap").UMAP(
            n_components=dimensions,
            n_neighbors=min(neighbours, len(vectors) - 1),
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        )
        return np.asarray(made.fit_transform(vectors), np.float32)


def unit(vectors: Array) -> Array:
    """Each of length 1; a zero vector stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
