"""Invented words for worlds of any size: every shard of a world has a stretch of the words to itself.

A word is a stem and an ending, with a middle or a prefix or both between and before them; the split is decided by the
hash of the whole word, as in `names`, so that also these words keep the splits apart.
"""

import random
from typing import Final

from agent.world.names import ENDINGS, MIDDLES, PREFIXES, Split, split_of, stems, words

MAX_SHARDS: Final = 1280

_STEP: Final = 7_368_787
"""A prime that divides no kind's number of words: steps of this size reach every word once."""
_SHARING: Final = 4
"""Shards that share the short words."""
_ENDINGS: Final = {**ENDINGS, "country": (*ENDINGS["country"], "avia", "ara", "eria", "ova", "une")}


def _count(kind: str) -> int:
    return len(stems()) * len(_ENDINGS[kind]) * (len(MIDDLES) + 1) * (len(PREFIXES) + 1)


def _word(kind: str, number: int) -> str:
    number, stem = divmod(number * _STEP % _count(kind), len(stems()))
    number, ending = divmod(number, len(_ENDINGS[kind]))
    prefix, middle = divmod(number, len(MIDDLES) + 1)
    parts = (("", *PREFIXES)[prefix], stems()[stem], ("", *MIDDLES)[middle], _ENDINGS[kind][ending])
    return "".join(parts).capitalize()


class ShardWords:
    """The words of one shard. No other shard gives out any of them but first names."""

    def __init__(self, rng: random.Random, split: Split, *, seed: int, shard: int) -> None:
        """Take the shard's stretch.

        Raises:
            ValueError: there are no words for that many shards.
        """
        if not 0 <= shard < MAX_SHARDS:
            raise ValueError(f"a world has at most {MAX_SHARDS} shards")
        self._rng, self._split, self._seed, self._shard = rng, split, seed, shard
        self._pools: dict[str, list[str]] = {}
        self._people: set[str] = set()

    def word(self, kind: str) -> str:
        """A word that was not given out before; the short ones go first.

        Raises:
            ValueError: the stretch is used up.
        """
        if kind not in self._pools:
            self._pools[kind] = [*self._long(kind), *self._short(kind)]
        if not self._pools[kind]:
            raise ValueError(f"a shard has no more words for a {kind}")
        return self._pools[kind].pop()

    def _long(self, kind: str) -> list[str]:
        """The shard's stretch of the words with middles and prefixes, the shorter ones last."""
        size = _count(kind) // MAX_SHARDS
        stretch = (self._shard + self._seed) % MAX_SHARDS * size
        every = {_word(kind, number) for number in range(stretch, stretch + size)} - set(words(kind, self._split))
        mine = sorted(word for word in every if split_of(word) == self._split)
        self._rng.shuffle(mine)
        return sorted(mine, key=len, reverse=True)

    def _short(self, kind: str) -> list[str]:
        """Words of a stem and an ending: the first shards of a world share them out."""
        if self._shard >= _SHARING:
            return []
        mine = list(words(kind, self._split)[(self._shard + self._seed) % _SHARING :: _SHARING])
        self._rng.shuffle(mine)
        return mine

    def first_name(self) -> str:
        return self._rng.choice(words("first", self._split))

    def person(self, last: str) -> str:
        """A new full name of that family."""
        while (name := f"{self.first_name()} {last}") in self._people:
            pass
        self._people.add(name)
        return name
