"""Your documents by words and by meaning: BM25 and dense search fused by reciprocal rank, and re-ranked on request.

The index, its records and BM25 are `corpus`'s, the vectors `dense`'s; here they are put together, query by query.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from agent.errors import CorpusError, SetupError, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.sources.corpus.dense import DENSE, DenseIndex, QueryEncoder, passage_text
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.encoder import Encoder, fast_in_half, loading
from agent.sources.corpus.libraries import need
from agent.sources.corpus.source import CACHE, THREAD_ROWS, CorpusSource
from agent.sources.filters import ReadFilters
from agent.sources.microbatch import MicroBatcher

BATCH: Final = 32
"""Pairs of one forward pass."""

Pair = tuple[str, str]
"""A query and a passage's text."""


class Reranker:
    """A cross-encoder that is loaded. Its methods may be called from one thread at a time.

    It reads query and passage together and scores the pair: slow and better, so only for the first few.
    """

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


Mode = Literal["auto", "bm25", "dense", "hybrid"]
Ranked = Sequence[tuple[int, float]]
"""Rows and scores, best first."""

RANK_CONSTANT: Final = 10
"""Smaller than the usual 60, which was chosen for many deep lists: with two lists and ten passages to show, what one of
them is sure of must not lose against what both find somewhere. Mean all-gold@10 of `cairn bench retrieval`, with equal
weights: 0.559 at 1, 0.558 at 5, 0.559 at 10, 0.549 at 20, 0.534 at 60 (BM25 alone 0.495, dense alone 0.491)."""
DEPTH: Final = 100
"""Rows that each part gives to the fusion."""
RERANKED: Final = 30
"""Passages that a cross-encoder reads."""
WIDER: Final = 8
"""With filters: how many times more rows are looked at when too few pass."""


def open_corpus(
    path: Path,
    *,
    mode: Mode = "auto",
    model: str | Path | None = None,
    rerank: str | Path | None = None,
    device: str | None = None,
    name: str = "corpus",
    cache: Path = CACHE,
) -> Source:
    """Open an index folder, or documents, as a source.

    Args:
        path: an index folder; of a file or folder of documents, an index is made in the cache.
        mode: what is searched. `auto`: hybrid where the index has a dense part, else BM25.
        model: encodes the queries; None: the one that the dense part was built with.
        rerank: a cross-encoder for the first passages; None: none.
        device: of the models, as torch names it.
        name: of the source.
        cache: where indices of documents are kept.

    Raises:
        CorpusError: there is no such index, or it has no dense part where one is needed, or another model made it.
        SetupError: a model cannot be loaded.
    """
    corpus = CorpusSource.open(path, name=name, cache=cache)
    folder = corpus.data / DENSE
    if mode == "auto":
        mode = "hybrid" if folder.is_dir() else "bm25"
    if mode != "bm25" and not folder.is_dir():
        raise CorpusError(
            f"the index {path} has no dense part; build it with: cairn index build CORPUS --out {path} --dense MODEL"
        )
    reranker = Reranker.load(rerank, device=device) if rerank else None
    if mode == "bm25":
        return HybridSource(corpus, reranker=reranker) if reranker else corpus
    dense = DenseIndex(folder)
    encoder = dense.encoder(model, device=device)
    return HybridSource(corpus, dense=dense, encoder=encoder, words=mode == "hybrid", reranker=reranker)


class HybridSource:
    """A corpus searched in one or two ways, as a `Source`. Queries that wait at the same time are encoded together."""

    def __init__(
        self,
        corpus: CorpusSource,
        *,
        dense: DenseIndex | None = None,
        encoder: QueryEncoder | None = None,
        words: bool = True,
        reranker: Reranker | None = None,
        depth: int = DEPTH,
        reranked: int = RERANKED,
    ) -> None:
        """Put a corpus and its dense part together.

        Args:
            corpus: keeps the passages and searches them by words.
            dense: searches them by meaning.
            encoder: of the queries; must be the one that `dense` was built with.
            words: whether BM25 searches; without it `dense` must be there.
            reranker: orders the first `reranked` passages again.
            depth: rows that each part gives to the fusion.
            reranked: how many passages the reranker reads.

        Raises:
            CorpusError: the dense part is of other documents, or of another model.
        """
        if (dense is None) != (encoder is None) or (dense is None and not words):
            raise ValueError("dense search needs an index and an encoder; without it, search by words")
        self.name = corpus.name
        self.card = corpus.card
        self._corpus, self._words, self._depth, self._reranked = corpus, words, depth, reranked
        self._meaning: MicroBatcher[tuple[str, int], Ranked] | None = None
        self._judge: MicroBatcher[Sequence[Pair], list[float]] | None = None
        if dense is not None and encoder is not None:
            if dense.card.passages != corpus.card.documents:
                raise CorpusError(f"the dense part in {dense.folder} is of other documents; build the index again")
            dense.refuse_other(encoder)
            workers = encoder.workers if isinstance(encoder, Encoder) else 1
            self._meaning = MicroBatcher(_Searcher(dense, encoder), name="the dense index", workers=workers)
        if reranker is not None:
            self._judge = MicroBatcher(_Judge(reranker), name="the cross-encoder", together=8)
        parts = [part for part, there in (("bm25", words), ("dense", dense), ("rerank", reranker)) if there]
        self.backend = "+".join(parts)

    def documents(self) -> Iterator[StoredPassage]:
        """Every passage of the corpus, read one by one."""
        return self._corpus.documents()

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages, best first.

        Raises:
            SourceError: too many queries wait already, or the index is damaged.
        """
        try:
            limit = max(request.limit, self._reranked) if self._judge else request.limit
            passages = await self._found(request.query, limit, request.filters)
        except CorpusError as error:
            raise SourceError(str(error)) from error
        if self._judge:
            passages = await self._judged(self._judge, request.query, passages)
        notes = self._corpus.cannot(request.filters)
        return SearchResult(tuple(passages[: request.limit]), backend=self.backend, notes=notes)

    async def aclose(self) -> None:
        for part in (self._meaning, self._judge):
            if part is not None:
                await part.aclose()

    async def _found(self, query: str, limit: int, filters: Sequence[Filter]) -> list[Passage]:
        """The best passages that pass the filters; where too few pass, more rows are looked at."""
        rows = self._corpus.card.documents
        wanted = self._corpus.wanted(filters)
        depth = max(self._depth, limit) if self._words or wanted != ReadFilters() else limit
        while True:
            passages = self._corpus.passages(await self._fused(query, depth), limit, wanted)
            if len(passages) >= limit or wanted == ReadFilters() or depth >= rows:
                return passages
            depth = min(rows, depth * WIDER)

    async def _fused(self, query: str, depth: int) -> Ranked:
        if self._meaning is None:
            return await self._by_words(query, depth)
        if not self._words:
            return await self._meaning.ask((query, depth))
        meaning = self._meaning.submit((query, depth))
        try:
            words = await self._by_words(query, depth)
            return fuse_rows([words, await meaning])
        finally:
            meaning.cancel()  # does nothing to one that is done

    async def _by_words(self, query: str, depth: int) -> Ranked:
        if self._corpus.card.documents < THREAD_ROWS:
            return self._corpus.ranked(query, depth)
        return await asyncio.to_thread(self._corpus.ranked, query, depth)

    async def _judged(
        self, judge: MicroBatcher[Sequence[Pair], list[float]], query: str, passages: list[Passage]
    ) -> list[Passage]:
        first, rest = passages[: self._reranked], passages[self._reranked :]
        scores = await judge.ask([(query, passage_text(p.title, p.text)) for p in first])
        order = sorted(range(len(first)), key=lambda at: -scores[at])
        judged = [first[at].model_copy(update={"score": scores[at]}) for at in order]
        return [p.model_copy(update={"rank": rank}) for rank, p in enumerate([*judged, *rest], start=1)]


def fuse_rows(lists: Sequence[Ranked], *, constant: int = RANK_CONSTANT) -> list[tuple[int, float]]:
    """Order rows by the sum of 1 / (constant + rank) over the lists that hold them; ties by the first list."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, (row, _) in enumerate(ranked, start=1):
            scores[row] = scores.get(row, 0.0) + 1 / (constant + rank)
    return sorted(scores.items(), key=lambda found: -found[1])


class _Searcher:
    """Encodes queries that wait together in one forward pass, and searches for all of them at once."""

    def __init__(self, dense: DenseIndex, encoder: QueryEncoder) -> None:
        self._dense, self._encoder = dense, encoder
        self._here = threading.local()

    def __call__(self, requests: Sequence[tuple[str, int]]) -> list[Ranked]:
        if isinstance(self._encoder, Encoder) and not hasattr(self._here, "begun"):
            self._here.begun = True
            self._encoder.share_cores()
            self._dense.share_cores(self._encoder.workers)
        depth = max(depth for _, depth in requests)
        found = self._dense.search(self._encoder.encode_queries([query for query, _ in requests]), depth)
        return [ranked[:depth] for ranked, (_, depth) in zip(found, requests, strict=True)]


class _Judge:
    """Scores the pairs of several queries in one go."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    def __call__(self, requests: Sequence[Sequence[Pair]]) -> list[list[float]]:
        scores = iter(self._reranker.score([pair for pairs in requests for pair in pairs]))
        return [[next(scores) for _ in pairs] for pairs in requests]
