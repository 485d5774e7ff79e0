"""A passage that was read: its sentences with their facts, and whom a sentence without a name speaks of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.checks.facts import End, SentenceReading, StatedFact, read
from agent.checks.mentions import Mention, Titles, mentions, same, same_name
from agent.checks.tokens import Token, sentences, tokens, words_of
from agent.checks.wordings import known_stems, verbs
from agent.checks.words import ARTICLES, AUXILIARY, BE, FUNCTION
from agent.evidence import BETWEEN_TITLES

_KEPT: Final = 512
"""Passages that are kept as read: each rollout checks its own again and again."""
_BRACKETS: Final = re.compile(r"\s*\([^()]*\)")
_TRIPLE: Final = re.compile(r"^[^|\n]+\|[^|\n]+\|[^|\n]+$", re.MULTILINE)
_TO_MEMBERS: Final = frozenset(("of", "in", "by", "at", "for", "from"))


@dataclass(frozen=True, slots=True)
class PageLine:
    """One sentence of a page. `start` is -1 where it is the title, which is no part of the text."""

    start: int
    end: int
    reading: SentenceReading
    context: tuple[Mention, ...]
    """Whom a pronoun or an unnamed subject may mean."""
    stems: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadPage:
    title: str
    text: str
    lines: tuple[PageLine, ...]
    """The sentences in order; the title comes last."""
    names: tuple[Mention, ...]
    """Every name of text and title."""
    stems: frozenset[str]
    words: tuple[Token, ...]
    topics: tuple[Mention, ...] = ()
    """What the title names."""
    alias: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The title, and what the first sentence calls it: "Tove Lo", "Ebba Tove Elsa Nilsson"."""

    def knows(self, claimed: Mention, stated: Mention) -> bool:
        """Whether `stated`, on this page, is what the claim names: a short name needs the whole one somewhere."""
        names = claimed.kind == stated.kind == "name"
        if names and self.alias and stated.words == self.alias[1] and same_name(claimed.words, self.alias[0]):
            return True
        if not same(claimed, stated):
            return False
        if claimed.kind != "name" or len(stated.words) >= len(claimed.words):
            return True
        return any(len(m.words) >= len(claimed.words) and same_name(claimed.words, m.words) for m in self.names)

    def names_it(self, claimed: Mention, among: Sequence[Mention]) -> bool:
        return any(self.knows(claimed, stated) for stated in among)


@lru_cache(maxsize=_KEPT)
def page(title: str, text: str) -> ReadPage:
    """Read a passage. The title is context: a page about X may call it "she" or "the film"."""
    topics = _topics(title, text)
    heading = tuple(Mention("name", 0, 0, words=words) for words in topics)
    lines: list[PageLine] = []
    before: tuple[Mention, ...] = ()
    for start, end, found in _sentences(text):
        reading = with_facts_in_passing(read(found, titles=topics))
        lines.append(PageLine(start, end, reading, (*heading, *before), _stems(found)))
        before = (reading.subject,) if reading.subject else before
    if title.strip():
        found = tokens(title)
        lines.append(PageLine(-1, -1, read(found, titles=topics), heading, _stems(found)))
    names = (*heading, *(m for line in lines for m in line.reading.mentions if m.kind == "name"))
    stems = frozenset(stem for line in lines for stem in line.stems)
    return ReadPage(
        title, text, tuple(lines), names, stems, tuple(words_of(tokens(text))), heading, _alias(topics, lines)
    )


def _alias(topics: Titles, lines: Sequence[PageLine]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What the first sentence, "N. N. (…), known as TITLE, is a …", calls the subject of the page."""
    if not topics or not lines or (subject := lines[0].reading.subject) is None:
        return None
    reading = lines[0].reading
    if not any(token.text in BE for token in reading.tokens) or same_name(topics[0], subject.words):
        return None
    for mention in reading.mentions:
        if mention.kind == "name" and same_name(topics[0], mention.words):
            near = [token.text for token in reading.tokens[max(mention.first - 3, 0) : mention.first]]
            if not {"as", "called", "name", "known", "or"} & set(near):
                return None
    return topics[0], subject.words


def _stems(found: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.stem for token in found if not token.mark)


def _topics(title: str, text: str) -> Titles:
    """What a title names; of a section, what each part of the path to it names: the page comes first."""
    return tuple(dict.fromkeys(words for part in title.split(BETWEEN_TITLES) for words in _names_of(part, text)))


def _names_of(title: str, text: str) -> Titles:
    """Itself without brackets, or the names of a headline."""
    bare = _BRACKETS.sub("", title).strip()
    found = words_of(tokens(bare))
    words = tuple(token.text for token in found)
    named = [m.words for m in mentions(found, openers=known_stems()) if m.kind == "name" and not m.weak]
    plain = not any(token.stem in verbs() or token.text in AUXILIARY for token in found)
    whole = bare in text or plain or all(token.capital or token.number or token.text in FUNCTION for token in found)
    return tuple(dict.fromkeys((*([words] if words and whole else []), *named)))


def _sentences(text: str) -> list[tuple[int, int, tuple[Token, ...]]]:
    """The sentences with their places; a triple is read as the sentence that it stands for."""
    found: list[tuple[int, int, tuple[Token, ...]]] = []
    at = 0
    for match in _TRIPLE.finditer(text):
        found += [(s.start + at, s.end + at, _moved(s.tokens, at)) for s in sentences(text[at : match.start()])]
        found.append((match.start(), match.end(), _said(tokens(match[0], offset=match.start()))))
        at = match.end()
    found += [(s.start + at, s.end + at, _moved(s.tokens, at)) for s in sentences(text[at:])]
    return found


def _moved(found: Sequence[Token], by: int) -> tuple[Token, ...]:
    if not by:
        return tuple(found)
    return tuple(Token(t.text, t.stem, t.start + by, t.end + by, t.capital, t.caps, t.mark) for t in found)


def _said(triple: Sequence[Token]) -> tuple[Token, ...]:
    """A triple as the sentence that it stands for: the same tokens in another order.

    "X | mentor | Y" is "the mentor of X is Y", "X | educated at | Y" is "X is educated at Y", "X | members of | Y; Z"
    is "Y, Z is members of X". Brackets behind a name go to the end.
    """
    bars = [place for place, token in enumerate(triple) if token.text == "|"]
    head, relation, tail = (list(triple[a + 1 : b]) for a, b in pairwise((-1, *bars, len(triple))))
    tail = [_word(",", token) if token.text == ";" else token for token in tail]
    head, bracket = _without_brackets(head)
    if not relation or not tail:
        return tuple(triple)
    here = relation[0]
    if relation[-1].text in _TO_MEMBERS:
        many = relation[0].text.endswith("s") or relation[0].text in ("people", "children", "alumni")
        one, other = (tail, head) if many and len(relation) > 1 else (head, tail)
        return (*one, _word("is", here), *relation, *other, *bracket)
    return (_word("the", here), *relation, _word("of", here), *head, _word("is", here), *tail, *bracket)


def _without_brackets(found: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    opening = next((place for place, token in enumerate(found) if token.text == "("), len(found))
    return list(found[:opening]), list(found[opening:])


def _word(text: str, at: Token) -> Token:
    return Token(text, text, at.start, at.start, mark=text == ",")


def with_facts_in_passing(reading: SentenceReading) -> SentenceReading:
    """The reading with the facts that are said in passing."""
    groups = [*_life(reading), *_year_of_work(reading)]
    return replace(reading, groups=(*reading.groups, *groups)) if groups else reading


_DASHES: Final = frozenset(("–", "—", "-"))


def _closing(found: Sequence[Token], opening: int) -> int:
    return next((k for k in range(opening, len(found)) if found[k].text == ")"), len(found))


def _life(reading: SentenceReading) -> list[tuple[StatedFact, ...]]:
    """Read "Lina Orr (12 May 1944 – 3 June 2001)" or "(1944, Trieste – 2001, Rome)"."""
    found = reading.tokens
    dates = [m for m in reading.mentions if m.kind == "date"]
    openings = [k for k, token in enumerate(found) if token.text == "("]
    opening = next((k for k in openings if sum(k < m.first < _closing(found, k) for m in dates) == 2), None)
    if opening is None:
        return []
    closing = _closing(found, opening)
    who = [m for m in reading.mentions if m.kind == "name" and m.last < opening][-1:]
    dates = [m for m in dates if opening < m.first < closing]
    if not who:
        return []
    between = [token.text for token in found[dates[0].last + 1 : dates[1].first]]
    if {"from", "since", "and", "to"} & {token.text for token in found[opening:closing]} or (
        between and not _DASHES & set(between)
    ):
        return []
    holder = End((*who, *(m for m in reading.mentions if m.kind == "name" and m.last < opening)), open=True)
    dash = next((k for k in range(dates[0].last, dates[1].first) if found[k].text in _DASHES), dates[1].first)
    parts = [m for m in reading.mentions if opening < m.first < closing]
    born = tuple(m for m in parts if m.last < dash and (m is dates[0] or m.first > dates[0].last))
    died = tuple(m for m in parts if m.first >= dash)
    return [(_fact("birth", holder, born, opening),), (_fact("death", holder, died, opening),)]


def _year_of_work(reading: SentenceReading) -> list[tuple[StatedFact, ...]]:
    """Read "Aurora Falls is a 2025 film", "her 1965 novel Dune"."""
    found = reading.tokens
    for mention in reading.mentions:
        before = found[mention.first - 1].text if mention.first else ""
        if mention.kind == "date" and not mention.date[1] and (before in ARTICLES or before in ("her", "his", "'s")):
            be = any(found[k].text in BE for k in range(max(mention.first - 3, 0), mention.first))
            near = [m for m in reading.mentions if m.kind == "name" and (m.last < mention.first) is be]
            holder = End(tuple(near[:1]), open=True)
            return [tuple(_fact(sense, holder, (mention,), mention.first) for sense in ("released", "published"))]
    return []


def _fact(sense: str, holder: End, value: tuple[Mention, ...], at: int) -> StatedFact:
    return StatedFact(sense, holder, End(value), negated=False, times=(), first=at, last=at)
