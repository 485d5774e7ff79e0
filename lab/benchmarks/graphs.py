"""A made-up knowledge graph of any size, as Wikidata5M's files: for benchmarks, the same from the same seed.

Degrees are Zipf's: few entities are named very often. Names are made by rule of syllables, as in many languages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

_ONSETS: Final = "b br c ch cl d dr f fl g gr h j k kl l m n p pr qu r s sch sh sk st t th tr v w y z".split()
_VOWELS: Final = "a e i o u ai au ea ei ia ie oa ou á é ö ü".split()
_CODAS: Final = ["", "", "", "", "l", "m", "n", "nd", "r", "rt", "s", "st", "t", "x", "ng", "ck"]
_KINDS: Final = ("river", "museum", "county", "orchestra", "F.C.", "street", "school", "bridge", "(film)", "(album)")
_NAMESAKES: Final = 40
"""One in this many entities has the name of another one."""
_BLOCK: Final = 250_000
RELATIONS: Final = 200
ALIAS_SHARE: Final = 0.4
"""The share of entities that have a second name."""


@dataclass(frozen=True)
class Files:
    """The three files of a graph."""

    triples: Path
    aliases: Path
    relations: Path


def name_of(number: int) -> str:
    """An entity's name: two or three made-up words, sometimes with what kind of thing it is; some are namesakes."""
    if number % _NAMESAKES == 7:
        number %= 997
    mixed = (number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64
    words: list[str] = []
    for _ in range(2 + (mixed % 5 == 0)):
        syllables: list[str] = []
        for _ in range(2 + (mixed >> 7) % 2):
            mixed = (mixed * 6364136223846793005 + 1442695040888963407) % 2**64
            high = mixed >> 33
            parts = (_ONSETS, high), (_VOWELS, high >> 7), (_CODAS, high >> 14)
            syllables += [choices[at % len(choices)] for choices, at in parts]
        words.append("".join(syllables).capitalize())
    if (mixed >> 40) % 4 == 0:
        words.append(_KINDS[(mixed >> 44) % len(_KINDS)])
    return " ".join(words)


def alias_of(number: int) -> str:
    """An entity's second name, or nothing."""
    return name_of(number + 2**40) if (number * 2654435761) % 1000 < 1000 * ALIAS_SHARE else ""


def write_graph(folder: Path, *, triples: int, seed: int = 0) -> Files:
    """Write a graph of `triples` lines with a fifth as many entities; memory stays bounded."""
    files = Files(folder / "triples.txt", folder / "entity.txt", folder / "relation.txt")
    entities = max(triples // 5, 10)
    rng = np.random.default_rng(seed)
    with files.triples.open("w", encoding="utf-8") as out:
        for block in _blocks(triples):
            heads = rng.integers(entities, size=block)
            tails = _zipf(rng, entities, block)
            relations = _zipf(rng, RELATIONS, block)
            rows = zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True)
            out.writelines(f"Q{head}\tP{relation}\tQ{tail}\n" for head, relation, tail in rows)
    with files.aliases.open("w", encoding="utf-8") as out:
        out.writelines(f"Q{number}\t{name_of(number)}\t{alias_of(number)}\n" for number in range(entities))
    with files.relations.open("w", encoding="utf-8") as out:
        out.writelines(f"P{number}\t{name_of(number + 2**41).lower()}\n" for number in range(RELATIONS))
    return files


def _blocks(total: int) -> Iterator[int]:
    for start in range(0, total, _BLOCK):
        yield min(_BLOCK, total - start)


def _zipf(rng: np.random.Generator, many: int, size: int) -> NDArray[np.int64]:
    """Numbers from 0, the number k about 1 / (k + 2) as often as the first: the inverse of the sum's logarithm."""
    return np.minimum((np.exp(rng.random(size) * np.log1p(many / 2)) - 1) * 2, many - 1).astype(np.int64)
