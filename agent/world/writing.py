"""The files of a world while they are written: part by part, so that a world never has to be in memory as a whole."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.world.baselines import Baselines
from agent.world.card import FILES, WorldCard, digest
from agent.world.records import Document, Question
from agent.world.world import World

Part = World | Sequence[Document]
"""A shard with its questions, or only its documents where none are asked there."""


class Writing:
    """Three open files, and what was written so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._sources: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._baselines = Baselines()
        self.examples: dict[str, Question] = {}
        """The first question of each type."""

    def __enter__(self) -> Self:
        names = FILES
        paths = [self._folder / name for name in names]
        opened = [self._open.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
        self._documents, self._triples, self._questions = opened
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def documents(self) -> int:
        return self._sources.total()

    def add(self, part: Part) -> None:
        documents = part.documents if isinstance(part, World) else part
        self._documents.writelines(document.model_dump_json() + "\n" for document in documents)
        self._triples.writelines(line + "\n" for line in _triples(documents))
        self._sources.update(document.source for document in documents)
        if not isinstance(part, World):
            return
        for question in part.questions:
            self._questions.write(question.model_dump_json() + "\n")
            self._types[question.type] += 1
            self._baselines.add(part, question)
            self.examples.setdefault(question.type, question)

    def finish(self, card: WorldCard) -> WorldCard:
        """The card with the counts, and the hashes of the closed files."""
        counted = {
            "documents": self.documents,
            "questions": self._types.total(),
            "files": {name: digest(self._folder / name) for name in FILES},
        }
        if card.knobs is not None:
            counted |= {
                "sources": dict(sorted(self._sources.items())),
                "types": dict(sorted(self._types.items())),
                "baselines": {name: round(share, 4) for name, share in self._baselines.shares().items()},
            }
        return card.model_copy(update=counted)


def _triples(documents: Iterable[Document]) -> Iterable[str]:
    for document in documents:
        if document.source == "kg":
            head, relation, tails = document.text.split(" | ")
            yield from ("\t".join((head, relation, tail)) for tail in tails.split("; "))
