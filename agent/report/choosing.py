"""Which sentences a section holds: what its run claimed, then what its passages say to its question."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from agent.checks.relevance import content_words
from agent.evidence import Passage
from agent.report.outline import document_of, place_of
from agent.report.sentences import FoundSentence, claimed, sentences_of
from agent.trace import Gathered, Trace

ENOUGH: Final = 5
"""Sentences of a section."""
_READ: Final = 10
"""Passages that are read for sentences."""
_FEW: Final = 2
"""Sentences of the section's own passages: with fewer, others are read."""
_LEAST_HITS: Final = 0.3
_CLAIMED: Final = 3.0
_FOCUS: Final = 0.5
_FIRST: Final = 0.4
_LEANING: Final = 0.3
_LONG: Final = 300


@dataclass(frozen=True)
class _Scored:
    candidate: FoundSentence
    score: float
    hits: float
    """Of the question's words, what share it has."""
    order: tuple[int, tuple[str, int], int]


@dataclass(frozen=True)
class _Wanted:
    """Words that the sentences of a section should have."""

    words: frozenset[str]
    focus: frozenset[str]
    """Those of the heading that the report's question has not; they count again."""

    def share(self, words: frozenset[str], title: frozenset[str]) -> float:
        """What share of them a sentence has; those of its page's title, which every sentence means, for half."""
        own, whole = words & self.words, self.words or title
        share = (len(own - title) + len(own & title) / 2) / max(1.0, len(whole - title) + len(whole & title) / 2)
        focus = self.focus - title
        return share + _FOCUS * len(words & focus) / max(1, len(focus))


def chosen(
    question: str,
    trace: Trace | None,
    passages: Sequence[Passage] = (),
    *,
    about: str = "",
    focus: str = "",
    said: Iterable[FoundSentence] = (),
    enough: int = ENOUGH,
) -> list[FoundSentence]:
    """The sentences of a section in the order in which they are read.

    Args:
        question: of the section.
        trace: of its run.
        passages: that the section was made from, best first: its sentences come from them. Where they have too few,
            and in a section that was made from none, what the run was shown is read, too.
        about: the report's question.
        focus: the section's heading.
        said: sentences of earlier sections, which are not repeated.
        enough: sentences.
    """
    topic = _topic(about)
    own = [one for one in claimed(trace) if topic(one.passages[0])] if trace else []
    wanted = _Wanted(content_words(f"{question} {about}"), content_words(focus) - content_words(about))
    own_passages = _once(passages)[:_READ]
    scored = _scored(wanted, own, own_passages if len(own) < enough else [])
    if len(scored) < _FEW:
        read = _once(chain(own_passages, filter(topic, _shown(trace))))[:_READ]
        others = _scored(wanted, own, read)
        known = {one.candidate.text for one in scored}
        scored += [one for one in others if one.candidate.text not in known and one.hits >= _LEAST_HITS]
    earlier, kept = list(said), list[_Scored]()
    for one in sorted(scored, key=lambda one: -one.score):
        taken = [*earlier, *(other.candidate for other in kept)]
        if len(kept) >= enough or one.candidate.repeats(taken):
            continue
        needed = [one]
        if one.candidate.leans and all(
            other.order[:2] != one.order[:2] or other.candidate.start != one.candidate.after for other in kept
        ):
            before = one.candidate.before()
            if before is None or before.leans or before.repeats(taken) or len(kept) + 2 > enough:
                continue
            needed.append(_Scored(before, one.score, one.hits, (*one.order[:2], before.start)))
        kept += needed
    return [one.candidate for one in sorted(kept, key=lambda one: one.order)]


def _scored(wanted: _Wanted, own: Sequence[FoundSentence], read: Sequence[Passage]) -> list[_Scored]:
    """Claims first; a sentence weighs by the words of the questions that it has, and by its place."""
    documents = {document: at for at, document in reversed(list(enumerate(map(document_of, read))))}
    scored: dict[str, _Scored] = {}
    for place, candidate in enumerate(own):
        first = candidate.passages[0]
        order = (documents.get(document_of(first), -1), place_of(first), candidate.start)
        if candidate.kind == "claim":
            order = (-1, ("", place), 0)
        scored.setdefault(candidate.text, _Scored(candidate, _CLAIMED + 1 / (1 + place), 1.0, order))
    for rank, passage in enumerate(read):
        for place, candidate in enumerate(sentences_of(passage)):
            order = (documents[document_of(passage)], place_of(passage), candidate.start)
            hits = wanted.share(candidate.words, content_words(passage.title))
            score = hits + 1 / (1 + rank) + _FIRST / (1 + place) - _LEANING * candidate.leans
            score -= max(0, len(candidate.text) - _LONG) / _LONG
            scored.setdefault(candidate.text, _Scored(candidate, score, hits, order))
    return list(scored.values())


def _topic(about: str) -> Callable[[Passage], bool]:
    """Whether a passage speaks of what the report is about: it has half of the words of its question, years apart."""
    words = frozenset(word for word in content_words(about) if not word.isdigit())

    def speaks_of_it(passage: Passage) -> bool:
        return 2 * len(words & content_words(f"{passage.title} {passage.text}")) >= len(words)

    return speaks_of_it


def _shown(trace: Trace | None) -> list[Passage]:
    """What the run was shown, best first."""
    return [p for step in trace.steps if isinstance(step, Gathered) for p in step.passages] if trace else []


def _once(passages: Iterable[Passage]) -> list[Passage]:
    return list({passage.identity: passage for passage in passages}.values())
