"""Cut a stream of sampled text into blocks. It reads what the policy wrote and nothing else."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agent.protocols.base import Mark, Role


@dataclass(frozen=True)
class OpenPiece:
    """Text of a block that is still open."""

    role: Role
    text: str


@dataclass(frozen=True)
class Block:
    """The whole text of a block. `tagged` is false for text that stood outside of all tags."""

    role: Role
    text: str
    tagged: bool = True


class TagReader:
    """Feed it text in pieces of any size; it gives an `OpenPiece` as text comes, and a `Block` when one ends.

    Text outside of tags is thought; white space alone is nothing. Inside a block only its own closing tag counts, so a
    thought may speak of other tags; but a block that yields ends where a search or an answer begins, and its closing
    tag is passed over where it comes late. How the text is cut changes neither the blocks nor their pieces joined
    together.
    """

    def __init__(self, marks: Mapping[Role, Mark], *, opened: Role | None = None, alone: bool = False) -> None:
        """Begin to read.

        Args:
            marks: of the blocks.
            opened: the block that the prompt or the loop opened; reading begins inside of it.
            alone: any other closing tag ends that block, too: it is all that is wanted now.
        """
        self._openings: dict[str, Role] = {mark.open: role for role, mark in marks.items()}
        self._closings: dict[Role, str] = {role: mark.close for role, mark in marks.items()}
        self._late = {mark.close for mark in marks.values() if mark.yields}
        self._interrupting = [mark.open for role, mark in marks.items() if role in ("search", "answer")]
        self._yielding = {role for role, mark in marks.items() if mark.yields}
        self._nesting = {role for role, mark in marks.items() if mark.nests}
        self._depth = 0
        """Braces that were opened inside of the block, and not yet closed."""
        if opened is not None and opened not in self._closings:
            raise ValueError(f"no tag has the role {opened!r}")
        self._role: Role | None = opened
        self._ends = tuple(self._closings.values()) if alone else ()
        self._text = ""
        self._tail = ""
        self._at = 0
        """Where in the tail reading goes on: to cut it at every mark would copy the rest again and again."""

    @property
    def open_role(self) -> Role | None:
        """The role of the tag that is open; None outside of all tags."""
        return self._role

    def feed(self, text: str) -> Iterator[OpenPiece | Block]:
        """Read on. Who stops taking before the end leaves the rest of `text` unread."""
        self._tail, self._at = self._tail[self._at :] + text, 0
        while found := self._next_mark():
            at, mark = found
            yield from self._take(self._tail[self._at : at])
            self._at = at + len(mark)
            block = self._end_block()
            self._role, self._ends = self._openings.get(mark), ()
            if block is not None:
                yield block
        safe = len(self._tail) - self._partial()
        yield from self._take(self._tail[self._at : safe])
        self._at = safe

    def close(self) -> Iterator[OpenPiece | Block]:
        """The stream has ended: give what was held back, then the block that was not closed, if it says anything."""
        rest, self._tail, self._at = self._tail[self._at :], "", 0
        closing = self._closings[self._role] if self._role is not None and len(rest) > 1 else ""
        if not closing.startswith(rest or "-"):  # half a closing mark is not the block's text
            yield from self._take(rest)
        if self._text.strip() and (block := self._end_block()):
            yield block

    def _marks(self) -> tuple[str, ...]:
        if self._role is None:
            return (*self._openings, *self._late)
        closing = self._closings[self._role]
        if self._ends:
            return self._ends
        return (closing, *self._interrupting) if self._role in self._yielding else (closing,)

    def _next_mark(self) -> tuple[int, str] | None:
        if self._role in self._nesting:
            return self._next_brace()
        hit = _any_of(self._marks()).search(self._tail, self._at)
        return (hit.start(), hit[0]) if hit else None

    def _next_brace(self) -> tuple[int, str] | None:
        """The brace that closes the block; what is read without finding it is never looked at again."""
        for at in range(self._at, len(self._tail)):
            character = self._tail[at]
            if character == "}" and not self._depth:
                return at, character
            self._depth += {"{": 1, "}": -1}.get(character, 0)
        return None

    def _partial(self) -> int:
        """Length of the longest end of the tail that may be the start of a mark."""
        if self._role in self._nesting:
            return 0
        starts = {self._tail.rfind(mark[0], self._at) for mark in self._marks()}
        ends = (self._tail[at:] for at in sorted(starts) if at >= 0)
        return next((len(end) for end in ends if any(mark.startswith(end) for mark in self._marks())), 0)

    def _take(self, text: str) -> Iterator[OpenPiece]:
        if self._role is None and not self._text:
            text = text.lstrip()  # white space between blocks belongs to no block
        if text:
            self._text += text
            yield OpenPiece(self._role or "thought", text)

    def _end_block(self) -> Block | None:
        """What was read since the last mark; a tagged block may be empty, text outside of tags may not."""
        text, self._text = self._text, ""
        if self._role is None and not text:
            return None
        return Block(self._role or "thought", text, tagged=self._role is not None)


@lru_cache(maxsize=256)
def _any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the first of the marks in one pass, also where most of them do not occur."""
    return re.compile("|".join(map(re.escape, sorted(marks))) or "(?!)")
