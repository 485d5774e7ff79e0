"""The part of a page that fits a query: one run of its sentences, found by BM25 over words and stems. Pure.

The page is its own collection: a sentence is a document for the rarity of words, a run of sentences is one for the
score. Words in every sentence, as a page's subject does, thus count little.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from agent.sources.bm25 import query_stems, stem, words

PART_CHARS: Final = 1_500
SENTENCE_CHARS: Final = 400
"""A longer stretch without an end is cut between words."""

SATURATION: Final = 0.3
"""BM25's k1, lower than for documents: on a page, another word of the query says more than the same one again."""
SUBJECT_SHARE: Final = 0.3
"""What a word of the page's title counts. On questions made of a title and three words of one sentence of an
encyclopedia article, the part held that sentence in 78 % with plain BM25, in 80 % with this saturation, 87 % with both.
"""

_SENTENCE: Final = re.compile(r"[^\n]*?(?:[.!?。！？][\"'”’»)\]]*(?=\s)|[。！？]|(?=\n)|\Z)|\n")
_LONG: Final = re.compile(rf"\S[\s\S]{{0,{SENTENCE_CHARS - 1}}}(?=\s|\Z)|\S{{1,{SENTENCE_CHARS}}}")


@dataclass(frozen=True)
class PagePart:
    """A run of whole sentences: `page[start:end]` is the text."""

    start: int
    end: int
    text: str
    score: float
    """0 where no word of the query is in the page: then this is how the page begins."""


def best_part(page: str, query: str, *, subject: str = "", chars: int = PART_CHARS) -> PagePart:
    """Find the run of sentences that fits the query best; of equal ones, the first.

    Args:
        page: all of its text.
        query: what is looked for.
        subject: for example the page's title; its words say little of one part of the page.
        chars: the most; a single sentence that is longer is cut at its end.
    """
    spans = list(sentences(page))
    if not spans:
        return PagePart(0, 0, "", 0.0)
    wanted = list(dict.fromkeys(query_stems(query)))
    counts = _count(page, spans, wanted)
    known = set(query_stems(subject))
    shares = [SUBJECT_SHARE if term in known else 1.0 for term in wanted]
    weights = [share * _rarity(row, len(spans)) for share, row in zip(shares, counts, strict=True)]
    score, first, last = max(_windows(spans, counts, weights, chars), key=lambda window: window[0])
    if score:
        held = [at for at in range(first, last + 1) if any(row[at + 1] > row[at] for row in counts)]
        first, last = _grow(page, spans, held[0], held[-1], chars)
    else:
        first, last = _grow(page, spans, 0, 0, chars)
    start = spans[first][0]
    end = min(spans[last][1], start + chars)
    return PagePart(start, end, page[start:end], score)


def sentences(page: str) -> Iterator[tuple[int, int]]:
    """Give where each sentence begins and ends, without the space around it; a line ends a sentence."""
    for match in _SENTENCE.finditer(page):
        text = match[0]
        start = match.start() + len(text) - len(text.lstrip())
        end = start + len(text.strip())
        if end - start <= SENTENCE_CHARS:
            if end > start:
                yield start, end
        else:
            yield from (piece.span() for piece in _LONG.finditer(page, start, end))


def _count(page: str, spans: Sequence[tuple[int, int]], wanted: Sequence[str]) -> list[list[int]]:
    """Count, for each wanted stem, how often it stands before each sentence."""
    places = {term: at for at, term in enumerate(wanted)}
    rows = [[0] * len(spans) for _ in wanted]
    for at, (start, end) in enumerate(spans):
        for word in words(page[start:end]):
            place = places.get(stem(word))
            if place is not None:
                rows[place][at] += 1
    return [list(accumulate(row, initial=0)) for row in rows]


def _windows(
    spans: Sequence[tuple[int, int]], counts: Sequence[Sequence[int]], weights: Sequence[float], chars: int
) -> Iterator[tuple[float, int, int]]:
    """Score, from each sentence on, the run that is as long as it may be: (score, first, last).

    They are all about as long as each other: BM25's share for the length of a document is left out.
    """
    last = 0
    for first in range(len(spans)):
        last = max(first, last)
        while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= chars:
            last += 1
        score = 0.0
        for row, weight in zip(counts, weights, strict=True):
            count = row[last + 1] - row[first]
            score += weight * count / (count + SATURATION)
        yield score, first, last


def _rarity(row: Sequence[int], total: int) -> float:
    held = sum(1 for before, after in pairwise(row) if after > before)
    return math.log(1 + (total - held + 0.5) / (held + 0.5))


def _grow(page: str, spans: Sequence[tuple[int, int]], first: int, last: int, chars: int) -> tuple[int, int]:
    """Give the sentences that matter their neighbours: their paragraph's beginning, what follows, what is before."""

    def fits(first: int, last: int) -> bool:
        return first >= 0 and last < len(spans) and spans[last][1] - spans[first][0] <= chars

    while fits(first - 1, last) and "\n" not in page[spans[first - 1][1] : spans[first][0]]:
        first -= 1
    while fits(first, last + 1):
        last += 1
    while fits(first - 1, last):
        first -= 1
    return first, last
