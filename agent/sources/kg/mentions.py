"""Which entities a question names: the longest names in it, exactly; nearly so where none is exact.

No model: a name is a run of the question's words that some entity is called. Names in [brackets] are taken at their
word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent.sources.kg.store import Graph, GraphEntity
from agent.sources.kg.words import STOP_WORDS, fold, is_relation_word, split, stem

WINDOW: Final = 16
"""The longest name, in words."""
QUERY_WORDS: Final = 64
"""Of a longer question the first ones are looked at: it is a text, not a question."""
MENTIONS: Final = 6
NAMESAKES: Final = 6
"""Entities of one name that are looked at."""
_NEARLY: Final = 6
"""Runs of words that are tried with typos."""
_WEAK: Final = 0.3
"""What a name counts that could as well be a word of the question."""
_BRACKETS: Final = re.compile(r"\[([^\[\]]+)\]")
_TOKEN: Final = re.compile(r"[^\s\[\]]+")
_EDGE: Final = re.compile(r"^[^\w]+|[^\w]+$")
_EVERYDAY: Final = frozenset(
    stem(word)
    for word in "film films movie movies book books song songs album game person people man woman thing things year "
    "years day city country place name names number kind type main same different first last many team company "
    "based primary listed share together also".split()
)


@dataclass(frozen=True)
class EntityMention:
    """Some of the question's words, and an entity that is called so."""

    text: str
    entity: GraphEntity
    weight: float
    """How sure it is, from 0 to 1."""


@dataclass(frozen=True)
class _Span:
    first: int
    last: int
    text: str
    found: tuple[EntityMention, ...]
    weak: bool

    def overlaps(self, other: "_Span") -> bool:
        return self.first <= other.last and other.first <= self.last


def find_mentions(query: str, graph: Graph) -> list[EntityMention]:
    """Find the entities that a question names, the surest first."""
    bracketed = [mention for text in _BRACKETS.findall(query) for mention in _bracketed(text, graph)]
    if bracketed:
        return bracketed[: MENTIONS * NAMESAKES]
    tokens = _TOKEN.findall(query)[:QUERY_WORDS]
    spans = _choose(_exact_spans(tokens, graph))
    strong = [span for span in spans if not span.weak]
    if strong:
        return [mention for span in strong[:MENTIONS] for mention in span.found]
    # A name of common words only, as of the film "It", counts where the question holds no other.
    return _near_mentions(tokens, graph) + [mention for span in spans[:MENTIONS] for mention in span.found]


def _bracketed(text: str, graph: Graph) -> list[EntityMention]:
    matches = graph.exact(text, limit=NAMESAKES) or graph.typo(text, limit=2) or graph.words(text, limit=2)
    return [EntityMention(text, match.entity, match.score) for match in matches]


def _exact_spans(tokens: Sequence[str], graph: Graph) -> Iterator[_Span]:
    """Every run of words that is a name."""
    for first in range(len(tokens)):
        for last in range(first, min(first + WINDOW, len(tokens))):
            raw = " ".join(tokens[first : last + 1])
            for form in _forms(raw):
                matches = graph.exact(form, limit=NAMESAKES)
                if matches:
                    weak = _is_all_common(form)
                    weight = _WEAK if weak else 1.0
                    # Of namesakes the one that is written just so comes first: Taxi the film, taxi the keyword.
                    found = [
                        EntityMention(form, match.entity, weight * (1.0 if match.entity.label in (form, raw) else 0.95))
                        for match in matches
                    ]
                    found.sort(key=lambda mention: -mention.weight)
                    yield _Span(first, last, form, tuple(found), weak)
                    break


def _forms(raw: str) -> Iterator[str]:
    """How a run of words may be written as a name: as it stands, without what ends a sentence, without its marks."""
    seen: set[str] = set()
    trimmed = raw.rstrip("?,;:")
    forms = (raw, trimmed, trimmed.rstrip(".!"), raw.strip("\"'“”‘’«»()?!.,;:"), _EDGE.sub("", raw), _owner(trimmed))
    for form in (*forms, " ".join(split(raw))):
        if form and (folded := fold(form)) not in seen:
            seen.add(folded)
            yield form


def _owner(text: str) -> str:
    """`Ponyo's` is about Ponyo."""
    return re.sub(r"['’]s?$", "", text)


def _is_common(word: str) -> bool:
    return word in STOP_WORDS or word.isdigit() or stem(word) in _EVERYDAY or is_relation_word(stem(word))


def _choose(spans: Iterator[_Span]) -> list[_Span]:
    """The longest names first, and none that shares a word with one that was taken."""
    taken: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.weak, span.first - span.last, -len(span.text), span.first)):
        if not any(span.overlaps(other) for other in taken):
            taken.append(span)
    return taken


def _near_mentions(tokens: Sequence[str], graph: Graph) -> list[EntityMention]:
    """Names that are nearly in the question: with typos, and else by their words."""
    runs = sorted(set(_runs(tokens)), key=lambda run: -len(run))[:_NEARLY]
    for way, weight in ((graph.typo, 0.9), (graph.words, 0.5)):
        found = [EntityMention(run, match.entity, weight * match.score) for run in runs for match in way(run, limit=3)]
        if found:
            return sorted(found, key=lambda mention: -mention.weight)[:MENTIONS]
    return []


def _runs(tokens: Sequence[str]) -> Iterator[str]:
    """Runs of words that could be a name: what stands between common words, and between words in small letters."""
    for between in (_is_all_common, str.islower):
        run: list[str] = []
        for token in (*tokens, ""):
            word = _EDGE.sub("", token)
            if word and not between(token):
                run.append(word)
                continue
            name = " ".join(run)
            if len(name) > 3 and not _is_all_common(name):
                yield name
            run = []


def _is_all_common(text: str) -> bool:
    return all(_is_common(word) for word in split(text))
