"""Text that was written by strangers cannot speak for the policy, the protocol or the chat template.

Only control marks are changed: their brackets become round ones, and invisible characters go. All else stays as it is.
The time that it takes is in proportion to the text, whatever the text is.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from agent.sanitize.marks import find_marks
from agent.sanitize.skeleton import is_hidden, is_suspicious, read_entity, skeleton_of

INDENT: Final = "  "
"""Begins each line of a stranger's text but its first: a line that begins with anything else is the loop's."""
_BLANKS: Final = re.compile(r"\s+")
_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_BRACKETS: Final = frozenset("<>[]|{}◁▷")


@dataclass(frozen=True)
class Sanitized:
    """Text that is safe to show, with the way back to the original."""

    text: str
    starts: tuple[int, ...] | None = None
    """Where each character of `text` is in the original, and the original's length; None if nothing changed."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` is in the original."""
        return (start, end) if self.starts is None else (self.starts[start], self.starts[end])

    def shown(self, start: int, end: int) -> tuple[int, int]:
        """Where the original's `[start:end]` is in `text`."""
        return (start, end) if self.starts is None else (bisect_left(self.starts, start), bisect_left(self.starts, end))

    def behind(self, first: "Sanitized") -> "Sanitized":
        """This text as what became of the original of `first`, whose text it was made of."""
        if self.starts is None or first.starts is None:
            return Sanitized(self.text, self.starts or first.starts)
        return Sanitized(self.text, tuple(first.starts[at] for at in self.starts))


def sanitize(text: str, tags: Collection[str]) -> str:
    """Make the control marks in `text` harmless: `tags`, what chat templates use, and both in disguise.

    Args:
        text: a stranger's.
        tags: names of the protocol's tags, and whole tokens of a tokenizer (see `unusual_tokens`).
    """
    return sanitized(text, tags).text


def sanitized(text: str, tags: Collection[str]) -> Sanitized:
    """The same as `sanitize`, with a map to the original."""
    if not is_suspicious(text):
        return Sanitized(text)
    skeleton = skeleton_of(text)
    marks = {skeleton.places[at]: "(" if left else ")" for at, left in find_marks(skeleton, frozenset(tags))}
    characters: list[str] = []
    starts: list[int] = []
    at = 0
    while at < len(text):
        written = marks.get(at) or ("" if is_hidden(text, at) else text[at])
        if written:
            characters.append(written)
            starts.append(at)
        entity = read_entity(text, at) if at in marks and text[at] == "&" else None
        at = entity[0] if entity else at + 1
    if len(characters) == len(text) and not marks:
        return Sanitized(text)
    return Sanitized("".join(characters), (*starts, len(text)))


def indented(text: str, indent: str = INDENT) -> Sanitized:
    """The text with white space that holds a line break as one line break and `indent`, and none at its ends."""
    return _laid_out(text, "\n" + indent)


def on_one_line(text: str) -> Sanitized:
    """The text with white space that holds a line break as one blank, and none at its ends."""
    return _laid_out(text, " ")


def _laid_out(text: str, instead: str) -> Sanitized:
    runs = [run for run in _BLANKS.finditer(text) if not _BREAKS.isdisjoint(run[0])]
    if not runs:
        return Sanitized(text)
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for run in runs:
        inner = run.start() > 0 and run.end() < len(text)
        parts += [text[at : run.start()], instead if inner else ""]
        starts += [*range(at, run.start()), *([run.start()] * len(instead) if inner else [])]
        at = run.end()
    return Sanitized("".join([*parts, text[at:]]), (*starts, *range(at, len(text) + 1)))


def unusual_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Those of a tokenizer's special tokens that `sanitize` must be given, because their shape alone is harmless."""
    known = (token.strip() for token in dict.fromkeys(tokens))
    return tuple(token for token in known if not _BRACKETS.isdisjoint(token) and sanitize(token, ()) == token)
