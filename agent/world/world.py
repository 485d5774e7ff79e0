"""A little world, ready to be searched: its documents behind four sources and one that asks them all."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.bm25 import Bm25Index
from agent.world.names import Split
from agent.world.pages import Document, write_documents
from agent.world.questions import MIX, Lookup, Question, QuestionType, QuestionWriter
from agent.world.universe import Size, make_universe

WORLD_SOURCES = ("web", "news", "arxiv", "kg")


class Shelf:
    """Documents that are searched together."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        # The title counts twice: what a page is about matters more than what it mentions.
        self._index = Bm25Index.build([f"{d.title} {d.title} {d.text}" for d in documents])

    def find(self, query: str, *, limit: int) -> list[Passage]:
        hits = self._index.search(query, limit)
        return [_passage(self._documents[row], score, rank) for rank, (row, score) in enumerate(hits, start=1)]


def _passage(document: Document, score: float, rank: int) -> Passage:
    return Passage(
        id=document.id,
        source=document.source,
        title=document.title,
        text=document.text,
        url=document.url,
        date=document.date,
        score=score,
        rank=rank,
    )


@dataclass(frozen=True)
class ShelfSource:
    """A shelf as a `Source`. A search takes well under a millisecond, so it runs on the loop."""

    shelf: Shelf

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        if not filters:
            return self.shelf.find(query, limit=limit)
        found = self.shelf.find(query, limit=limit * 10)
        return [p for p in found if all(_allows(p, condition) for condition in filters)][:limit]


def _allows(passage: Passage, condition: Filter) -> bool:
    """Pages without a date pass date filters: they were not excluded by what is known of them."""
    match condition.name:
        case "after":
            return not passage.date or passage.date >= condition.value
        case "before":
            return not passage.date or passage.date <= condition.value
        case "site":
            return condition.value in passage.url
        case _:
            return True


@dataclass(frozen=True)
class World:
    """Documents and questions. Two worlds with the same name hold the same."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    shelves: dict[str, Shelf] = field(repr=False, compare=False)

    @classmethod
    def of(cls, name: str, documents: Iterable[Document], questions: Iterable[Question] = ()) -> "World":
        documents = tuple(documents)
        shelves = {name: Shelf([d for d in documents if d.source == name]) for name in WORLD_SOURCES}
        shelves["all"] = Shelf(documents)
        return cls(name, documents, tuple(questions), shelves)

    def find(self, source: str, query: str, *, limit: int) -> list[Passage]:
        """Search one of web, news, arxiv, kg, or all of them in one ranking."""
        return self.shelves[source].find(query, limit=limit)

    def document(self, key: str) -> Document:
        return self._by_id[key]

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}

    def sources(self) -> dict[str, ShelfSource]:
        return {name: ShelfSource(shelf) for name, shelf in self.shelves.items()}

    def outside(self, question: str) -> str | None:
        """The sentence for a question that names nothing of this world; None where it names something."""
        if any(name in self.invented_words for name in _NAME_PARTS.findall(question)):
            return None
        return (
            "The built-in policy knows one thing: how to search the little world, and this question names nothing in "
            "it. To ask about the real world, connect a model: "
            "cairn serve --policy openai --base-url http://127.0.0.1:11434/v1 --model NAME"
        )

    @cached_property
    def invented_words(self) -> frozenset[str]:
        """Every invented word in a subject or a value of the world."""
        stated = [s for document in self.documents for s in document.states]
        labels = {label for s in stated for label in (s.subject, *s.values)}
        return frozenset(word for label in labels for word in _NAME_PARTS.findall(label) if word not in _COMMON)


_NAME_PARTS = re.compile(r"[A-Z][a-z]{3,}")
_COMMON = frozenset(
    "Labs Works Group Motors River Garden Signal Winter Bridge Harbour Year House Child Song Prize Festival Regatta "
    "Summit Problem Limit Lattice Paradox Kernel Effect Society".split()
)


def make_world(
    seed: int,
    *,
    split: Split,
    people: int = 110,
    questions: int = 0,
    name: str = "",
    mix: Mapping[QuestionType, float] = MIX,
) -> World:
    """Generate a world and `questions` questions about it, in the shares of `mix`. The same seed gives the same world.

    A question is kept only if its gold plan, searched for real, finds what it needs.
    """
    rng = random.Random(f"cairn world {split} {seed}")
    universe = make_universe(rng, split=split, size=Size.of(people))
    documents = write_documents(universe, rng)
    world = World.of(name or f"{split}-{seed}", documents)
    writer = QuestionWriter(universe, documents, rng)
    kinds = _shuffled_kinds(questions, mix, rng)
    return World(world.name, world.documents, tuple(_draw_all(world, writer, kinds)), world.shelves)


def _shuffled_kinds(total: int, mix: Mapping[QuestionType, float], rng: random.Random) -> list[QuestionType]:
    """How many of each type, exactly in the shares of the mix (what rounding leaves goes to the first), shuffled."""
    counts: dict[QuestionType, int] = {kind: int(total * share) for kind, share in mix.items()}
    counts["chain1"] = counts.get("chain1", 0) + total - sum(counts.values())
    kinds: list[QuestionType] = [kind for kind, count in counts.items() for _ in range(count)]
    rng.shuffle(kinds)
    return kinds


def _draw_all(world: World, writer: QuestionWriter, kinds: Sequence[QuestionType]) -> Iterable[Question]:
    asked: set[str] = set()
    for number, kind in enumerate(kinds):
        for _ in range(2000):
            question = writer.draw(kind, f"{world.name}-{number}")
            if question is None or question.question in asked:
                continue
            checked = _searched(world, question)
            if checked is not None:
                asked.add(checked.question)
                yield checked
                break
        else:
            raise ValueError(f"this world is too small for {len(kinds)} questions: no new {kind} can be drawn")


def _searched(world: World, question: Question) -> Question | None:
    """The question with its trap marked, or None where a search of its plan misses the gold document."""
    trap = False
    for lookups in question.plan:
        for lookup in lookups:
            found = {p.id for source in lookup.sources for p in world.find(source, lookup.query, limit=2)}
            # Alone in its round, a look-up is also asked in other words.
            queries = (lookup.query, lookup.rephrased) if len(lookups) == 1 else (lookup.query,)
            joint = {p.id for query in queries for p in world.find("all", query, limit=3)}
            if lookup.gold not in found or lookup.gold not in joint:
                return None
            trap = trap or any(_misleads(world.document(key), lookup) for key in found)
    return question.model_copy(update={"trap": trap})


def _misleads(document: Document, lookup: Lookup) -> bool:
    """Whether a document is outdated on this look-up, or about a namesake of its subject."""
    outdated = any(
        s.outdated and s.subject == lookup.subject and s.relation == lookup.relation for s in document.states
    )
    subjects = {s.subject for s in document.states}
    name = _bare(lookup.subject)
    return outdated or any(_bare(s) == name and s != lookup.subject for s in subjects)


def _bare(label: str) -> str:
    """A person's name without the profession: the last two words."""
    return " ".join(label.split()[-2:])
