"""Texts as vectors, for the similarity of queries and of passages. Without any model: hashed words."""

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from train.evaluation.words import words
from train.rewards.support.masking import Masked

Vectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""From n texts to [n, dimensions]; may raise `Masked`."""

DIMENSIONS: Final = 4096


def hashed_words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Counts of words, each in the column of its hash: [texts, DIMENSIONS]. No cosine of two is below 0.

    The same on every machine. "Born in Trieste" and "Trieste birthplace" share one word of two.
    """
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in words(text):
            row[_column(word)] += 1
    return rows


def encoder_vectors(model: str | Path, *, device: str | None = None) -> Vectors:
    """Vectors of a sentence-transformers model; the paper's is Qwen3-Embedding.

    What fails later, a GPU that has no memory left for one, masks the rollout.

    Raises:
        SetupError: the extra `dense` is not installed, or the model cannot be loaded.
    """
    from agent.sources.corpus.encoder import Encoder  # torch comes with it

    encode = Encoder.load(model, device=device).encode_queries

    def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            return encode(texts)
        except Exception as error:  # torch has errors of its own, with no base in common
            raise Masked(f"the embedder failed: {error}") from error

    return vectors


def cosines(vectors: NDArray[np.float32], others: NDArray[np.float32] | None = None) -> NDArray[np.float64]:
    """Cosines of each with each of `others` (by default of themselves): [n, m]. One with a zero vector is 0."""
    left = _unit(vectors)
    return np.clip(left @ (left if others is None else _unit(others)).T, -1.0, 1.0)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return exact / np.where(lengths > 0, lengths, 1.0)


@lru_cache(maxsize=200_000)
def _column(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big") % DIMENSIONS
