"""Signs that change what is said, though they are no words: C++ is not C#, 10⁶ cells ≥ 5 are not 10⁶ cells ≤ 5."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.checks.tokens import Token, tokens, words_of

_BEHIND: Final = re.compile(r"[+#‰]+(?![^\W_])")
"""Belong to the word before them: "C++", "80+"."""
_ELSEWHERE: Final = "|~^$€£−"
"""Divide a table, say nothing, or are read with their number."""
_BOUNDS: Final = frozenset("+<>≤≥±≈")
"""May be left out of a number."""


@dataclass(frozen=True, slots=True)
class _Signs:
    before: str
    behind: str
    number: bool

    def differ(self, stated: "_Signs", *, first: bool = False) -> bool:
        """Whether a claim's word is another one than the stated word.

        Args:
            stated: those of the same word on a page.
            first: the claim begins with the word, so what stands before it there may be left out.
        """
        return self._other(self.before, stated.before, free=first) or self._other(self.behind, stated.behind)

    def _other(self, said: str, stated: str, *, free: bool = False) -> bool:
        may_miss = free or (self.number and _BOUNDS.issuperset(stated))
        return said != stated and not (may_miss and not said)


def stand_alike(said: str, said_words: Sequence[Token], text: str, words: Sequence[Token], at: int) -> bool:
    """Whether the words of a claim, which stand in a text from the word `at` on, have the same signs there."""
    return not any(
        _signs(said, said_words, k).differ(_signs(text, words, at + k), first=k == 0) for k in range(len(said_words))
    )


def signs_differ(claim: str, shown: Iterable[str]) -> bool:
    """Whether a word of a claim is in what is shown, but everywhere with other signs."""
    texts = [claim, *shown]
    if not any(_is_sign(c) or c in "#‰" for text in texts for c in text if not c.isascii() or c in "+#<>="):
        return False
    words = [words_of(tokens(text)) for text in texts]
    there: dict[str, list[_Signs]] = {}
    for text, found in zip(texts[1:], words[1:], strict=True):
        for at, word in enumerate(found):
            there.setdefault(word.text, []).append(_signs(text, found, at))
    for at, word in enumerate(words[0]):
        own = _signs(claim, words[0], at)
        stated = there.get(word.text, ())
        if stated and all(own.differ(one, first=at == 0) for one in stated):
            return True
    return False


def _signs(text: str, words: Sequence[Token], at: int) -> _Signs:
    start = _behind_end(text, words[at - 1]) if at else 0
    before = "".join(c for c in text[start : words[at].start] if _is_sign(c))
    end = words[at].end
    return _Signs(before, text[end : _behind_end(text, words[at])], words[at].number)


def _behind_end(text: str, word: Token) -> int:
    match = _BEHIND.match(text, word.end)
    return match.end() if match else word.end


def _is_sign(c: str) -> bool:
    return unicodedata.category(c) in ("Sm", "Sc") and c not in _ELSEWHERE
