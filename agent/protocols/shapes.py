"""The order in which a protocol's blocks may come: a small kind of regular expression over the names of roles.

It is matched by following all its ways at once, so that no pattern and no rollout takes more than their two lengths
multiplied. It is written with names, each followed by a space, and `( | ) ? * + ^ $`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

MAX_CHARS: Final = 2_000
_MAX_DEPTH: Final = 50
_TOKEN: Final = re.compile(r"([a-z_]+) |\((?:\?:)?|[|)?*+]")


@dataclass
class _State:
    """What may come next: a name, or nothing, which leads on without one."""

    name: str = ""
    ways: list[int] = field(default_factory=list[int])


@dataclass(frozen=True)
class CompiledPattern:
    """A pattern that is ready to be matched. Its last state is the end."""

    states: tuple[_State, ...]

    def fits(self, roles: Iterable[str]) -> bool:
        """Whether the whole sequence is one that the pattern describes."""
        here = self._closed({0})
        for role in roles:
            here = self._closed({way for at in here if self.states[at].name == role for way in self.states[at].ways})
            if not here:
                return False
        return len(self.states) - 1 in here

    def _closed(self, at: set[int]) -> set[int]:
        """With every state that is reached without a name."""
        seen, open_ = set(at), list(at)
        while open_:
            state = self.states[open_.pop()]
            if not state.name:
                new = set(state.ways) - seen
                seen |= new
                open_ += new
        return seen


def fits(pattern: str, roles: Iterable[str]) -> bool:
    """Whether the roles come as the pattern says; an empty one takes everything.

    Raises:
        ValueError: the pattern cannot be read.
    """
    return not pattern or shape_of(pattern).fits(roles)


@lru_cache(maxsize=256)
def shape_of(pattern: str) -> CompiledPattern:
    """Read a pattern.

    Raises:
        ValueError: it cannot be read; the sentence says what it may hold.
    """
    if len(pattern) > MAX_CHARS:
        raise ValueError(f"it has more than {MAX_CHARS:,} characters")
    reader = _Reader(list(_tokens(pattern)))
    first, last = reader.alternatives(0)
    if reader.left:
        raise ValueError("a ) closes nothing")
    states = reader.states
    states[last].ways.append(len(states))
    states.append(_State())
    states[0].ways = [first]
    return CompiledPattern(tuple(states))


def _tokens(pattern: str) -> Iterator[str]:
    text = pattern.removeprefix("^").removesuffix("$")
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(
                f"{text[at : at + 20]!r} cannot be read; write names, each followed by a space, and ( | ) ? * +"
            )
        yield found[1] or found[0][0]
        at = found.end()


class _Reader:
    """Makes the states; each part is entered by its first one and left by its last one."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens[::-1]
        self.states = [_State()]

    def alternatives(self, depth: int) -> tuple[int, int]:
        """Parts with | between them."""
        if depth > _MAX_DEPTH:
            raise ValueError(f"its brackets are more than {_MAX_DEPTH} deep")
        first, last = self._new(), self._new()
        while True:
            begins, ends = self._row(depth)
            self.states[first].ways.append(begins)
            self.states[ends].ways.append(last)
            if not (self.left and self.left[-1] == "|"):
                return first, last
            self.left.pop()

    def _row(self, depth: int) -> tuple[int, int]:
        """Parts one behind the other."""
        first = last = self._new()
        while self.left and self.left[-1] not in "|)":
            begins, ends = self._one(depth)
            self.states[last].ways.append(begins)
            last = ends
        return first, last

    def _one(self, depth: int) -> tuple[int, int]:
        """A name; or a group in brackets, and how often it may come."""
        token = self.left.pop()
        if token in ("?", "*", "+"):
            raise ValueError(f"{token} repeats nothing; put it behind a )")
        if token == "(":
            part = self.alternatives(depth + 1)
            if not self.left or self.left.pop() != ")":
                raise ValueError("a ( is never closed")
            return self._repeated(*part)
        first, last = self._new(token), self._new()
        self.states[first].ways.append(last)
        return first, last

    def _repeated(self, first: int, last: int) -> tuple[int, int]:
        if not self.left or self.left[-1] not in "?*+":
            return first, last
        sign = self.left.pop()
        if self.left and self.left[-1] in "?*+":
            raise ValueError(f"{sign}{self.left[-1]} repeats a repetition")
        into, out = self._new(), self._new()
        self.states[into].ways = [first] if sign == "+" else [first, out]
        self.states[last].ways += [out] if sign == "?" else [out, first]
        return into, out

    def _new(self, name: str = "") -> int:
        self.states.append(_State(name))
        return len(self.states) - 1
