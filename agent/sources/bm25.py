"""BM25 over short texts: bm25s makes and keeps the index, the words and the search are here.

Search scores straight from the sparse matrix: on a few hundred texts a query costs tens of microseconds.
"""

import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import Stemmer
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import from_json

from agent.errors import CorpusError
from agent.files.foreign import read_file
from agent.sanitize.text import ALONE, SIGNS, without_marks
from agent.sources.arrays import load_array

K1: Final = 1.2
B: Final = 0.5
CHUNK: Final = 512
"""Texts whose words are looked for at once."""
MOST_ROWS: Final = 1 << 31
_PARAMS_BYTES: Final = 1 << 20
_VOCABULARY_BYTES: Final = 1 << 30

_WORD: Final = re.compile(rf"[{ALONE}][\u3099\u309a]?|[^\W_{ALONE}]+(?:[{SIGNS}]+[^\W_{ALONE}]*)*")
Rows = Sequence[tuple[int, int]]
"""Ranges of row numbers: from the first one up to, and without, the second, in rising order."""
_stemmer = cast(Any, Stemmer).Stemmer("english")


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    return cast(str, _stemmer.stemWord(word))


def words(text: str) -> list[str]:
    """Split text into words without case and accents. One character is a word too: names and formulas have them.

    Of a script that is written without spaces each character is one.
    """
    text = text.casefold()
    if not text.isascii():
        text = without_marks(text)
    return _WORD.findall(text)


def query_stems(query: str) -> list[str]:
    """Give the stems to look for: stop words count only where there is nothing else ("Who are you")."""
    found = words(query)
    return [stem(word) for word in found if word not in STOP_WORDS] or [stem(word) for word in found]


@dataclass(frozen=True)
class Stems:
    """The words of some texts in a row, small enough to be sent from one process to another."""

    stems: tuple[str, ...]
    """Each one once, in the order in which they first occur."""
    texts: "tuple[array[int], ...]"
    """Of each text, the places of its words in `stems`."""


def stems_of(texts: Sequence[str]) -> Stems:
    places: dict[str, int] = {}
    place = places.setdefault
    found = tuple(array("i", [place(stem(word), len(places)) for word in words(text)]) for text in texts)
    return Stems(tuple(places), found)


def batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Texts in a row, N at once; the last ones are fewer."""
    waiting = iter(texts)
    while chunk := list(islice(waiting, size)):
        yield chunk


class Bm25Index:
    """Texts by row number. It holds no texts itself."""

    def __init__(self, parts: "_Parts", model: Any = None) -> None:
        self._model = model
        """What can be saved: of an index that was just built."""
        self.rows = parts.rows
        self._vocabulary = parts.vocabulary
        # A view as a plain array: slices of a memmap object cost several times as much.
        self._data: NDArray[np.float32] = np.asarray(parts.data)
        self._indices: NDArray[np.int32] = np.asarray(parts.indices)
        self._starts: list[int] = parts.starts.tolist()

    @classmethod
    def build(cls, texts: Iterable[str]) -> "Bm25Index":
        """Index texts; row i is text i.

        Raises:
            ValueError: there are no texts.
        """
        return cls.of(map(stems_of, batched(texts, CHUNK)))

    @classmethod
    def of(cls, chunks: Iterable["Stems"]) -> "Bm25Index":
        """Index texts whose words were found already, maybe elsewhere: the same as `build` makes of the texts.

        Raises:
            ValueError: there are no texts.
        """
        vocabulary: dict[str, int] = {"": 0}  # never empty, also where no text has a word
        number = vocabulary.setdefault
        ids: list[array[int]] = []
        for chunk in chunks:
            numbers = [number(stem, len(vocabulary)) for stem in chunk.stems]
            ids += [array("i", [numbers[place] for place in text]) for text in chunk.texts]
        if not ids:
            raise ValueError("an index needs at least one text")
        model = BM25(k1=K1, b=B, method="lucene")
        # One text with one empty word keeps the mean length above 0 where no text has a word.
        model.index(
            (ids if any(ids) else [array("i", [0]), *ids[1:]], vocabulary),
            create_empty_token=False,
            show_progress=False,
        )
        scores = cast(dict[str, Any], model.scores)
        held = _Parts(int(scores["num_docs"]), vocabulary, scores["data"], scores["indices"], scores["indptr"])
        return cls(held, model)

    def frequency(self, stem: str) -> int:
        """In how many texts a stem occurs."""
        place = self._vocabulary.get(stem)
        return 0 if place is None else self._starts[place + 1] - self._starts[place]

    def search(
        self,
        query: str,
        limit: int,
        *,
        weights: Mapping[str, float] | None = None,
        within: Rows | None = None,
        above: float = 0.0,
    ) -> list[tuple[int, float]]:
        """Give at most `limit` rows, best first; ties by row.

        Args:
            query: in words.
            limit: of rows.
            weights: by which the scores of a stem are multiplied; 1 where one is not named.
            within: the ranges of rows that may be found; None: all.
            above: what a score must exceed.

        Raises:
            CorpusError: the index is damaged.
        """
        starts = self._starts
        places = ((stem, self._vocabulary.get(stem)) for stem in query_stems(query))
        found = [(stem, place) for stem, place in places if place is not None]
        if not found or limit < 1:
            return []
        spans = [slice(starts[place], starts[place + 1]) for _, place in found]
        indices = np.concatenate([self._indices[span] for span in spans])
        factors = [1.0 if weights is None else weights.get(stem, 1.0) for stem, _ in found]
        parts = (
            self._data[span] if by == 1.0 else self._data[span] * by for span, by in zip(spans, factors, strict=True)
        )
        data = np.concatenate(list(parts))
        return self._best(indices, data, limit, within, above)

    def _best(
        self,
        indices: NDArray[np.int32],
        weights: NDArray[np.floating[Any]],
        limit: int,
        within: Rows | None,
        above: float,
    ) -> list[tuple[int, float]]:
        """The rows with the largest sums of weights."""
        if len(indices) and not (indices.min() >= 0 and indices.max() < self.rows):
            raise CorpusError("the BM25 index is damaged: it names passages that are not there; build it again")
        scores = np.bincount(indices, weights=weights, minlength=self.rows)
        if within is None:
            rows = np.flatnonzero(scores > above)
        else:
            ranges = [start + np.flatnonzero(scores[start:end] > above) for start, end in within]
            rows = np.concatenate(ranges) if ranges else np.empty(0, np.int64)
        found = scores[rows]
        if not np.isfinite(found).all():
            raise CorpusError("the BM25 index is damaged: its scores are not numbers; build it again")
        if len(rows) > limit:
            least = np.partition(found, len(found) - limit)[len(found) - limit]
            kept = found >= least
            rows, found = rows[kept], found[kept]
        order = np.argsort(-found, kind="stable")[:limit]
        return list(zip(rows[order].tolist(), found[order].tolist(), strict=True))

    def search_many(self, queries: Sequence[str], limit: int) -> list[list[tuple[int, float]]]:
        return [self.search(query, limit) for query in queries]

    def save(self, folder: Path) -> None:
        """Write the index into a folder; the caller makes that atomic."""
        self._model.save(folder, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> "Bm25Index":
        """Open what `save` wrote, mapped into memory; a stranger may have written it.

        What every search reads is checked here; the rows of a word when it is looked for: an index may have billions.

        Raises:
            CorpusError: the folder holds no such index, or a damaged one.
        """
        try:
            params = from_json(read_file(folder / "params.index.json", most=_PARAMS_BYTES, follow=False))
            vocabulary: object = from_json(read_file(folder / "vocab.index.json", most=_VOCABULARY_BYTES, follow=False))
            parts = _Parts(
                _ROWS.validate_python(params).num_docs,
                _places(vocabulary),
                load_array(folder / "data.csc.index.npy", np.float32),
                load_array(folder / "indices.csc.index.npy", np.int32),
                load_array(folder / "indptr.csc.index.npy", np.int64),
            )
        except (OSError, ValueError, MemoryError, RecursionError) as error:
            raise CorpusError(f"{folder} holds no readable BM25 index ({error}); build it again") from error
        if not parts.fit():
            raise CorpusError(f"the BM25 index in {folder} is damaged: its parts do not fit; build it again")
        return cls(parts)


class _Rows(BaseModel):
    """What is read of the parameters."""

    num_docs: int = Field(ge=1, le=MOST_ROWS, strict=True)


_ROWS: Final = TypeAdapter(_Rows)


@dataclass(frozen=True)
class _Parts:
    """The matrix of scores by word: those of word w are data[starts[w]:starts[w + 1]], for the rows in indices."""

    rows: int
    vocabulary: dict[str, int]
    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    starts: NDArray[np.int64]

    def fit(self) -> bool:
        """Whether every word has its span inside the matrix."""
        words = len(self.starts) - 1
        return (
            len(self.indices) == len(self.data)
            and min(self.vocabulary.values()) >= 0
            and max(self.vocabulary.values()) < words
            and int(self.starts[0]) == 0
            and int(self.starts[-1]) == len(self.data)
            and bool((self.starts[1:] >= self.starts[:-1]).all())
        )


def _places(vocabulary: object) -> dict[str, int]:
    """What is written as a vocabulary, if it is one.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(vocabulary, dict):
        raise ValueError("the vocabulary is not an object")
    places = cast(dict[str, int], vocabulary)
    if set(map(type, places.values())) != {int}:
        raise ValueError("the vocabulary has other values than whole numbers")
    return places


_LARGE: Final = ("jax", "numba", "scipy")
"""What bm25s imports where it is installed, for backends that Cairn does not use: half of the time of a start."""
_before = {name: sys.modules[name] for name in _LARGE if name in sys.modules}
_unknown: dict[str, Any] = sys.modules  # None in it makes an import fail
_unknown.update(dict.fromkeys(_LARGE) | _before)
try:
    import bm25s  # pyright: ignore[reportMissingTypeStubs]
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # pyright: ignore[reportMissingTypeStubs]
finally:
    for _name in set(_LARGE) - set(_before):
        del _unknown[_name]

BM25: Final = cast(Any, bm25s.BM25)
STOP_WORDS: Final = frozenset(cast(tuple[str, ...], STOPWORDS_EN_PLUS))
