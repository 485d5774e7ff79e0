"""What the pages that a claim cites say of it: that it is so, that it is otherwise, or nothing that can be verified."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.checks.align import align, content, negates
from agent.checks.alike import has
from agent.checks.close import Support, drawn, group_lines, tellers, turned_around
from agent.checks.facts import End, SentenceReading, StatedFact, read
from agent.checks.lexicon import KINDS, SENSES
from agent.checks.mentions import Mention, Titles, mentions, same
from agent.checks.page import ReadPage
from agent.checks.patterns import stated_by
from agent.checks.pointer import WHAT_IT_IS, Pointer, pointer, said_short, senses_of
from agent.checks.tokens import Token, sentences, tokens

State = Literal["supported", "not_verified", "contradicted"]

_ONCE: Final = frozenset("birth death founded released published".split())
"""Relations that have one date: a page that gives another one contradicts."""


@dataclass(frozen=True, slots=True)
class Judged:
    state: State
    lines: tuple[Support, ...] = ()
    """Where the pages say it; none where they do not."""


_UNKNOWN: Final = Judged("not_verified")
_DENIED: Final = Judged("contradicted")


def judged(text: str, pages: Sequence[ReadPage]) -> Judged:
    """Every sentence of a claim must be supported; one that is contradicted contradicts all of it."""
    if (short := pointer(text, [page.title for page in pages])) is not None:
        return _short(short, pages)
    return _sentences(text, pages)


def _sentences(text: str, pages: Sequence[ReadPage]) -> Judged:
    found = [_sentence(text[s.start : s.end], s.tokens, pages) for s in sentences(text)]
    if not found or any(one.state != "supported" for one in found):
        return _DENIED if any(one.state == "contradicted" for one in found) else _UNKNOWN
    return Judged("supported", tuple(line for one in found for line in one.lines))


# Sentences


def _sentence(text: str, found: Sequence[Token], pages: Sequence[ReadPage]) -> Judged:
    titles = tuple({m.words: None for p in pages for m in p.names if m.words and not m.weak})
    claim = read(found, titles=titles)
    if lines := _facts(claim, pages):
        return Judged("supported", tuple(lines))
    for short in said_short(text) if not claim.negated else ():
        if senses_of(short.relation) and (verdict := _short(short, pages, claim)).state != "not_verified":
            return verdict
    if any(turned_around(fact, claim, pages) for group in claim.groups for fact in group):
        return _DENIED
    best = align(claim, pages)
    if best is not None and best.says:
        return Judged("supported", ((best.page, best.line),))
    return _DENIED if best is not None and best.denies else _UNKNOWN


def _facts(claim: SentenceReading, pages: Sequence[ReadPage]) -> list[Support] | None:
    """The lines that state every fact of the claim, where the rest of it stands near them."""
    lines: list[Support] = []
    for group in claim.groups:
        stating = group_lines(group, claim, pages)
        if stating is None:
            return None
        lines += stating
    return lines if lines and _rest_stands(claim, pages, lines) else None


def _rest_stands(claim: SentenceReading, pages: Sequence[ReadPage], lines: Sequence[Support]) -> bool:
    """Whether every name, number and word that is no part of a fact stands near one, and is negated alike."""
    wanted = [token for place, token in content(claim) if place not in claim.used]
    negated = any(fact.negated for group in claim.groups for fact in group)
    if claim.negated and not negated and not any(negates(pages[n].lines[at].reading, wanted) for n, at in lines):
        return False
    if not all(_near(mention, pages, lines) for mention in claim.mentions if not mention.weak):
        return False
    stems = frozenset(stem for page in {page for page, _ in lines} for stem in pages[page].stems)
    return all(has(token, stems) or token.text in KINDS for token in wanted)


def _near(mention: Mention, pages: Sequence[ReadPage], lines: Sequence[Support]) -> bool:
    """Whether a name, date or number is in a line, the one before it or the title."""
    for number, at in lines:
        page = pages[number]
        near = [line for k, line in enumerate(page.lines) if k in (at - 1, at) or line.start < 0]
        if mention.kind == "name":
            if page.names_it(mention, [m for line in near for m in (*line.reading.mentions, *line.context)]):
                return True
        elif any(same(mention, m) for line in near for m in line.reading.mentions):
            return True
    return False


# Claims in short


def _short(short: Pointer, pages: Sequence[ReadPage], claim: SentenceReading | None = None) -> Judged:
    """A claim in short: its relation must be stated; where it names none, the page must have its value.

    Args:
        short: the claim.
        pages: that it cites.
        claim: the sentence that comes to it, if it is one: "is the head" is not true of a former head.
    """
    known = tuple({m.words: None for page in pages for m in page.names if m.words and not m.weak})
    about, value = _whole(short.bare, known), _whole(short.value, known)
    if not about.words or not (value.words or value.kind != "name"):
        return _UNKNOWN
    if not short.relation:
        line = next(_having(value, short.value, about, pages), None)
        return Judged("supported", (line,)) if line else _UNKNOWN
    senses = senses_of(short.relation)
    if not senses:
        return _in_sentences(short, pages)
    reading = claim or read(tokens(short.value))
    facts = [StatedFact(sense, End((about,)), End((value,)), False, (), 0, 0) for sense in senses]
    topic = any(page.knows(value, m) for page in pages for m in page.topics)
    own = any(page.knows(about, m) for page in pages for m in page.topics)
    for fact in facts if own or not topic else ():
        line = next(tellers(fact, value, reading, pages), None) if fact.sense in SENSES else None
        if line or (line := drawn(fact, value, pages)):
            return Judged("supported", (line,))
    dated = value.kind == "date" and any(_has_other(fact, value, pages) for fact in facts if fact.sense in _ONCE)
    around = any(fact.sense in SENSES and turned_around(fact, reading, pages) for fact in facts)
    return _DENIED if dated or around else _UNKNOWN


def _in_sentences(short: Pointer, pages: Sequence[ReadPage]) -> Judged:
    """A claim in short whose relation the lexicon does not know, as sentences.

    They may be no English ("the born city of"), so a page that contradicts them says nothing against the claim.
    """
    said = [f"The {short.relation} of {short.bare} is {short.value}."]
    if short.relation in WHAT_IT_IS:
        said += [f"{short.bare} {verb} a {short.value}." for verb in ("is", "was")]
    found = (_sentences(text, pages) for text in said)
    return next((one for one in found if one.state == "supported"), _UNKNOWN)


def _has_other(fact: StatedFact, value: Mention, pages: Sequence[ReadPage]) -> bool:
    """Whether a page gives another date for what a claim dates."""
    return any(
        mention.kind == "date"
        and not same(value, mention)
        and next(stated_by(fact.sense, who, mention, page), None) == at
        for page in pages
        for at, line in enumerate(page.lines[:2])
        for mention in line.reading.mentions
        for who in fact.holder.names
    )


def _whole(text: str, known: Titles) -> Mention:
    """What a text names: the one mention that all of it is, or its words as a name."""
    found = tokens(text)
    words = tuple(token.text for token in found if not token.mark)
    named = mentions(found, titles=known)
    if len(named) == 1 and named[0].kind != "name" and named[0].last - named[0].first + 1 == len(found):
        return named[0]
    if named and named[0].kind == "name" and len(named[0].words) == len(words):
        return named[0]
    return Mention("name", 0, max(len(found) - 1, 0), words)


def _having(value: Mention, text: str, about: Mention, pages: Sequence[ReadPage]) -> Iterator[Support]:
    """The lines that have a value, on pages about what the claim is about, or that name it."""
    words = [token.text for token in tokens(text) if not token.mark]
    for place, page in enumerate(pages):
        topic = any(page.knows(about, m) for m in page.topics)
        for at, line in enumerate(page.lines):
            if line.start < 0 or not (topic or page.names_it(about, line.reading.mentions)):
                continue
            there = [token.text for token in line.reading.tokens if not token.mark]
            stands = any(there[k : k + len(words)] == words for k in range(len(there) - len(words) + 1))
            if stands or any(same(value, m) for m in line.reading.mentions if value.kind == m.kind != "name"):
                yield place, at
