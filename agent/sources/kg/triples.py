"""Triples, and how those that share an end and a relation become one passage: "X | starred actors | a; b; c"."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from agent.evidence import Passage
from agent.sources.kg.words import readable

End = Literal["head", "tail"]


@dataclass(frozen=True, slots=True)
class GraphTriple:
    """One fact, with the names that are shown, and the end by which it was found."""

    head: str
    relation: str
    tail: str
    head_id: str = ""
    tail_id: str = ""
    found_by: End = "head"
    """Which end the question names; the other one is news."""
    weight: float = 1.0
    """How sure it is that the question means this entity, from 0 to 1."""
    mention: str = ""
    """The question's words that name it, where they are not its name."""

    @property
    def known(self) -> str:
        """The name of the end that the question names."""
        return self.head if self.found_by == "head" else self.tail

    @property
    def news(self) -> str:
        """The name of the other end."""
        return self.tail if self.found_by == "head" else self.head

    @property
    def ends(self) -> tuple[str, str, str]:
        """What it says, by identifiers where there are any."""
        return self.head_id or self.head, self.relation, self.tail_id or self.tail

    @property
    def group(self) -> tuple[str, str, End]:
        """What it shares with the triples in one passage with it."""
        known = (self.head_id or self.head) if self.found_by == "head" else (self.tail_id or self.tail)
        return known, self.relation, self.found_by


def render(triples: Iterable[GraphTriple]) -> str:
    """The triples of one group as one line."""
    facts = list(triples)
    first = facts[0]
    others = "; ".join(dict.fromkeys(_line(fact.news) for fact in facts))
    known, relation = _line(first.known), _line(readable(first.relation))
    return " | ".join((known, relation, others) if first.found_by == "head" else (others, relation, known))


def pack(triples: Iterable[GraphTriple]) -> list[list[GraphTriple]]:
    """Put triples of one group together; groups keep the order of their first triple."""
    groups: dict[tuple[str, str, End], list[GraphTriple]] = {}
    for triple in triples:
        groups.setdefault(triple.group, []).append(triple)
    return list(groups.values())


def to_passages(
    triples: Iterable[GraphTriple],
    *,
    limit: int,
    source: str = "kg",
    packed: bool = True,
    url: Callable[[GraphTriple], str] = lambda triple: "",
) -> list[Passage]:
    """Make passages of ranked triples, one for each group, best first; the text is the whole passage.

    Args:
        triples: best first.
        limit: of the passages.
        source: name of the source that found them.
        packed: False makes a passage of each triple.
        url: where a group's first triple can be read.
    """
    groups = (pack(triples) if packed else [[triple] for triple in triples])[:limit]
    return [
        Passage(
            id=f"{source}:{'|'.join(group[0].group if packed else group[0].ends)}",
            source=source,
            title="",
            text=render(group),
            url=url(group[0]),
            rank=rank,
            score=1 / rank,
        )
        for rank, group in enumerate(groups, start=1)
    ]


def _line(name: str) -> str:
    return " ".join(name.split())
