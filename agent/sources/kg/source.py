"""The knowledge graph as a source: the entities that a question names, one hop out and in, ranked and packed.

SQLite is queried in a few threads with a connection each; the event loop never waits for it.
"""

import asyncio
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from agent.errors import SetupError, SourceError
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import unhonoured
from agent.sources.kg.rank import LIMIT, TOKENS, rank_triples
from agent.sources.kg.schema import GraphCard
from agent.sources.kg.store import Graph, GraphEdge, GraphEntity
from agent.sources.kg.triples import End, GraphTriple, to_passages
from agent.sources.kg.words import STOP_WORDS, fold, is_relation_word, split, stem

WINDOW: Final = 16
"""The longest name, in words."""
QUERY_WORDS: Final = 64
"""Of a longer question the first ones are looked at: it is a text, not a question."""
MENTIONS: Final = 6
NAMESAKES: Final = 6
"""Entities of one name that are looked at."""
_NEARLY: Final = 6
"""Runs of words that are tried with typos."""
_WEAK: Final = 0.3
"""What a name counts that could as well be a word of the question."""
_BRACKETS: Final = re.compile(r"\[([^\[\]]+)\]")
_TOKEN: Final = re.compile(r"[^\s\[\]]+")
_EDGE: Final = re.compile(r"^[^\w]+|[^\w]+$")
_EVERYDAY: Final = frozenset(
    stem(word)
    for word in "film films movie movies book books song songs album game person people man woman thing things year "
    "years day city country place name names number kind type main same different first last many team company "
    "based primary listed share together also".split()
)


@dataclass(frozen=True)
class EntityMention:
    """Some of the question's words, and an entity that is called so."""

    text: str
    entity: GraphEntity
    weight: float
    """How sure it is, from 0 to 1."""


@dataclass(frozen=True)
class _Span:
    first: int
    last: int
    text: str
    found: tuple[EntityMention, ...]
    weak: bool

    def overlaps(self, other: "_Span") -> bool:
        return self.first <= other.last and other.first <= self.last


def find_mentions(query: str, graph: Graph) -> list[EntityMention]:
    """Find the entities that a question names, the surest first.

    The longest names in it, exactly; nearly so where none is exact. No model: a name is a run of the question's words
    that some entity is called. Names in [brackets] are taken at their word.
    """
    bracketed = [mention for text in _BRACKETS.findall(query) for mention in _bracketed(text, graph)]
    if bracketed:
        return bracketed[: MENTIONS * NAMESAKES]
    tokens = _TOKEN.findall(query)[:QUERY_WORDS]
    spans = _choose(_exact_spans(tokens, graph))
    strong = [span for span in spans if not span.weak]
    if strong:
        return [mention for span in strong[:MENTIONS] for mention in span.found]
    # A name of common words only, as of the film "It", counts where the question holds no other.
    return _near_mentions(tokens, graph) + [mention for span in spans[:MENTIONS] for mention in span.found]


def _bracketed(text: str, graph: Graph) -> list[EntityMention]:
    matches = graph.exact(text, limit=NAMESAKES) or graph.typo(text, limit=2) or graph.words(text, limit=2)
    return [EntityMention(text, match.entity, match.score) for match in matches]


def _exact_spans(tokens: Sequence[str], graph: Graph) -> Iterator[_Span]:
    """Every run of words that is a name."""
    for first in range(len(tokens)):
        for last in range(first, min(first + WINDOW, len(tokens))):
            raw = " ".join(tokens[first : last + 1])
            for form in _forms(raw):
                matches = graph.exact(form, limit=NAMESAKES)
                if matches:
                    weak = _is_all_common(form)
                    weight = _WEAK if weak else 1.0
                    # Of namesakes the one that is written just so comes first: Taxi the film, taxi the keyword.
                    found = [
                        EntityMention(form, match.entity, weight * (1.0 if match.entity.label in (form, raw) else 0.95))
                        for match in matches
                    ]
                    found.sort(key=lambda mention: -mention.weight)
                    yield _Span(first, last, form, tuple(found), weak)
                    break


def _forms(raw: str) -> Iterator[str]:
    """How a run of words may be written as a name: as it stands, without what ends a sentence, without its marks."""
    seen: set[str] = set()
    trimmed = raw.rstrip("?,;:")
    forms = (raw, trimmed, trimmed.rstrip(".!"), raw.strip("\"'“”‘’«»()?!.,;:"), _EDGE.sub("", raw), _owner(trimmed))
    for form in (*forms, " ".join(split(raw))):
        if form and (folded := fold(form)) not in seen:
            seen.add(folded)
            yield form


def _owner(text: str) -> str:
    """`Ponyo's` is about Ponyo."""
    return re.sub(r"['’]s?$", "", text)


def _is_common(word: str) -> bool:
    return word in STOP_WORDS or word.isdigit() or stem(word) in _EVERYDAY or is_relation_word(stem(word))


def _choose(spans: Iterator[_Span]) -> list[_Span]:
    """The longest names first, and none that shares a word with one that was taken."""
    taken: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.weak, span.first - span.last, -len(span.text), span.first)):
        if not any(span.overlaps(other) for other in taken):
            taken.append(span)
    return taken


def _near_mentions(tokens: Sequence[str], graph: Graph) -> list[EntityMention]:
    """Names that are nearly in the question: with typos, and else by their words."""
    runs = sorted(set(_runs(tokens)), key=lambda run: -len(run))[:_NEARLY]
    for way, weight in ((graph.typo, 0.9), (graph.words, 0.5)):
        found = [EntityMention(run, match.entity, weight * match.score) for run in runs for match in way(run, limit=3)]
        if found:
            return sorted(found, key=lambda mention: -mention.weight)[:MENTIONS]
    return []


def _runs(tokens: Sequence[str]) -> Iterator[str]:
    """Runs of words that could be a name: what stands between common words, and between words in small letters."""
    for between in (_is_all_common, str.islower):
        run: list[str] = []
        for token in (*tokens, ""):
            word = _EDGE.sub("", token)
            if word and not between(token):
                run.append(word)
                continue
            name = " ".join(run)
            if len(name) > 3 and not _is_all_common(name):
                yield name
            run = []


def _is_all_common(text: str) -> bool:
    return all(_is_common(word) for word in split(text))


BACKEND: Final = "graph"
HONOURS: Final[frozenset[str]] = frozenset()
WHOLE: Final = 400
"""An entity with fewer edges on one side is read as a whole; of a larger one the relations are chosen first."""
HUB_RELATIONS: Final = 16
_ENDS: Final[tuple[End, End]] = ("head", "tail")
THREADS: Final = 2
SECONDS: Final = 20.0
"""For one query, in which the file may answer; it needs milliseconds."""


class KgSource:
    """Triples about the entities that a query names. Safe to share between tasks, and between processes by fork."""

    name = "kg"

    def __init__(
        self,
        path: Path,
        card: GraphCard,
        *,
        packed: bool = True,
        triples: int = LIMIT,
        tokens: int = TOKENS,
        threads: int = THREADS,
    ) -> None:
        """Take a file that `open` has checked.

        Args:
            path: of the graph file.
            card: what it says of itself.
            packed: False makes a passage of each triple, as a filter wants them.
            triples: how many are given for one query at most.
            tokens: how long their passages may be together, by estimate.
            threads: how many queries are answered at the same time.
        """
        self.path = path
        self.card = card
        self._packed = packed
        self._triples = triples
        self._tokens = tokens
        self._threads = threads
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._free: list[Graph] = []

    @classmethod
    def open(cls, path: Path, *, packed: bool = True) -> Self:
        """Open a graph file; `packed=False` makes a passage of each triple.

        Raises:
            SetupError: there is none, or it cannot be used.
        """
        graph = Graph.open(path)
        try:
            return cls(path, graph.card, packed=packed)
        finally:
            graph.close()

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages, each with the triples of one entity and one relation.

        Raises:
            SourceError: the file can no longer be read.
        """
        loop = asyncio.get_running_loop()
        try:
            ranked = await loop.run_in_executor(self._executor(), self.find, request.query)
        except SetupError as error:
            raise SourceError(str(error)) from error
        notes = unhonoured(request.filters, honours=HONOURS, by="the knowledge graph")
        passages = to_passages(ranked, limit=request.limit, source=self.name, packed=self._packed)
        return SearchResult(tuple(passages), backend=BACKEND, notes=notes)

    def find(self, query: str) -> list[GraphTriple]:
        """Give the triples that fit a query, best first. Blocks for some milliseconds; any thread may call it.

        Raises:
            SetupError: the file is damaged, or can no longer be read.
        """
        graph = self._borrow()
        graph.begin(SECONDS)
        try:
            mentions = find_mentions(query, graph)
            found = [triple for mention in mentions for triple in _one_hop(graph, mention, query)]
            aliases = {relation.label: relation.aliases for relation in graph.relations.values() if relation.aliases}
            return rank_triples(query, found, limit=self._triples, tokens=self._tokens, aliases=aliases)
        finally:
            graph.end()
            with self._lock:
                self._free.append(graph)

    async def aclose(self) -> None:
        """Let the threads end and close the file."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)
        with self._lock:
            while self._free:
                self._free.pop().close()

    def _executor(self) -> ThreadPoolExecutor:
        self._notice_fork()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="cairn-kg")
        return self._pool

    def _borrow(self) -> Graph:
        self._notice_fork()
        with self._lock:
            if self._free:
                return self._free.pop()
        return Graph.open(self.path)

    def _notice_fork(self) -> None:
        """A child of a fork has its parent's connections, which it must not use, and none of its threads."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.Lock()
            self._pool = None
            self._free = []


def triples_of(
    graph: Graph, entity: GraphEntity, *, relations: Sequence[int] | None = None, limit: int = LIMIT
) -> list[GraphTriple]:
    """One hop from an entity, out and in, each with at most `limit` triples; along some relations only, or all."""
    mention = EntityMention("", entity, 1.0)
    found: list[GraphTriple] = []
    for end in _ENDS:
        if relations is None:
            edges = graph.edges(entity.id, end, limit=limit)
        else:
            edges = graph.edges_by(entity.id, end, relations, limit=limit)[:limit]
        found += [_triple(graph, mention, end, edge) for edge in edges]
    return found


def _one_hop(graph: Graph, mention: EntityMention, query: str) -> list[GraphTriple]:
    """The triples around a mention; of an entity with very many, those of the relations that fit the query."""
    return [_triple(graph, mention, end, edge) for end in _ENDS for edge in _edges(graph, mention, end, query)]


def _edges(graph: Graph, mention: EntityMention, end: End, query: str) -> list[GraphEdge]:
    entity = mention.entity.id
    edges = graph.edges(entity, end, limit=WHOLE)
    if len(edges) < WHOLE:
        return edges
    named = [graph.relations[number] for number in graph.relations_of(entity, end)]
    aliases = {relation.label: relation.aliases for relation in named}
    numbers = {relation.label: relation.id for relation in named}
    shells = [GraphTriple(mention.entity.label, label, "", mention=mention.text) for label in numbers]
    best = rank_triples(query, shells, limit=HUB_RELATIONS, tokens=1_000_000, aliases=aliases)
    return graph.edges_by(entity, end, [numbers[shell.relation] for shell in best], limit=LIMIT)


def _triple(graph: Graph, mention: EntityMention, end: End, edge: GraphEdge) -> GraphTriple:
    entity = mention.entity
    known, news = (entity.label, _id(entity.key, entity.label)), (edge.label, _id(edge.key, edge.label))
    head, tail = (known, news) if end == "head" else (news, known)
    relation = graph.relations[edge.relation].label
    return GraphTriple(head[0], relation, tail[0], head[1], tail[1], end, mention.weight, mention.text)


def _id(key: str, label: str) -> str:
    return key if key != label else ""
