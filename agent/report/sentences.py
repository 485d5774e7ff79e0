"""Sentences that a report may hold: those of a passage that can be read on their own, and those that support a claim.

Every sentence is checked against the passages that it cites; what is not supported by them is no `FoundSentence`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

from agent.checks import check_claim
from agent.checks.claims import claims_of
from agent.checks.page import page
from agent.checks.pointer import pointer
from agent.checks.relevance import content_words
from agent.checks.tokens import sentences
from agent.evidence import Passage
from agent.report.outline import document_of, place_of
from agent.trace import DOUBTED, Check, Claim, Gathered, Quote, Trace

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
_LONG_SECTION: Final = 300

_CHARS: Final = range(20, 421)
_LONG: Final = 300
_WORDS: Final = 5
_LETTERS: Final = 0.65
"""Least share of letters and spaces."""
_FENCE: Final = re.compile(
    r"^[ ]{0,3}(?:```|~~~)[^\n]*\n.*?(?:^[ ]{0,3}(?:```|~~~)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_BULLET: Final = re.compile(r"(?:[-*+•‣]|\d{1,2}[.)])\s+")
_REFERENCE: Final = re.compile(r"\s*\(\[[^\]\n]{1,200}\]\([^()\s]{1,500}\)\)")
_LINK: Final = re.compile(r"!?\[([^\]\n]{1,200})\]\([^()\s]{1,500}\)")
_MARKUP: Final = re.compile(
    r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`+"
    r"|\s*\[(?:citation needed|[‡†] ?\d+|note \d+)\]|\s+\(\s*\)|(?<=[.,;!?\"”])\[(?:\d{1,3}|[a-z])\]"
)
"""Of Markdown; and marks of an encyclopedia's notes."""
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_DOTS: Final = re.compile(r"(?<=\w[.]) ?[.]$")
_ENDS: Final = re.compile(r"[.!?][\"'”’)\]]*$")
_BEGINS: Final = re.compile(r"[\"'“‘]*[A-Z0-9À-ÖØ-ÞΑ-ΩА-Я\u0590-\u1fff\u3040-\ud7ff]")
_FOREIGN: Final = re.compile(r"[|›{}<>\\]|://|\*\*|```|\]\(|…$|^#")
_LEANS: Final = frozenset(
    "he she it they this that these those his her hers its their theirs him them such however but and also then "
    "therefore thus otherwise so both there here instead another others meanwhile additionally furthermore moreover "
    "similarly likewise consequently nevertheless afterwards later".split()
)
"""A sentence that begins with one of these is read after the one before it."""
_REPEATS: Final = 0.6
"""Share of common words from which on two sentences say the same."""


@dataclass(frozen=True)
class FoundSentence:
    """A sentence that is supported by the passages that it cites."""

    text: str
    kind: Literal["claim", "quote"]
    check: Check
    passages: tuple[Passage, ...]
    quotes: tuple[Quote, ...]
    """Numbers are places in `passages`, from 1."""
    start: int = 0
    """Where it is in its passage."""
    after: int = -1
    """Where the sentence before it stands."""
    leans: bool = False
    words: frozenset[str] = frozenset()
    own_words: frozenset[str] = frozenset()
    """Its words without those of its page's title, which most sentences of the page have."""

    def before(self) -> "FoundSentence | None":
        """The sentence of its passage that it is read after, where that can be quoted."""
        return next((one for one in sentences_of(self.passages[0]) if one.start == self.after), None)

    def repeats(self, others: Iterable["FoundSentence"]) -> bool:
        return any(
            _alike(self.words, other.words)
            and _alike(self.own_words, other.own_words)
            and not _numbers_differ(self.text, other.text)
            for other in others
        )


def plain(text: str) -> str:
    """A sentence without the marks of Markdown, its bullet and the addresses of its links, on one line."""
    text = _BULLET.sub("", text, count=1) if _BULLET.match(text) else text
    text = _MARKUP.sub("", _LINK.sub(r"\1", _REFERENCE.sub("", text)))
    return _DOTS.sub("", " ".join(text.split()))


def readable(text: str) -> bool:
    """Whether a sentence of a page is prose that says something to one who has not seen the page."""
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return (
        len(text) in _CHARS
        and len(text.split()) >= _WORDS
        and letters >= _LETTERS * len(text)
        and bool(_BEGINS.match(text))
        and bool(_ENDS.search(text))
        and not _FOREIGN.search(text)
        and text.count('"') % 2 == 0
        and text.count("(") == text.count(")")
    )


def supported(
    text: str, kind: Literal["claim", "quote"], passages: Sequence[Passage], *, start: int = 0, after: int = -1
) -> FoundSentence | None:
    """The sentence, where the checker says that these passages support it."""
    shown = {number: (passage,) for number, passage in enumerate(passages, start=1)}
    judged = check_claim(Claim(text=text, cites=tuple(shown)), shown)
    if judged.check in DOUBTED or not judged.quotes:
        return None
    numbers = list(dict.fromkeys(quote.number for quote in judged.quotes))
    places = {number: place for place, number in enumerate(numbers, start=1)}
    words = content_words(text)
    return FoundSentence(
        text,
        kind,
        judged.check,
        tuple(passages[number - 1] for number in numbers),
        tuple(quote.model_copy(update={"number": places[quote.number]}) for quote in judged.quotes),
        start,
        after,
        kind == "quote" and _first_word(text) in _LEANS,
        words,
        words - content_words(passages[numbers[0] - 1].title) or words,
    )


def sentences_of(passage: Passage) -> Iterator[FoundSentence]:
    """The sentences of a passage that can be quoted, in order."""
    code = [match.span() for match in _FENCE.finditer(passage.text)]
    after = -1
    for found in sentences(passage.text):
        text = plain(passage.text[found.start : found.end])
        inside = any(start <= found.start < end for start, end in code)
        quotable = not inside and readable(text)
        if quotable and (one := supported(text, "quote", [passage], start=found.start, after=after)):
            yield one
        after = found.start


def claimed(trace: Trace) -> Iterator[FoundSentence]:
    """What a run's supported claims come to: sentences as they are, short claims as the sentences they rest on."""
    claims, shown = claims_of(trace)
    for claim in claims:
        passages = [passage for number in claim.cites for passage in shown.get(number, ())]
        if own := _whole_sentence(claim, passages):
            yield own
            continue
        for quote in claim.quotes if claim.check not in DOUBTED else ():
            for passage in shown.get(quote.number, ()):
                if passage.text[quote.start : quote.end] == quote.text:
                    yield from (one for one in sentences_of(passage) if _around(one, quote, passage))


def unsaid(trace: Trace) -> Iterator[str]:
    """The claims of a run that no page which they cite supports."""
    claims, shown = claims_of(trace)
    for claim in claims:
        passages = [passage for number in claim.cites for passage in shown.get(number, ())]
        if claim.check in DOUBTED and not _whole_sentence(claim, passages):
            yield plain(claim.text)


def _whole_sentence(claim: Claim, passages: Sequence[Passage]) -> FoundSentence | None:
    """A claim that reads as a sentence, where its passages support it; the page's own where it has the same words.

    A small policy likes to put the page's title, or a relation, before a sentence of the page: without it, the
    sentence is checked. What only says "TITLE, relation: VALUE" is no sentence.
    """
    titles = [passage.title for passage in passages]
    for text in map(_ended, _without_title(plain(claim.text), titles)):
        if len(text.split()) < _WORDS or not readable(text) or pointer(text, titles):
            continue
        if found := supported(text, "claim", passages):
            quote, passage = found.quotes[0], found.passages[found.quotes[0].number - 1]
            own = (one for one in sentences_of(passage) if _around(one, quote, passage))
            return next(own, found) if found.check == "verbatim" else found
    return None


def _without_title(text: str, titles: Sequence[str]) -> Iterator[str]:
    """The text, and what it says behind a title or behind the first colon."""
    title = next((t for t in sorted(map(plain, titles), key=len, reverse=True) if t and text.startswith(t)), "")
    if not title:
        yield text
    yield re.sub(r"^\s*[:—–-]\s+", "", text.removeprefix(title))
    yield text.removeprefix(title).partition(": ")[2]


def _ended(text: str) -> str:
    text = plain(text)
    return text if _ENDS.search(text) else f"{text}."


def _around(candidate: FoundSentence, quote: Quote, passage: Passage) -> bool:
    """Whether a sentence of the passage holds the quoted words."""
    line = next((one for one in page(passage.title, passage.text).lines if one.start == candidate.start), None)
    return line is not None and line.start <= quote.start < line.end


def _first_word(text: str) -> str:
    return re.split(r"[\s,]", text.lstrip("\"'“‘("), maxsplit=1)[0].casefold().removesuffix("'s")


def _numbers_differ(one: str, other: str) -> bool:
    """Whether each of two texts has a number that the other has not, as two years or two sums."""
    first, second = {*_NUMBER.findall(one)}, {*_NUMBER.findall(other)}
    return bool(first - second and second - first)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _REPEATS * max(1, min(len(one), len(other)))


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
            score -= max(0, len(candidate.text) - _LONG_SECTION) / _LONG_SECTION
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
