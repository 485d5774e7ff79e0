"""What a relation is: its name, its nouns, its wordings. `lexicon` describes how they are written."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sense:
    """One relation: its name, its nouns, its wordings."""

    name: str
    nouns: tuple[str, ...] = ()
    wordings: tuple[str, ...] = ()
    symmetric: bool = False


def sense(name: str, nouns: str, wordings: str, *, symmetric: bool = False) -> Sense:
    cut = [tuple(part.strip() for part in text.split(",") if part.strip()) for text in (nouns, wordings)]
    return Sense(name=name, nouns=cut[0], wordings=cut[1], symmetric=symmetric)
