"""Builds an index folder out of documents. What an older index has of files that did not change is kept.

Passages come from the older index or from the files, in the order of the files; then BM25 is made of all of them
again, which costs seconds where reading costs minutes; vectors are kept by the text that they were made of.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

import numpy as np

from agent.errors import CorpusError
from agent.sources.arrays import load_array
from agent.sources.bm25 import CHUNK, Bm25Index, batched, stems_of
from agent.sources.corpus.ann import Kind
from agent.sources.corpus.dense import DENSE, DenseCard, build_dense, discard
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.elsewhere import ItemSpread, encode_with
from agent.sources.corpus.encoder import Encoder, model_name
from agent.sources.corpus.finding import FoundFiles, SkippedFile, find_files
from agent.sources.corpus.folder import (
    INDEX,
    OFFSETS,
    RECORDS,
    TITLE_WEIGHT,
    VECTORS,
    IndexCard,
    locked,
    new_building,
    new_data_name,
    publish,
    refuse_strange,
    sweep,
)
from agent.sources.corpus.gathering import Gathering, Older, OlderDamaged
from agent.sources.corpus.records import Records

Stage = Literal["reading", "indexing", "encoding", "writing"]
Progress = Callable[[Stage, int, int], None]
"""Takes the stage of the building, how much is done, and of how much: bytes of input while reading, passages
while indexing and encoding, steps while writing."""

_REPORT_EVERY: Final = 1000


def silent(stage: Stage, done: int, total: int) -> None:
    """No one watches."""


@dataclass(frozen=True)
class Dense:
    """How passages are to be found by their meaning."""

    model: str
    """A folder, the name of a packaged model, or a name on the Hugging Face hub."""
    ann: Kind | None = None
    """None: what fits the size."""
    encoder: Encoder | None = None
    """The model, if it is loaded already."""

    def load(self) -> Encoder:
        return self.encoder or Encoder.load(self.model)

    def made(self, card: DenseCard | None) -> bool:
        """Whether an index is what is wanted, as far as can be seen without loading the model."""
        if card is None or card.model != model_name(self.model) or (self.ann and card.index.kind != self.ann):
            return False
        return self.encoder is None or self.encoder.fingerprint == card.fingerprint


@dataclass(frozen=True)
class Outcome:
    """What a build did."""

    card: IndexCard
    new: int
    """Files that give passages and gave none before."""
    changed: int
    removed: int
    """Files that gave passages and give none any more."""
    kept: int
    """Files that are as they were: nothing of them was read again."""
    skipped: tuple[SkippedFile, ...]
    """Files that give no passages, or not all of them."""
    seconds: float


def build_index(
    paths: Sequence[Path],
    out: Path,
    *,
    dense: Dense | None = None,
    strict: bool = False,
    wait: bool = False,
    progress: Progress = silent,
) -> IndexCard:
    """As `update_index`, for who wants the card only."""
    return update_index(paths, out, dense=dense, strict=strict, wait=wait, progress=progress).card


def update_index(
    paths: Sequence[Path],
    out: Path,
    *,
    dense: Dense | None = None,
    strict: bool = False,
    wait: bool = False,
    spread: ItemSpread | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Index documents into the folder `out`. Whatever ends the work before leaves the index that was there.

    Args:
        paths: files and folders.
        out: of an index that is there, what did not change is kept; the result is the same as without it.
        dense: how to find passages by their meaning, too.
        strict: stop at a file or line that cannot be read, instead of going on without it.
        wait: wait for another build of this index, instead of refusing.
        spread: who finds the words and makes the vectors; None: this process. The index is the same.
        progress: takes how far it came.

    Raises:
        CorpusError: documents that cannot be read, or `out` holds something that is no index, or is being written.
        SetupError: the dense model cannot be loaded, or the kind of index needs more passages.
    """
    found = find_files(paths, leave_out=out)
    return update_found(found, out, dense=dense, strict=strict, wait=wait, spread=spread, progress=progress)


def update_found(
    found: FoundFiles,
    out: Path,
    *,
    dense: Dense | None = None,
    strict: bool = False,
    wait: bool = False,
    spread: ItemSpread | None = None,
    progress: Progress = silent,
) -> Outcome:
    """As `update_index`, of files that were found already and have names of the caller's.

    Raises:
        NoDocuments: none of them gives a passage. CorpusError, SetupError: as there.
    """
    refuse_strange(out)
    try:
        with locked(out, wait=wait):
            return _update(found, out, dense, strict, spread, progress)
    except OSError as error:
        raise CorpusError(f"the index cannot be written to {out}: {error}") from error


def _update(
    found: FoundFiles, out: Path, dense: Dense | None, strict: bool, spread: ItemSpread | None, progress: Progress
) -> Outcome:
    """Build under the lock of the folder."""
    started = perf_counter()
    older = Older.open(out)
    sweep(out, keep=older.card.data if older else None)
    try:
        card, gathering = _gathered(found, out, older, dense, strict, spread, progress)
    except OlderDamaged:
        card, gathering = _gathered(found, out, None, dense, strict, spread, progress)
    return Outcome(
        card,
        new=gathering.counts["new"],
        changed=gathering.counts["changed"],
        removed=gathering.removed,
        kept=gathering.counts["kept"],
        skipped=tuple(gathering.skipped),
        seconds=perf_counter() - started,
    )


def _gathered(
    found: FoundFiles,
    out: Path,
    older: Older | None,
    dense: Dense | None,
    strict: bool,
    spread: ItemSpread | None,
    progress: Progress,
) -> tuple[IndexCard, Gathering]:
    """The card of what is in `out` in the end, and how the documents came there."""
    gathering = Gathering(found, older, strict=strict, tick=lambda done, total: progress("reading", done, total))
    if older and gathering.unchanged and (dense.made(older.card.dense) if dense else older.card.dense is None):
        gathering.keep_all()
        card = older.card
    else:
        building = new_building(out)
        try:
            card = _write(building, out, gathering, older, dense, spread, progress)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return card, gathering


def _write(
    building: Path,
    out: Path,
    gathering: Gathering,
    older: Older | None,
    dense: Dense | None,
    spread: ItemSpread | None,
    progress: Progress,
) -> IndexCard:
    encoder = dense.load() if dense else None  # what is wrong with it should show before an hour of reading
    gathering.write(building)
    rows = gathering.rows
    with Records(building / RECORDS, load_array(building / OFFSETS, np.int64)) as stored:
        chunks = batched(_watched("indexing", (_weighted(d) for d in stored), rows, progress), CHUNK)
        index = Bm25Index.of(spread.mapped(stems_of, chunks) if spread else map(stems_of, chunks))
        index.save(building / INDEX)
        del index  # it need not be in memory beside a model
        dense_card = None
        if dense and encoder:
            dense_card = _write_dense(building, out, stored, older, encoder, dense.ann, spread, progress)
    progress("writing", 0, 1)
    card = IndexCard(
        data=new_data_name(),
        documents=rows,
        sources=sum(entry.rows > 0 for entry in gathering.entries),
        dated=gathering.dated,
        with_url=gathering.with_url,
        sha256=gathering.sha256,
        files=_sizes(building),
        dense=dense_card,
    )
    publish(building, out, card)
    discard(out / VECTORS)
    progress("writing", 1, 1)
    return card


def _write_dense(
    building: Path,
    out: Path,
    stored: Records,
    older: Older | None,
    encoder: Encoder,
    kind: Kind | None,
    spread: ItemSpread | None,
    progress: Progress,
) -> DenseCard:
    progress("encoding", 0, len(stored))
    return build_dense(
        ((document.title, document.text) for document in stored),
        building / DENSE,
        count=len(stored),
        encoder=encoder,
        kind=kind,
        older=older.folder / DENSE if older else None,
        log=out / VECTORS,
        encode=encode_with(spread, encoder) if spread and not spread.here else None,
        progress=lambda done, total: progress("encoding", done, total),
    )


def _watched(stage: Stage, texts: Iterator[str], total: int, progress: Progress) -> Iterator[str]:
    for done, text in enumerate(texts):
        if done % _REPORT_EVERY == 0:
            progress(stage, done, total)
        yield text
    progress(stage, total, total)


def _weighted(document: StoredPassage) -> str:
    """What is indexed of a passage."""
    return f"{document.title} " * TITLE_WEIGHT + document.text


def _sizes(folder: Path) -> dict[str, int]:
    return {p.relative_to(folder).as_posix(): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()}
