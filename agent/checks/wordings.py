"""The lexicon made ready: which wordings and nouns are in a sentence, and where. Their ends are read elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from agent.checks.lexicon import KINDS, SENSES
from agent.checks.tokens import Token, fold, stem
from agent.checks.words import ARTICLES, BE, FUNCTION, NEGATIONS

Slot = Literal["H", "V", "X"]

_SLOTS: Final[dict[str, Slot]] = {"H": "H", "V": "V", "X": "X"}
"""`X` is another one, who is neither end."""
_BY: Final = (frozenset(("by",)),)
_SKIPPED: Final = 4
"""Most small words that may stand between two words of a wording."""
_INTO: Final = frozenset(("in", "at", "from", "into", "on", "of"))
_REACH: Final = 5
"""Most tokens between a verb and what stands between it and the rest: "put the widow Lina Orr in charge"."""


@dataclass(frozen=True, slots=True)
class Wording:
    """`lead` words `inner` rest `tail`: any slot may be missing."""

    sense: str
    lead: tuple[Slot, ...]
    words: tuple[frozenset[str], ...]
    inner: Slot | None
    rest: tuple[frozenset[str], ...]
    tail: Slot | None
    noun: bool = False

    @property
    def weight(self) -> int:
        return len(self.words) + len(self.rest)


@dataclass(frozen=True, slots=True)
class WordingMatch:
    """A wording in a sentence. `first` to `last` are its tokens; `inner` where the slot between them may begin."""

    wording: Wording
    first: int
    last: int
    inner: tuple[int, int] | None = None
    far: bool = False
    """Whether places or dates stand before its "by": "founded in Sweden in 1943 by V"."""


@cache
def wordings() -> dict[str, list[Wording]]:
    """Stem of the first word → the wordings that begin with it. Nouns stand under their folded words."""
    table: dict[str, list[Wording]] = {}
    for sense in SENSES.values():
        for made in (
            *map(_noun, [sense.name] * len(sense.nouns), sense.nouns),
            *(_wording(sense.name, w) for w in sense.wordings),
        ):
            for first in made.words[0]:
                table.setdefault(first, []).append(made)
    return table


@cache
def known_stems() -> frozenset[str]:
    """Stems of the words that carry the wordings: no names, also where they begin a sentence."""
    found = {
        word for many in wordings().values() for made in many for part in (*made.words, *made.rest) for word in part
    }
    return frozenset(stem(word) for word in (*found, *KINDS)) | found


@cache
def verbs() -> frozenset[str]:
    """Stems of the verbs of the wordings: after "and" they begin a clause."""
    return frozenset(w for many in wordings().values() for made in many if not made.noun for w in made.words[0])


def _noun(sense: str, text: str) -> Wording:
    parts = [fold(word) for word in text.split()]
    words = [frozenset((word,)) for word in parts[:-1]] + [frozenset((parts[-1], _plural(parts[-1])))]
    return Wording(sense, (), tuple(words), None, (), None, noun=True)


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _wording(sense: str, text: str) -> Wording:
    lead: list[Slot] = []
    words: list[frozenset[str]] = []
    rest: list[frozenset[str]] = []
    inner: Slot | None = None
    tail: Slot | None = None
    parts = text.split()
    for place, part in enumerate(parts):
        slot = _SLOTS.get(part)
        if slot:
            if not words:
                lead.append(slot)
            elif place == len(parts) - 1:
                tail = slot
            else:
                inner = slot
        else:
            (rest if inner else words).append(
                frozenset(word if word[0] == "=" else stem(fold(word)) for word in part.split("|"))
            )
    return Wording(sense, tuple(lead), tuple(words), inner, tuple(rest), tail)


def find(found: Sequence[Token], names: Sequence[bool]) -> list[list[WordingMatch]]:
    """The wordings of a sentence from left to right; several at one place are readings of the same words.

    Args:
        found: the tokens.
        names: for each token whether it is part of a name, a date or a number.
    """
    groups: list[list[WordingMatch]] = []
    at = 0
    taken = -1
    while at < len(found):
        matches = [] if names[at] or at <= taken else list(_at(found, names, at))
        if not matches:
            at += 1
            continue
        groups += [far for far in ([m for m in matches if m.far],) if far]
        near = [match for match in matches if not match.far] or matches
        most = max(match.wording.weight for match in near)
        best = [match for match in near if match.wording.weight == most]
        if not best[0].far:
            groups.append(best)
        taken = max(match.last for match in best)
        at = min(match.inner[0] if match.inner else match.last + 1 for match in best)
    return groups


def _at(found: Sequence[Token], names: Sequence[bool], at: int) -> Iterator[WordingMatch]:
    table = wordings()
    token = found[at]
    for wording in (
        {*table.get(token.stem, ()), *table.get(token.text, ()), *table.get(f"={token.text}", ())}
        if not token.mark
        else ()
    ):
        if _describes(found, names, at, wording):
            continue
        last = _follow(found, names, at, wording.words, noun=wording.noun)
        if last is None and wording.words[1:] == _BY and (by := _far_by(found, names, at + 1)):
            yield WordingMatch(wording, at, by, far=True)
        if last is None:
            continue
        if not wording.inner:
            yield WordingMatch(wording, at, last)
            continue
        begin = next((k for k in range(last + 1, min(last + 1 + _REACH, len(found))) if names[k]), None)
        if begin is None:
            continue
        end = begin
        while end + 1 < len(found) and names[end + 1]:
            end += 1
        rest = next(
            (k for k in range(end + 1, min(end + 1 + _REACH, len(found))) if found[k].stem in wording.rest[0]), None
        )
        if rest is not None and (done := _follow(found, names, rest, wording.rest)) is not None:
            yield WordingMatch(wording, at, done, (begin, end))


def _describes(found: Sequence[Token], names: Sequence[bool], at: int, wording: Wording) -> bool:
    """Whether a noun only says who or what is meant: "the translator Lina Orr", "in the country of Avaroth"."""
    before, after = found[at - 1].text if at else "", at + len(wording.words)
    if after >= len(found) or not (wording.noun or wording.weight == 1):
        return False
    if before in ARTICLES:
        of = wording.noun and found[after].text == "of" and at > 1 and found[at - 2].text in _INTO
        return _leads_to_name(found, names, after) or of
    if not at or found[at - 1].mark or before in FUNCTION:  # "her producer Lina Orr" says whose
        return False
    return found[at].text in _single_nouns() and _leads_to_name(found, names, after)


def _leads_to_name(found: Sequence[Token], names: Sequence[bool], at: int) -> bool:
    """Whether nothing but nouns stands before a name: "(the singer) and producer Lina Orr"."""
    for place in range(at, min(at + _REACH, len(found))):
        if names[place]:
            return True
        if found[place].mark or (found[place].text in FUNCTION and found[place].text != "and"):
            return False
    return False


def is_noun(word: str) -> bool:
    """Whether a folded word is one of the nouns, though it may be a verb, too."""
    return word in _single_nouns()


@cache
def _single_nouns() -> frozenset[str]:
    """Nouns of one word, not in the plural: "stars" is a verb more often."""
    return frozenset(noun for sense in SENSES.values() for noun in sense.nouns if " " not in noun)


def _far_by(found: Sequence[Token], names: Sequence[bool], at: int) -> int | None:
    """The place of a "by" behind nothing but places and dates."""
    for place in range(at, len(found)):
        if found[place].text == "by" and not names[place]:
            return place if place > at else None
        if not names[place] and found[place].text not in ("in", "on", "at", "the", ",", "near"):
            return None
    return None


def _follow(
    found: Sequence[Token], names: Sequence[bool], at: int, words: Sequence[frozenset[str]], *, noun: bool = False
) -> int | None:
    """Place of the last word, if all words follow each other from `at` on, small words between them."""
    place = at - 1
    for number, word in enumerate(words):
        skipped = 0
        place += 1
        while place < len(found) and not _is(found[place], word, noun=noun):
            skipped += 1
            if not number or skipped > _SKIPPED or names[place] or not _small(found[place]):
                return None
            place += 1
        if place >= len(found) or names[place]:
            return None
    return place


def _is(token: Token, word: frozenset[str], *, noun: bool) -> bool:
    if noun:
        return token.text in word
    return token.stem in word or token.text in word or f"={token.text}" in word


def _small(token: Token) -> bool:
    if token.mark or token.text in NEGATIONS or token.text in ("and", "or", "but", "by", "who", "which"):
        return False
    return (
        token.text in FUNCTION
        or token.text in KINDS
        or token.text.endswith("ly")
        or token.text in ARTICLES
        or token.text in BE
    )
