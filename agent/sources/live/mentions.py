"""Which words of a question may name an entity, for a look-up by name that takes no whole question. Pure."""

import re
from typing import Final

from agent.sources.kg.words import meanings, stem

MAX_MENTIONS: Final = 3
"""Each is one request."""

_ITEM: Final = re.compile(r"(?<!\w)Q[1-9]\d*(?!\w)")
_QUOTED: Final = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']{2,}?)\'(?!\w)')
_CAPITAL: Final = r"(?=[^\W_])(?![a-zß-öø-ÿ])[\w.’'&-]+"
_JOIN: Final = r"(?:\s+(?:of|the|and|de|du|des|la|le|von|van|der|den|da|di|del|y|e|in|on|at|for|to|a|an|&))"
_SPAN: Final = re.compile(rf"(?<![\w’']){_CAPITAL}(?:(?::|{_JOIN}{{0,2}})\s+{_CAPITAL})*")
_STARTS: Final = frozenset(
    "who whom whose what when where which why how is are was were do does did in on at of by for from to with the a an "
    "name list find give show tell and or if can could has have had".split()
)
_ARTICLES: Final = frozenset({"the", "a", "an"})
_RELATION_END: Final = re.compile(
    r"\b(?:of|by|in|for|with|from|to|about|did|does|do|is|was|were|are|has|have)\s+(?:the\s+|an?\s+)?"
)
_APART: Final = re.compile(r"\s+(?:and|in|on|at|for|from|to)\s+(?:the\s+|an?\s+)?")
_POSSESSIVE: Final = re.compile(r"(?<=\w)[’']s?(?=\s)")
_VERB_END: Final = re.compile(
    r"\s+(?:born|die|died|buried|live|lived|work|worked|located|situated|founded|published|released|written|directed|"
    r"married|star|starred|play|played|made|set|from|in|on|at|to|by)\b.*$"
)


def item_ids(text: str) -> list[str]:
    """Wikidata's own ids in a text."""
    return list(dict.fromkeys(_ITEM.findall(text)))


def mentions(text: str) -> list[str]:
    """At most three names, the likeliest first.

    What is quoted; else spans of capitalised words; else (all in lower case) what stands before a possessive or after
    the last small word that joins a relation to its entity ("place of birth of …"), and the whole text; where nothing
    is joined, also the text without the words that ask for a relation ("aurora falls director").
    """
    text = " ".join(text.split()).rstrip(" ?!.")
    quoted = [name.strip() for match in _QUOTED.findall(text) if (name := "".join(match)).strip()]
    return list(dict.fromkeys(quoted or _capitalised(text) or _lower(text)))[:MAX_MENTIONS]


def _capitalised(text: str) -> list[str]:
    """Longer spans first; a word that only begins the sentence comes last, or not at all."""
    spans: list[str] = []
    openers: list[str] = []
    for match in _SPAN.finditer(text):
        opens = match.start() == 0
        span = _POSSESSIVE.sub("", f"{_without_start(match[0]) if opens else match[0]} ").strip(" .,:'’-")
        if not span:
            continue
        alone = opens and " " not in span and len(text) > len(match[0])
        (openers if alone else spans).append(span)
        if opens and " of " in span:  # "Capital of France", beside "Lord of the Rings"
            spans.append(span.rpartition(" of ")[2])
        parts = _APART.split(span)
        spans += parts if len(parts) > 1 else []
    spans.sort(key=lambda span: -len(span.split()))
    return spans + openers


def _without_start(span: str) -> str:
    """A span at the beginning of a sentence without its question word; "The Who" keeps its article."""
    words = span.split()
    while words and words[0].casefold() in _STARTS - _ARTICLES:
        words = words[1:]
        while words and words[0][0].islower():  # "In which Paris"
            words = words[1:]
    return "" if len(words) == 1 and words[0].casefold() in _ARTICLES else " ".join(words)


def _lower(text: str) -> list[str]:
    found: list[str] = []
    if owner := _POSSESSIVE.search(text):
        before = text[: owner.start()]
        found.append(_RELATION_END.split(before)[-1])
    *_, last = _RELATION_END.split(text)
    found.append(_VERB_END.sub("", last))
    words = text.split()
    while words and words[0].casefold() in _STARTS:
        words = words[1:]
    whole = " ".join(words)
    names = [name for name in (name.strip() for name in [*found, whole]) if name]
    if set(names) == {whole}:  # "aurora falls director": nothing joins the name to the rest
        bare = _without_relation(words)
        names += [" ".join(bare), " ".join(bare[:-1] if len(bare) > 2 else ())]
    return [name for name in names if name]


def _without_relation(words: list[str]) -> list[str]:
    """Words without those at both ends that ask for a relation."""
    while words and meanings([stem(words[-1].casefold())]):
        words = words[:-1]
    while words and meanings([stem(words[0].casefold())]):
        words = words[1:]
    return words
