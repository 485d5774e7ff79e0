"""The outline of a report: from the user's headings, from a model's lines, or from what a search found.

Pure and deterministic. What strangers wrote (titles) and what a model wrote is bounded and put on one line.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.checks.page import page
from agent.checks.relevance import content_words
from agent.checks.words import ARTICLES
from agent.evidence import Passage
from agent.outbound.completions import without_reasoning
from agent.report.report import Outline, PlannedSection
from agent.sanitize.text import shortened, shown_line

MOST_SECTIONS: Final = 12
MOST_HEADING_CHARS: Final = 120
MOST_QUESTION_CHARS: Final = 300
BETWEEN: Final = " › "
"""Between the headings of a passage's title; `agent.sources.corpus.split` writes it."""
_QUESTION: Final = re.compile(r"(?i)(?:who|what|which|when|where|why|how|is|are|was|were|does|do|did|can)\b.+\?$")
_ASKS: Final = re.compile(r"(?i)(?:who|what|which|when|where|why|how)\b")
_OPENING: Final = re.compile(
    r"(?i)^(?:(?:please\s+)?(?:write|give|make)\s+(?:me\s+)?an?\s+(?:report|overview)\s+(?:on|of|about)|tell me about|"
    r"what (?:is|are|was|were|happened (?:in|during|to|on))|who (?:is|was)|how (?:does|do|did))\s+(?:the\s+|an?\s+)?"
)
_FILE: Final = re.compile(r"[./]|^file-[0-9a-f]{24}$")
"""In an id: the path of a file, or the id of one that was uploaded."""
_LINE: Final = re.compile(
    r"^\W*(?:sections?\b\W*)?(?:\d{1,2}\W+)?(?P<heading>[^|\n]+?)\s*\|\s*(?P<question>[^|\n]+?)\W*$",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(r"^\W*title\W+(?P<title>.+?)[\s*_]*$", re.IGNORECASE)
_HALF_WEIGHT: Final = 10
"""Places of a list of hits: the tenth counts half of the first."""
_LEAST: Final = 0.2
"""Of the best document's weight, what a document must have to be in the report."""
_LEAST_SCORE: Final = 0.5
"""Of the best hit's score, what a hit must have, where its source gives scores."""
_LEAD_SENTENCES: Final = 3
_SEVERAL: Final = 2
_OFTEN: Final = 3
_SHORT_NAME: Final = 2
_DAYS: Final = content_words("monday tuesday wednesday thursday friday saturday sunday")
_INTRODUCTION: Final = 2
"""Passages of a document that tell what it is about."""


@dataclass(frozen=True)
class Topic:
    """A section before it has a question, with the passages that it was made from, best first."""

    heading: str
    document: str
    passages: tuple[Passage, ...]
    weight: float
    named: bool = False
    """Whether the heading is a name that the passages have, and no title."""


def outline_of(
    question: str, found: Sequence[Passage], *, headings: Sequence[str] = (), most: int
) -> tuple[Outline, tuple[tuple[Passage, ...], ...]]:
    """The outline, and for each section the passages that it was made from.

    Args:
        question: the user's.
        found: what a search for it found, best first.
        headings: the user's own sections; without any, they are made from `found`.
        most: sections.
    """
    if headings:
        own = tuple(PlannedSection(heading=one_line(h, MOST_HEADING_CHARS), question=question_of(h, about=question))
            for h in headings[:MOST_SECTIONS])  # fmt: skip
        return Outline(title=title_of(question), sections=own, by="user"), ((),) * len(own)
    topics = topics_of(question, found, most=most)
    if not topics:
        alone = PlannedSection(heading=title_of(question), question=one_line(question, MOST_QUESTION_CHARS))
        return Outline(title=title_of(question), sections=(alone,), by="sources"), ((),)
    several = len({topic.document for topic in topics}) > 1
    sections = tuple(_planned(topic, several=several) for topic in topics)
    return Outline(title=title_of(question), sections=sections, by="sources"), tuple(t.passages for t in topics)


def read_outline(text: str, question: str, *, most: int) -> Outline | None:
    """What a model wrote, `HEADING | QUESTION` on each line; None where that is no outline."""
    sections: dict[str, PlannedSection] = {}
    title = title_of(question)
    for line in without_reasoning(text).splitlines()[:200]:
        if found := _LINE.match(line):
            heading, query = one_line(found["heading"].strip("*_# "), MOST_HEADING_CHARS), found["question"].strip()
            query = one_line(query if query.endswith("?") else f"{query}?", MOST_QUESTION_CHARS)
            if heading and content_words(query):
                sections.setdefault(heading.casefold(), PlannedSection(heading=heading, question=query))
        elif named := _TITLE.match(line):
            title = one_line(named["title"], MOST_HEADING_CHARS)
    kept = tuple(sections.values())[:most]
    return Outline(title=title, sections=kept, by="model") if kept else None


def topics_of(question: str, found: Sequence[Passage], *, most: int) -> list[Topic]:
    """What was found, as at most so many topics: documents (those of one title are one), or parts of them.

    A document is divided at its headings, or, where it has none, by the names that only some of its passages have.
    """
    wanted = content_words(question)
    best = found[0].score if found else 0.0
    relevant = [p for p in found if p.score >= _LEAST_SCORE * best or not p.score]
    weights = {id(p): _weight(rank, p, wanted) for rank, p in enumerate(relevant, start=1)}
    by_document: dict[str, list[Passage]] = {}
    for passage in relevant:
        by_document.setdefault(_document_title(passage).casefold(), []).append(passage)
    by_document = _about(by_document, wanted) or by_document
    documents = sorted((_topic("", passages, weights) for passages in by_document.values()), key=lambda t: -t.weight)
    documents = [topic for topic in documents[:most] if topic.weight >= _LEAST * documents[0].weight]
    parts = [_parts(topic, weights, wanted, most=most) for topic in documents]
    shares = [1] * len(documents)
    while sum(shares) < most and (open_ := [at for at, of in enumerate(parts) if len(of) > shares[at]]):
        shares[max(open_, key=lambda at: (documents[at].weight / shares[at], -at))] += 1
    topics = [
        topic
        for document, of, share in zip(documents, parts, shares, strict=True)
        for topic in (_heaviest(of, share) if share > 1 else [_whole(document, weights)])
    ]
    return sorted(topics, key=lambda topic: content_words(topic.heading) != wanted)  # what answers it at once is first


def _about(by_document: Mapping[str, list[Passage]], wanted: frozenset[str]) -> dict[str, list[Passage]]:
    """The documents whose passages have more than half of the question's words, or whose title has one.

    Years count for nothing: too much happens in one.
    """
    words = {word for word in wanted if not word.isdigit()}
    kept: dict[str, list[Passage]] = {}
    for document, passages in by_document.items():
        there = words & {word for passage in passages for word in content_words(f"{passage.title} {passage.text}")}
        if 2 * len(there) > len(words) or words & content_words(document):
            kept[document] = passages
    return kept


def document_of(passage: Passage) -> str:
    """What is the same for all passages of one document: its address, its file, or else its source and title."""
    file = passage.id.rsplit("#", 1)[0]
    return passage.url or (file if _FILE.search(file) else f"{passage.source}\n{_document_title(passage)}")


def title_of(question: str) -> str:
    """The question as a title."""
    text = one_line(question, MOST_HEADING_CHARS)
    return text[:1].upper() + text[1:]


def question_of(heading: str, *, about: str) -> str:
    """What a search for a section asks.

    Args:
        heading: of the section; one that is a question asks itself, where it has a word of what the report is about.
        about: what the report or its document is about.
    """
    heading = one_line(heading, MOST_QUESTION_CHARS)
    if _QUESTION.match(heading) and content_words(heading) & content_words(about):
        return heading
    subject = one_line(_OPENING.sub("", about).rstrip("?.! ") or about, MOST_QUESTION_CHARS)
    inside = "" if content_words(subject) <= content_words(heading) else f" in {subject}"
    if _ASKS.match(heading) or _QUESTION.match(heading):
        return one_line(f"{heading.rstrip('?.! ')}{inside}?", MOST_QUESTION_CHARS)
    return one_line(f"What is {heading.rstrip('?.! ')}{inside}?", MOST_QUESTION_CHARS)


def one_line(text: str, most: int) -> str:
    """Text of a stranger or a model on one line, cut."""
    return shortened(shown_line(text), most)


def _planned(topic: Topic, *, several: bool) -> PlannedSection:
    """A topic as a section; where there are several documents, its heading says which one it is in."""
    heading, document = topic.heading.replace("`", ""), topic.document.replace("`", "")
    query = heading if _QUESTION.match(heading) else question_of(heading, about=document)
    query = f"What about {heading} in {document}?" if topic.named else query
    inside = several and heading != document and not heading.endswith("?")
    shown = f"{document}{BETWEEN}{heading}" if inside else heading
    return PlannedSection(heading=one_line(shown, MOST_HEADING_CHARS), question=one_line(query, MOST_QUESTION_CHARS))


def _weight(rank: int, passage: Passage, wanted: frozenset[str]) -> float:
    """A hit's place counts, and how much of the question is in its title."""
    in_title = len(wanted & content_words(passage.title)) / max(1, len(wanted))
    return (1 + in_title) / (1 + (rank - 1) / _HALF_WEIGHT)


def _topic(heading: str, passages: Iterable[Passage], weights: Mapping[int, float]) -> Topic:
    kept = tuple(passages)
    document = _document_title(kept[0])
    return Topic(heading or document, document, kept, sum(weights[id(p)] for p in kept))


def _whole(topic: Topic, weights: Mapping[int, float]) -> Topic:
    """A document in one section; of a list of questions, the best of them alone."""
    best = topic.passages[0].title
    heading = best.rsplit(BETWEEN, 1)[-1]
    if heading.endswith("?"):
        return _topic(heading, [passage for passage in topic.passages if passage.title == best], weights)
    return topic


def _heaviest(parts: Sequence[Topic], most: int) -> list[Topic]:
    """The parts that weigh most, in the order of the document."""
    kept = sorted(parts, key=lambda part: -part.weight)[:most]
    return sorted(kept, key=lambda part: min(map(place_of, part.passages)))


def _parts(topic: Topic, weights: Mapping[int, float], wanted: frozenset[str], *, most: int) -> list[Topic]:
    groups: dict[str, list[Passage]] = {}
    for passage in topic.passages:
        groups.setdefault(passage.title, []).append(passage)
    if len(groups) > 1:
        parts = [_topic(title.rsplit(BETWEEN, 1)[-1], passages, weights) for title, passages in groups.items()]
        return [replace(part, weight=topic.weight) if part.heading == part.document else part for part in parts]
    return _by_name(topic, weights, wanted, most=most)


def _by_name(topic: Topic, weights: Mapping[int, float], wanted: frozenset[str], *, most: int) -> list[Topic]:
    """An introduction, and a part for each of the names that most passages speak of, but not all."""
    ordered = sorted(topic.passages, key=place_of)
    introduction, rest = ordered[:_INTRODUCTION], ordered[_INTRODUCTION:]
    known = wanted | content_words(topic.document)
    sure = {name for passage in topic.passages for name in _names(passage, known)}
    names = {id(passage): _names(passage, known, sure) for passage in rest}
    chosen: list[str] = []
    left = list(rest)
    while left and len(chosen) < most - 1:
        gain = Counter[str]()
        for passage in left:
            gain.update({name: min(times, _OFTEN) for name, times in names[id(passage)].items()})
        spread = {name: sum(name in of for of in names.values()) for name in gain}
        usual = {name: gain[name] for name in gain if _SEVERAL <= spread[name] <= max(_SEVERAL, len(rest) // 2)}
        if not usual:
            break
        chosen.append(max(usual, key=lambda name: (usual[name], -len(name), name)))
        said = content_words(chosen[-1])
        for of in names.values():
            for name in [name for name in of if name != chosen[-1] and content_words(name) & said]:
                del of[name]
        left = [passage for passage in left if chosen[-1] not in names[id(passage)]]
    groups: dict[str, list[Passage]] = {}
    for passage in rest:
        of = names[id(passage)]
        if any(of[name] for name in chosen):
            groups.setdefault(max(chosen, key=lambda name: of[name]), []).append(passage)
    named = [replace(_topic(name, passages, weights), named=True) for name, passages in groups.items()]
    first = _topic("", introduction, weights)
    return [replace(first, weight=topic.weight), *named] if named else []


def _names(passage: Passage, known: frozenset[str], sure: Collection[str] = ()) -> Counter[str]:
    """The names in a passage's text that say something new, those of its first sentences twice.

    A capital that begins a sentence makes a name only where it is one elsewhere: among `sure`.
    """
    found: Counter[str] = Counter()
    for place, line in enumerate(page(passage.title, passage.text).lines):
        for mention in line.reading.mentions:
            if mention.kind != "name" or line.start < 0:
                continue
            tokens = line.reading.tokens[mention.first : mention.last + 1]
            begins = tokens[min(len(tokens) - 1, tokens[0].text in ARTICLES)].start
            name = passage.text[begins : tokens[-1].end]
            if mention.weak and name not in sure:
                continue
            short = content_words(name)
            if (
                short - _DAYS
                and not short & known
                and len(name) > _SHORT_NAME
                and not any(token.mark for token in tokens)
            ):
                found[name] += 2 if place < _LEAD_SENTENCES else 1
    return found


def place_of(passage: Passage) -> tuple[str, int]:
    """Where a passage stands among those of its document."""
    name, _, number = passage.id.rpartition("#")
    return (name, int(number)) if re.fullmatch(r"[0-9]{1,9}", number) else (passage.id, 0)


def _document_title(passage: Passage) -> str:
    return passage.title.split(BETWEEN, 1)[0].strip() or passage.id
