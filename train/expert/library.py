"""The documents that the expert searches: a real index, and every passage by its id."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from agent.evidence import Passage
from agent.sources.corpus.source import CorpusSource
from train.expert.plan import Gold
from train.expert.trajectory import whole_id


class Library:
    """An index with its documents. Two documents of the same text are one: the first."""

    def __init__(self, index: Path) -> None:
        """Open an index folder, or documents of which one is made in the cache.

        Raises:
            CorpusError: there is none, or it is damaged.
        """
        self._source = CorpusSource.open(index)
        parts: dict[str, list[Passage | Gold]] = defaultdict(list)
        self._same: dict[str, str] = {}
        first: dict[str, str] = {}
        for document in self._source.documents():
            name = whole_id(document.id)
            parts[name].append(Gold(id=name, title=document.title, text=document.text))
            self._same[document.id] = first.setdefault(f"{document.title}\n{document.text}", document.id)
        self._gold = {
            name: Gold(id=name, title=texts[0].title, text="\n".join(part.text for part in texts))
            for name, texts in parts.items()
        }

    def __len__(self) -> int:
        return len(self._gold)

    def passages(self) -> Iterable[Gold]:
        """Every document."""
        return self._gold.values()

    def find(self, query: str, limit: int) -> list[Passage]:
        """The best passages for a query."""
        return [hit.model_copy(update={"id": self._same[hit.id]}) for hit in self._source.find(query, limit=limit)]

    def passage(self, passage: str) -> Gold | None:
        """A document by its id."""
        return self._gold.get(whole_id(self._same.get(passage, passage)))
