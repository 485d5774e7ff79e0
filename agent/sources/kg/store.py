"""A graph file, opened for reading: names exactly, by prefix, by words and with typos; one hop out and in.

One connection for one thread; `source` shares a file between tasks. Every answer reads a bounded number of rows,
however often a name or an entity occurs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from pydantic import BaseModel, TypeAdapter, ValidationError

from agent.errors import SetupError
from agent.sources.kg.database import GraphDatabase
from agent.sources.kg.schema import FORMAT, GraphCard
from agent.sources.kg.triples import End
from agent.sources.kg.words import fold, readable, split, stem

SCAN: Final = 256
"""Rows that a prefix or words may read; of these the best are given."""
LIKENESS: Final = 0.7
"""A name that is less alike is another name, not a typo: one edit in four letters is 0.75."""
LONGEST: Final = 200
"""Characters of a text that is looked up by words or with typos; a longer one is no name."""
RELATIONS: Final = 256
"""Distinct relations of one entity that are looked at."""
MOST_RELATIONS: Final = 1_000_000
"""Of a graph: all of them are kept in memory."""

How = Literal["exact", "prefix", "words", "typo"]
_EDGES: Final = {"head": ("edge_out", "head", "tail"), "tail": ("edge_in", "tail", "head")}
_NAMES: Final = TypeAdapter(tuple[str, ...])


class GraphEntity(NamedTuple):
    """One entity; the more it is named, the lower its number."""

    id: int
    key: str
    """An identifier as Q42, or the label itself."""
    label: str
    degree: int
    """How many lines of triples name it."""


class NameMatch(NamedTuple):
    """An entity that a text may mean."""

    entity: GraphEntity
    name: str
    """The folded name that was found."""
    how: How
    score: float
    """How alike text and name are, from 0 to 1."""


class GraphRelation(NamedTuple):
    """A relation, with its other names."""

    id: int
    key: str
    label: str
    aliases: tuple[str, ...]

    def is_called(self, text: str) -> bool:
        """Whether one of its names is `text`, but for case, accents, endings and how words are joined."""
        wanted = _joined(text)
        return any(_joined(name) == wanted for name in (self.key, self.label, *self.aliases))


class GraphEdge(NamedTuple):
    """One hop: the relation's number, and the entity at the other end."""

    relation: int
    id: int
    key: str
    label: str


class _Version(BaseModel):
    """What a card of any version has."""

    version: int


@dataclass(frozen=True)
class Graph:
    """A graph file for one thread at a time."""

    path: Path
    card: GraphCard
    relations: dict[int, GraphRelation]
    _db: GraphDatabase

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a graph file.

        Raises:
            SetupError: there is none, or it is none, or one of another version.
        """
        if not path.exists():
            raise SetupError(f"no graph at {path}; build one with: cairn kg build TRIPLES --out {path}")
        db = GraphDatabase.open(path)
        try:
            return cls(path, _card(db, path), _relations(db), db)
        except BaseException:
            db.close()
            raise

    def begin(self, seconds: float) -> None:
        """Let queries from now until `end` take this long together; then they are refused as a `SetupError`."""
        self._db.begin(seconds)

    def end(self) -> None:
        self._db.end()

    def close(self) -> None:
        self._db.close()

    def exact(self, name: str, *, limit: int = 16) -> list[NameMatch]:
        """Entities that are called so but for case and accents, the often named ones first."""
        folded = fold(name)
        sql = "SELECT entity FROM name WHERE folded = ? ORDER BY entity LIMIT ?"
        rows = self._db.rows(sql, (folded, limit), kinds="i")
        found = [NameMatch(self.entity(entity), folded, "exact", 1.0) for (entity,) in rows]
        return found or self._by_key(name)

    def prefix(self, start: str, *, limit: int = 16) -> list[NameMatch]:
        """Entities with a name that starts so, the often named ones first."""
        folded = fold(start)
        if not folded:
            return []
        rows = self._db.rows(
            "SELECT folded, entity FROM name WHERE folded >= ? AND folded < ? ORDER BY folded, entity LIMIT ?",
            (folded, folded + "\U0010ffff", SCAN),
            kinds="si",
        )
        best = _distinct(sorted(rows, key=lambda row: row[1]), limit)
        return [NameMatch(self.entity(entity), name, "prefix", len(folded) / len(name)) for name, entity in best]

    def words(self, text: str, *, limit: int = 16) -> list[NameMatch]:
        """Entities with a name that holds every word, those with the fewest other words first."""
        words = sorted(set(split(text[:LONGEST])))
        if not words:
            return []
        rows = self._db.rows(
            "SELECT name.folded, name.entity FROM word CROSS JOIN name ON name.id = word.rowid "
            "WHERE word MATCH ? ORDER BY word.rowid LIMIT ?",
            (" AND ".join(f'"{word}"' for word in words), SCAN),
            kinds="si",
        )
        best = _distinct(sorted(rows, key=lambda row: (len(row[0].split()), row[1])), limit)
        share = [(name, entity, min(len(words) / len(name.split()), 1.0)) for name, entity in best]
        return [NameMatch(self.entity(entity), name, "words", score) for name, entity, score in share]

    def typo(self, text: str, *, limit: int = 16, likeness: float = LIKENESS) -> list[NameMatch]:
        """Entities with a name that is spelled nearly so, the most alike first."""
        from rapidfuzz.distance import OSA

        from agent.sources.kg.spelling import alike

        folded = fold(text[:LONGEST])
        numbers: list[int] = alike(self._db.rows, folded).tolist() if folded else []
        sql = f"SELECT folded, entity FROM name WHERE id IN ({','.join('?' * len(numbers))})"
        rows = self._db.rows(sql, numbers, kinds="si")
        scored = [(OSA.normalized_similarity(folded, name, score_cutoff=likeness), name, ent) for name, ent in rows]
        scored = sorted((row for row in scored if row[0] >= likeness), key=lambda row: (-row[0], row[2]))
        likeness_of = {(name, entity): score for score, name, entity in scored}
        best = _distinct([(name, entity) for _, name, entity in scored], limit)
        return [NameMatch(self.entity(entity), name, "typo", likeness_of[name, entity]) for name, entity in best]

    def lookup(self, text: str, *, limit: int = 16) -> list[NameMatch]:
        """Entities that a text may mean: exact names, then beginnings, then words; typos where nothing else fits."""
        found: dict[int, NameMatch] = {}
        for way in (self.exact, self.prefix, self.words, self.typo):
            if way == self.typo and found:
                break
            for match in way(text, limit=limit):
                found.setdefault(match.entity.id, match)
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def entity(self, number: int) -> GraphEntity:
        sql = "SELECT id, key, coalesce(label, key), degree FROM entity WHERE id = ?"
        rows = self._db.rows(sql, (number,), kinds="issi")
        if not rows:
            raise self._db.damaged(f"there is no entity {number}")
        return GraphEntity(*rows[0])

    def _by_key(self, key: str) -> list[NameMatch]:
        sql = "SELECT id, key, label, degree FROM entity WHERE key = ? AND label IS NOT NULL LIMIT 1"
        rows = self._db.rows(sql, (key.strip(),), kinds="issi")
        return [NameMatch(GraphEntity(*row), row[1], "exact", 1.0) for row in rows]

    def edges(self, entity: int, end: End, *, limit: int = 100) -> list[GraphEdge]:
        """One hop from an entity that stands at `end`: triples in the order of relations, often named ends first."""
        table, here, there = _EDGES[end]
        rows = self._db.rows(
            f"SELECT edge.relation, entity.id, entity.key, coalesce(entity.label, entity.key) FROM {table} AS edge "
            f"CROSS JOIN entity ON entity.id = edge.{there} WHERE edge.{here} = ? "
            f"ORDER BY edge.relation, edge.{there} LIMIT ?",
            (entity, limit),
            kinds="iiss",
        )
        return [self._edge(row) for row in rows]

    def edges_by(self, entity: int, end: End, relations: Sequence[int], *, limit: int = 100) -> list[GraphEdge]:
        """The same along some relations only, with at most `limit` of each."""
        table, here, there = _EDGES[end]
        sql = (
            f"SELECT edge.relation, entity.id, entity.key, coalesce(entity.label, entity.key) FROM {table} AS edge "
            f"CROSS JOIN entity ON entity.id = edge.{there} WHERE edge.{here} = ? AND edge.relation = ? "
            f"ORDER BY edge.{there} LIMIT ?"
        )
        rows = (self._db.rows(sql, (entity, relation, limit), kinds="iiss") for relation in relations)
        return [self._edge(row) for found in rows for row in found]

    def _edge(self, row: tuple[int, int, str, str]) -> GraphEdge:
        edge = GraphEdge(*row)
        if edge.relation not in self.relations:
            raise self._db.damaged(f"there is no relation {edge.relation}")
        return edge

    def relations_of(self, entity: int, end: End) -> list[int]:
        """Which relations an entity has at `end`; skips from one to the next, however many edges there are."""
        table, here, _ = _EDGES[end]
        step = f"SELECT min(relation) FROM {table} WHERE {here} = :entity"
        rows = self._db.rows(
            f"WITH RECURSIVE found (relation) AS ({step} UNION ALL "
            f"SELECT ({step} AND relation > found.relation) FROM found WHERE found.relation IS NOT NULL LIMIT :most) "
            "SELECT relation FROM found WHERE relation IS NOT NULL",
            {"entity": entity, "most": RELATIONS},
            kinds="i",
        )
        return [relation for (relation,) in rows if relation in self.relations]


def _joined(relation: str) -> list[str]:
    return [stem(word) for word in split(readable(relation))]


def _distinct(rows: Sequence[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    """The first name of each entity, for at most `limit` entities."""
    best: dict[int, str] = {}
    for name, entity in rows:
        if entity not in best:
            if len(best) == limit:
                break
            best[entity] = name
    return [(name, entity) for entity, name in best.items()]


def _card(db: GraphDatabase, path: Path) -> GraphCard:
    rows = db.rows("SELECT text FROM card LIMIT 1", kinds="t")
    try:
        version = _Version.model_validate_json(rows[0][0] if rows else "").version
        if version != FORMAT:
            raise SetupError(f"the graph {path} has version {version}, this Cairn reads {FORMAT}: build it again")
        return GraphCard.model_validate_json(rows[0][0])
    except ValidationError as error:
        raise db.damaged("its card is not valid") from error


def _relations(db: GraphDatabase) -> dict[int, GraphRelation]:
    rows = db.rows("SELECT id, key, label, aliases FROM relation LIMIT ?", (MOST_RELATIONS + 1,), kinds="isst")
    if len(rows) > MOST_RELATIONS:
        raise db.damaged(f"it has more than {MOST_RELATIONS:,} relations")
    try:
        return {
            number: GraphRelation(number, key, label, _NAMES.validate_json(aliases))
            for number, key, label, aliases in rows
        }
    except ValidationError as error:
        raise db.damaged("the names of its relations cannot be read") from error
