"""The documents that the expert searches: a real index, and every passage by its id."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agent.evidence import Passage
from agent.sources.corpus.source import CorpusSource
from train.expert.plan import Gold
from train.expert.reading import YES_NO, SolvedQuestion
from train.expert.text import holds, names_in, plain_title, quote, shared_words
from train.expert.trajectory import whole_id

LOOKED_AT: Final = 5
"""Passages that a search with the question gives."""
_LONGEST_NAME: Final = 8
"""Words of a title that is looked for in a text."""
_LEAST_SHARED: Final = 2
"""Words of the question that are in the sentence with the answer, where the question names its passage."""
_PREFIX: Final = 3
_WORD: Final = re.compile(r"\w+(?:['’.]\w+)*")


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


class Locator:
    """Finds gold passages in an index, by their titles and their texts.

    That is distant supervision: such a passage may hold the answer by chance. So it must share words with the question,
    too, and the expert's own searches must find it.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._titled: dict[str, list[Gold]] = defaultdict(list)
        for document in library.passages():
            self._titled[names_in(plain_title(document.title))].append(document)

    def located(self, record: SolvedQuestion) -> SolvedQuestion | None:
        """The question with gold passages; None where none can be found."""
        question, answer = record.question, record.answers[0]
        named = list(self._named_in(question))
        if answer.casefold() in YES_NO or any(names_in(plain_title(one.title)) == names_in(answer) for one in named):
            titles = {names_in(plain_title(one.title)): one for one in named}
            return _with(record, titles.values(), kind="comparison") if len(titles) == 2 else None
        if direct := _most_shared(_holding(named, answer), question, answer, least=_LEAST_SHARED):
            return _with(record, [direct], kind="one hop")
        return self._bridge(record, named)

    def _bridge(self, record: SolvedQuestion, named: list[Gold]) -> SolvedQuestion | None:
        """A passage that the question leads to, and one that it names, which holds the answer."""
        question, answer = record.question, record.answers[0]
        found = (self._library.passage(hit.id) for hit in self._library.find(question, LOOKED_AT))
        for first in [*named, *(one for one in found if one is not None)]:
            others = (one for one in self._named_in(first.text) if one.title != first.title)
            if last := _most_shared(_holding(others, answer), question, answer, least=1):
                return _with(record, [first, last], kind="bridge")
        return None

    def _named_in(self, text: str) -> Iterator[Gold]:
        """The documents whose titles are in a text, the longest name first; a name begins with a capital or digit."""
        said = _WORD.findall(text)
        words = [names_in(word) for word in said]
        starts = [at for at, word in enumerate(said) if word[0].isupper() or word[0].isdigit()]
        taken = [False] * len(words)
        for length in range(_LONGEST_NAME, 0, -1):
            for at in starts:
                if at + length > len(words) or any(taken[at : at + length]):
                    continue
                if documents := self._titled.get(" ".join(words[at : at + length])):
                    taken[at : at + length] = [True] * length
                    yield from documents


def _holding(documents: Iterable[Gold], answer: str) -> list[Gold]:
    begins = answer[:_PREFIX].casefold()  # most texts have not even that
    return [one for one in documents if begins in one.text.casefold() and holds(one.text, answer)]


def _most_shared(documents: Iterable[Gold], question: str, answer: str, *, least: int) -> Gold | None:
    """The one whose sentence with the answer has most words of the question, and at least enough of them."""
    shared = [(_shared(one, question, answer), one) for one in documents]
    count, best = max(shared, key=lambda pair: pair[0], default=(0, None))
    return best if count >= least else None


def _shared(document: Gold, question: str, answer: str) -> int:
    said = quote(document.text, answer, question)
    return len(shared_words(question, f"{document.title} {answer}", said, most=99).split())


def _with(record: SolvedQuestion, gold: Iterable[Gold], *, kind: str) -> SolvedQuestion:
    supporting = tuple(dict.fromkeys(one.id for one in gold))
    return record.model_copy(update={"supporting": supporting, "type": record.type or f"distant {kind}"})
