"""Sentences to quote, names in them, and the words of a question that a search needs."""

import re
from collections.abc import Iterable

from agent.checks.tokens import sentences
from agent.sources.bm25 import stem, words
from train.evaluation.normalisations import squad
from train.evaluation.words import STOP_WORDS

QUOTE_CHARS = 200
"""Of one quote; a longer sentence is cut to the clauses around what counts in it."""
_FEW = 3
_CLAUSE = re.compile(r"[,;:]\s|\s[–—-]\s")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)\s*$")
_QUESTION_WORDS = STOP_WORDS | set("many much name named called type kind first last both same".split())


def plain_title(title: str) -> str:
    """A title without what distinguishes it from others of the same name: "Steel (1979 film)" is "Steel"."""
    return _PARENTHESIS.sub("", title) or title


def names_in(text: str) -> str:
    """A text as names are compared: without case, accents and marks."""
    return " ".join(words(text))


def mentions(text: str, name: str) -> bool:
    """Whether a text has a name in it, as whole words."""
    return bool(name) and f" {names_in(name)} " in f" {names_in(text)} "


def holds(text: str, answer: str) -> bool:
    """Whether an answer is in a text, by the rules that answers are compared with."""
    wanted = squad(answer)
    return bool(wanted) and f" {wanted} " in f" {squad(text)} "


def as_written(text: str, value: str) -> str:
    """A value as a text spells it, where it has it but for case; otherwise as it is."""
    found = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) if value else None
    return found[0] if found else value


def quote(text: str, value: str, question: str) -> str:
    """The sentence of a passage that says a value, exactly as written; of several, the one most like the question.

    Args:
        text: of the passage.
        value: that must be in it; empty: any sentence.
        question: or whatever else it is about.
    """
    wanted = {stem(word) for word in words(question) if word not in STOP_WORDS}
    found = [text[s.start : s.end] for s in sentences(text) if not value or holds(text[s.start : s.end], value)]
    if not found:
        return ""
    best = max(found, key=lambda sentence: len(wanted & {stem(word) for word in words(sentence)}))
    return _cut(best, value, wanted)


def _cut(sentence: str, value: str, wanted: set[str]) -> str:
    """The sentence, or the run of its clauses that holds the value and most of what is wanted and is short enough."""
    if len(sentence) <= QUOTE_CHARS:
        return sentence
    ends = [0, *(match.end() for match in _CLAUSE.finditer(sentence)), len(sentence)]
    runs = [
        sentence[start:end].strip(" ,;:–—-")
        for at, start in enumerate(ends[:-1])
        for end in ends[at + 1 :]
        if end - start <= QUOTE_CHARS and (not value or holds(sentence[start:end], value))
    ]
    if not runs:
        return ""
    return max(runs, key=lambda run: (len(wanted & {stem(word) for word in words(run)}), -len(run)))


def shared_words(question: str, about: str, answering: str, *, most: int = _FEW) -> str:
    """The words of a question that its answer's passage has, but for the name that is searched for."""
    there = {stem(word) for word in words(answering)}
    known = {stem(word) for word in words(about)}
    found = [
        word
        for word in dict.fromkeys(words(question))
        if len(word) > 1 and word not in _QUESTION_WORDS and stem(word) in there and stem(word) not in known
    ]
    return " ".join(found[:most])


def query_of(parts: Iterable[str]) -> str:
    """Parts of a query in a row, without what a plan would read as a source or a filter."""
    return " ".join(" ".join(re.sub(r"[()#\[\]<>\n]", " ", part) for part in parts if part).split())
