"""A cross-encoder reads query and passage together and scores the pair: slow and better, so only for the first few."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from agent.errors import SetupError
from agent.sources.corpus.encoder import fast_in_half, loading
from agent.sources.corpus.libraries import need

BATCH: Final = 32
"""Pairs of one forward pass."""

Pair = tuple[str, str]
"""A query and a passage's text."""


class Reranker:
    """A cross-encoder that is loaded. Its methods may be called from one thread at a time."""

    def __init__(self, model: Any, *, name: str) -> None:
        self._model = model
        self.name = name

    @classmethod
    def load(cls, model: str | Path, *, device: str | None = None, half: bool | None = None) -> "Reranker":
        """Load a cross-encoder by its folder or its name on the Hugging Face hub.

        Raises:
            SetupError: the extra `dense` is not installed, or the model cannot be loaded or gives more than one score.
        """
        torch, sentence_transformers = need("torch"), need("sentence_transformers")
        name = str(model)
        dtype = torch.bfloat16 if (fast_in_half(torch, device) if half is None else half) else torch.float32

        def load(folder: Path) -> Any:
            return sentence_transformers.CrossEncoder(
                str(folder),
                device=device,
                model_kwargs={"dtype": dtype, "use_safetensors": True},
                local_files_only=True,
                trust_remote_code=False,
            )

        loaded = loading(name, load, kind="cross-encoder", organization="cross-encoder")
        if loaded.num_labels != 1:
            raise SetupError(
                f"{name} gives {loaded.num_labels} scores for a pair; choose a cross-encoder that gives one"
            )
        return cls(loaded, name=name)

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """How well each passage answers its query: higher is better, comparable within one query."""
        if not pairs:
            return []
        scores = self._model.predict(list(pairs), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(scores, dtype=np.float32).reshape(-1).tolist()
