"""A little world, ready to be searched: its documents behind four sources and one that asks them all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent.evidence import Passage
from agent.plan import DOCUMENTS, Filter
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.bm25 import Bm25Index
from agent.sources.filters import unhonoured
from agent.world.records import Document, Question
from agent.world.scope import Scope

WORLD_SOURCES = ("web", "news", "arxiv", "kg")
HONOURS = frozenset({"after", "before", "site", "not"})


class WorldIndex:
    """Documents that are searched together. Their words are counted with the first search, or by `ready`."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    @cached_property
    def _index(self) -> Bm25Index:
        # The title counts twice: what a page is about matters more than what it mentions.
        return Bm25Index.build([f"{d.title} {d.title} {d.text}" for d in self._documents])

    def ready(self) -> "WorldIndex":
        """The same, whose next search waits for nothing."""
        _ = self._index
        return self

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
class WorldSource:
    """An index as a `Source`. A search takes well under a millisecond, so it runs on the loop."""

    index: WorldIndex

    async def search(self, request: SearchRequest) -> SearchResult:
        if not request.filters:
            return SearchResult(tuple(self.index.find(request.query, limit=request.limit)))
        found = self.index.find(request.query, limit=request.limit * 10)
        sites = [f.value.lower().removeprefix("www.") for f in request.filters if f.name == "site"]
        allowed = [
            passage
            for passage in found
            if all(_allows(passage, condition) for condition in request.filters)
            and (not sites or any(site in passage.url for site in sites))
        ]
        notes = unhonoured(request.filters, honours=HONOURS, by="the little world")
        return SearchResult(tuple(allowed[: request.limit]), notes=notes)


def _allows(passage: Passage, condition: Filter) -> bool:
    """Pages without a date pass date filters: they were not excluded by what is known of them."""
    match condition.name:
        case "after":
            return not passage.date or passage.date >= condition.value
        case "before":
            return not passage.date or passage.date <= condition.value
        case "not":
            return condition.value.lower().removeprefix("www.") not in passage.url
        case _:
            return True


@dataclass(frozen=True)
class World:
    """Documents and questions. Two worlds with the same name hold the same."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    indexes: dict[str, WorldIndex] = field(repr=False, compare=False)

    @classmethod
    def of(cls, name: str, documents: Iterable[Document], questions: Iterable[Question] = ()) -> "World":
        documents = tuple(documents)
        indexes = {name: WorldIndex([d for d in documents if d.source == name]) for name in WORLD_SOURCES}
        indexes["all"] = WorldIndex(documents)
        return cls(name, documents, tuple(questions), indexes)

    def find(self, source: str, query: str, *, limit: int) -> list[Passage]:
        """Search one of web, news, arxiv, kg, or all of them in one ranking."""
        return self.indexes[source].find(query, limit=limit)

    def document(self, key: str) -> Document:
        return self._by_id[key]

    def about(self, subjects: Iterable[str]) -> list[Document]:
        """Every document that speaks of one of the subjects, by its statements, its title or its text."""
        return [d for d in self.documents if any(s in d.title or s in d.text or _speaks(d, s) for s in subjects)]

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}

    def sources(self) -> dict[str, WorldSource]:
        """By the names that plans use, and all but the graph as `documents`."""
        indexes = self.indexes | {DOCUMENTS: self._without_graph}
        return {name: WorldSource(index.ready()) for name, index in indexes.items()}

    @cached_property
    def _without_graph(self) -> WorldIndex:
        return WorldIndex([document for document in self.documents if document.source != "kg"])

    def outside(self, question: str, history: Sequence[tuple[str, str]] = ()) -> str | None:
        """The sentence for a question that is not about this world; None for one that is. See `Scope`."""
        return self.scope.sentence(question, history)

    @cached_property
    def scope(self) -> Scope:
        """The questions that this world can answer."""
        strangers = any(question.unanswerable for question in self.questions)
        return Scope(self.documents, strangers=strangers, conversations=any(q.history for q in self.questions))

    @property
    def invented_words(self) -> frozenset[str]:
        """Every invented word in a subject or a value of the world."""
        return self.scope.invented_words


def _speaks(document: Document, subject: str) -> bool:
    return any(s.subject == subject or subject in s.values for s in document.states)
