"""Invented names. Words are kept apart by split for good: no name of a test world ever occurs in a training world.

A word is a stem of four letters and an ending that fits its kind ("Bren" + "ova"), so that a small vocabulary can spell
every word in few tokens, whichever split it belongs to. Large worlds put a prefix before it or a middle inside.
"""

import hashlib
import random
import re
from functools import cache
from typing import Final, Literal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

_SHARES = {"train": 70, "dev": 80, "test": 100}
"""Percent of all words, cumulated."""

_ONSETS = "b d f g h j k l m n p r s t v w z".split()
_CLUSTERS = "bl br cl dr fl gr kr pl pr sk sl sp st tr".split()
_VOWELS = "a e i o u".split()
_CODAS = "l m n r s t k d".split()
_DOUBLE_CODAS = "ld lk lm ln lt lv mb nd nk nt rd rk rl rm rn rs rt rv sk st".split()
_N_STEMS = 300

ENDINGS: dict[str, tuple[str, ...]] = {
    "first": ("a", "o", "is", "en", "ia", "el", "une", "ico", "ora", "im"),
    "last": ("ov", "ard", "esen", "ik", "uto", "ell", "ado", "wick", "ane", "ey"),
    "city": ("ton", "burg", "aven", "ford", "mouth", "stad", "ora", "holm", "wick", "dale"),
    "country": ("ia", "land", "istan", "mark", "onia"),
    "org": ("ex", "ium", "ax", "tec", "on", "ica", "yx", "ent"),
    "work": ("ine", "a", "ow", "ess", "ire", "une", "um"),
    "thing": ("ian", "ic", "an", "ite", "oid", "al", "us"),
}
MIDDLES: Final = tuple(a + b for a in "aeiou" for b in "dlmnrstv")
PREFIXES: Final = ("Al", "Bel", "Cor", "Des", "El", "Fen", "Is", "Kal", "Mor", "Nor", "Or", "San", "Tor", "Vel")
NOUNS: Final[dict[str, tuple[str, ...]]] = {
    "org": ("Labs", "Works", "Group", "Motors", "Mills", "Foundry", "Shipping", "Textiles"),
    "film": ("River", "Garden", "Signal", "Winter", "Bridge", "Harbour", "Letter", "Mirror", "Orchard", "Tide"),
    "novel": ("Year", "House", "Child", "Song", "Journey", "Summer", "Neighbour"),
    "event": ("Prize", "Festival", "Regatta", "Summit", "Marathon", "Biennale"),
    "paper": ("Problem", "Limit", "Lattice", "Paradox", "Kernel", "Effect", "Spectrum", "Transform"),
}
PLACE_PREFIXES: Final = ("New", "Upper", "Lower", "East", "West", "Port")
COMMON_WORDS: Final = frozenset(
    (*(noun for nouns in NOUNS.values() for noun in nouns), *PLACE_PREFIXES, "Society", "University")
)
"""The words of names that are not invented."""


@cache
def stems() -> tuple[str, ...]:
    """The stems, the same in every split: consonant and vowel frames of exactly four letters."""
    frames = [c + v + k for c in _ONSETS for v in _VOWELS for k in _DOUBLE_CODAS]
    frames += [c + v + k for c in _CLUSTERS for v in _VOWELS for k in _CODAS]
    return tuple(sorted(random.Random("stems").sample(sorted(set(frames)), _N_STEMS)))


def split_named(name: str) -> Split | None:
    """The split of that name, if there is one."""
    for split in SPLITS:
        if split == name:
            return split
    return None


def split_of(word: str) -> Split:
    """The only split whose worlds may use this word."""
    place = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % 100
    return next(split for split in SPLITS if place < _SHARES[split])


@cache
def words(kind: str, split: Split) -> tuple[str, ...]:
    """Every word of one kind (first, last, city, country, org, work, thing) that a split may use."""
    every = (stem.capitalize() + ending for stem in stems() for ending in ENDINGS[kind])
    return tuple(word for word in every if split_of(word) == split)


def bare_name(label: str) -> str:
    """A person's name without the profession that separates namesakes: the last two words."""
    return " ".join(label.split()[-2:])


def could_be_named(first: str, last: str, split: Split) -> bool:
    """Whether a world of that split could have a person of this name."""
    return first in words("first", split) and split_of(last) == split and bool(_last_names().fullmatch(last.lower()))


@cache
def _last_names() -> re.Pattern[str]:
    """How every last name is spelled, in lower case."""
    prefixes, middles = "|".join(PREFIXES).lower(), "|".join(MIDDLES)
    return re.compile(rf"(?:{prefixes})?(?:{'|'.join(stems())})(?:{middles})?(?:{'|'.join(ENDINGS['last'])})")
