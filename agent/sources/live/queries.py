"""What a question leaves for a search engine that wants every word to match: its phrases and its telling words. Pure.

Words keep their spelling: stemming is the engine's own work.
"""

import re
from dataclasses import dataclass
from typing import Final

_FUNCTION_WORDS: Final = frozenset(
    "a about all also am an and any are as at be been being but by can could did do does doing done for from had "
    "has have her his how i if in into is it its me more most my not of on or our should so some such than that "
    "the their them there these they this those to was we were what when where which who whom whose why will with "
    "would you your please tell give show find list".split()
)
_QUOTED: Final = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»')
_WORD: Final = re.compile(r"[^\W_]+(?:['’./+&-][^\W_]+)*\+{0,2}")
_QUESTION: Final = re.compile(
    r"(?i)\s*(?:(?:in|on|at|to|for|from|of|by|with)\s+)?"
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|has|have|had)\b"
)


@dataclass(frozen=True)
class Telling:
    """What a question is about."""

    phrases: tuple[str, ...]
    """What stood in quotation marks."""
    words: tuple[str, ...]
    """The other words, each once, in their order."""


def is_question(text: str) -> bool:
    """Whether a text is a question rather than search words."""
    return text.rstrip().endswith("?") or _QUESTION.match(text) is not None


def telling(text: str, *, without: frozenset[str] = frozenset()) -> Telling:
    """Take the function words out, and those in `without` (lower case) too.

    Where nothing else is left, all words stay: "The Who" is a band.
    """
    phrases = tuple(" ".join(phrase.split()) for match in _QUOTED.findall(text) if (phrase := "".join(match).strip()))
    bare = _QUOTED.sub(" ", text)
    every = list(dict.fromkeys(word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(bare)))
    words = [word for word in every if word.lower() not in _FUNCTION_WORDS and word.lower() not in without]
    return Telling(phrases=phrases, words=tuple(words if words or phrases else every))


def keywords(text: str, size: int) -> str:
    """A query for an engine that wants every word to match: of a question its telling words, other words as they are.

    Operators of those who write search words stay; at most `size` characters.
    """
    text = " ".join(text.split())
    if is_question(text):
        found = telling(text)
        text = " ".join([*(f'"{phrase}"' for phrase in found.phrases), *found.words])
    return cut(text, size)


def cut(text: str, size: int) -> str:
    """At most `size` characters, cut between words where that is possible."""
    text = " ".join(text.split())
    if len(text) <= size:
        return text
    return text[: size + 1].rsplit(" ", maxsplit=1)[0][:size]
