"""Gold passages: which of what was found, shown or cited are among them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import unquote

from agent.outbound.urls import NO_URL, split_url
from agent.sources.questions import GoldQuestion
from train.evaluation.normalisations import unicode

_NOTHING: Final[Mapping[str, str]] = {}


class NamedText(Protocol):
    """A passage, a document or a citation: whatever names a piece of text."""

    @property
    def id(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def title(self) -> str: ...


class TextDocument(NamedText, Protocol):
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class GoldBook:
    """What a searched corpus has of the gold passages of some questions.

    Where it has not one gold id, it is another corpus than the questions' own, and titles are compared instead.
    """

    ids: frozenset[str] = frozenset()
    """Gold ids that the corpus has."""
    titles: frozenset[str] = frozenset()
    """Gold titles that it has, folded."""
    urls: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """From the address of a gold passage to its id."""
    texts: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Of gold passages by id."""

    @property
    def by_title(self) -> bool:
        return not self.ids and bool(self.titles)

    @classmethod
    def of(cls, questions: Iterable[GoldQuestion], documents: Iterable[TextDocument]) -> "GoldBook":
        """Look through a corpus once; only what is gold is kept."""
        ids: set[str] = set()
        titles: set[str] = set()
        for question in questions:
            ids.update(question.supporting)
            titles.update(map(fold, question.titles))
        addresses = {plain_url(key): key for key in ids if "://" in key}
        had: set[str] = set()
        named: set[str] = set()
        urls: dict[str, str] = {}
        texts: dict[str, str] = {}
        for document in documents:
            if key := _own(document.id, ids) or addresses.get(plain_url(document.url), ""):
                had.add(key)
                texts[key] = f"{texts[key]}\n{document.text}" if key in texts else document.text
                if document.url:
                    urls[plain_url(document.url)] = key
            if titles and (title := fold(document.title)) in titles:
                named.add(title)
        return cls(ids=frozenset(had), titles=frozenset(named), urls=urls, texts=texts)


def gold_of(question: GoldQuestion, book: GoldBook | None) -> tuple[str, ...]:
    """Names of the question's gold passages: ids, or folded titles where the corpus has other ids."""
    if book and book.by_title and question.titles:
        return tuple(dict.fromkeys(map(fold, question.titles)))
    return tuple(dict.fromkeys(question.supporting))


def gold_among(question: GoldQuestion, named: Iterable[NamedText], book: GoldBook | None = None) -> set[str]:
    """Those names of gold passages that some of `named` are."""
    return {key for one in named if (key := gold_name(question, one, book))}


def gold_name(question: GoldQuestion, named: NamedText, book: GoldBook | None = None) -> str:
    """The gold passage that this is, or ""; a part `ID#2` of a long passage counts as the passage.

    One without a known id is known by its address: gold may be addresses itself, and a corpus has those of its own.
    """
    gold = set(gold_of(question, book))
    if book and book.by_title and question.titles:
        title = fold(named.title)
        return title if title in gold else ""
    if key := _own(named.id, gold):
        return key
    if book and named.url and (key := book.urls.get(plain_url(named.url), "")) in gold:
        return key
    plain = plain_url(named.url) if named.url else ""
    return next((key for key in gold if "://" in key and plain_url(key) == plain), "")


def in_corpus(question: GoldQuestion, book: GoldBook) -> float | None:
    """The share of the question's gold passages that the corpus has; None where none are known."""
    gold = gold_of(question, book)
    had = book.titles if book.by_title and question.titles else book.ids
    return sum(key in had for key in gold) / len(gold) if gold else None


def _own(key: str, gold: Iterable[str]) -> str:
    return next((name for name in (key, key.rpartition("#")[0]) if name and name in gold), "")


def fold(title: str) -> str:
    return unicode(title.replace("_", " "))


def plain_url(url: str) -> str:
    """An address without what does not matter: scheme, www and m., a fragment, a slash at the end, case of the host.

    What is no address stays as it is.
    """
    parts = split_url(url.strip())
    if parts == NO_URL:
        return url.strip()
    host = (parts.hostname or "").removeprefix("www.").replace(".m.", ".")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{unquote(parts.path).rstrip('/')}{query}"
