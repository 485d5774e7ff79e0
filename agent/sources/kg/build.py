"""Triples into one SQLite file: entities by how often they are named, edges both ways, names four ways.

Sorting is SQLite's, on the disk, so memory stays bounded; queries of the file are in `store`. The file appears
when it is whole: whatever ends the work before leaves what was there.
"""

import json
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

from agent.errors import SetupError
from agent.sources.kg.reader import RawNames, RawTriple, ReadTally, digest, has_member, read_names, read_triples
from agent.sources.kg.schema import APPLICATION_ID, INDEX, LABEL, LINK, NUMBER, RAW, SCHEMA, GraphCard, Input
from agent.sources.kg.spelling import SpellingWriter
from agent.sources.kg.words import fold, split

_T = TypeVar("_T")

CACHE_KIB: Final = 96 * 1024
_BATCH: Final = 50_000


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is."""

    stage: str
    lines: int = 0
    """Read so far in all."""
    done: float = 0.0
    total: float = 1.0
    """Of the whole work, by the share of time that each stage takes."""


_SHARES: Final = {
    "reading triples": 0.18,
    "reading names": 0.04,
    "numbering": 0.10,
    "linking": 0.16,
    "labelling": 0.03,
    "naming": 0.33,
    "indexing": 0.16,
}
"""Of the time: what a graph of 5 million triples and 1.4 million names took."""


def _silent(progress: BuildProgress) -> None:
    """No one watches."""


def build_graph(
    triples: Sequence[Path],
    out: Path,
    *,
    aliases: Path | None = None,
    relations: Path | None = None,
    progress: Callable[[BuildProgress], None] = _silent,
) -> GraphCard:
    """Build a graph file; one that is there already is replaced in one step.

    Args:
        triples: files of head, relation, tail.
        out: the graph file.
        aliases: names of entities: key and names with tabs between; a tar may hold those of relations, too.
        relations: names of relations, in the same form.
        progress: takes now and then how far it is.

    Raises:
        SetupError: a file that cannot be read or written, or no triple in all of them.
    """
    _refuse_strange(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out)
        folder = out.parent / f".{out.name}.building-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
    except OSError as error:
        raise SetupError(f"the graph cannot be written to {out}: {error.strerror or error}") from error
    if relations is None and aliases is not None and has_member(aliases, "relation"):
        relations = aliases
    try:
        with _Building(folder, progress) as building:
            card = building.run(triples, aliases=aliases, relations=relations)
        _sync(folder / _GRAPH)
        (folder / _GRAPH).replace(out)
    except sqlite3.Error as error:
        if "interrupted" in str(error):  # SQLite swallows what was raised in its progress handler
            raise KeyboardInterrupt from error
        raise SetupError(f"the graph cannot be written to {out}: {error}; is there room on the disk?") from error
    except OSError as error:
        raise SetupError(f"the graph cannot be written to {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return card


_GRAPH: Final = "graph.sqlite"
_SCRATCH: Final = "scratch.sqlite"


def _sync(file: Path) -> None:
    """Wait until a file is on the disk: after a power cut, its name must not mean half of it."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _refuse_strange(out: Path) -> None:
    if out.is_dir():
        raise SetupError(f"{out} is a folder; --out names the graph file itself")
    if not out.exists() or not out.stat().st_size:
        return
    with out.open("rb") as file:
        header = file.read(72)
    if header[:15] != b"SQLite format 3" or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise SetupError(f"{out} exists and is not a graph; choose another --out")


def _sweep(out: Path) -> None:
    """Remove what killed builds left beside `out`. A build that runs holds a lock, which ends with its process."""
    for folder in out.parent.glob(f".{out.name}.building-*"):
        if not _is_held(folder / _SCRATCH):
            shutil.rmtree(folder, ignore_errors=True)


def _is_held(scratch: Path) -> bool:
    if not scratch.exists():
        return False
    connection = sqlite3.connect(scratch, timeout=0)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
    return False


def _let_signals_in() -> None:
    """Ctrl-C is noticed where Python runs, and some statements run for minutes."""


class _Building:
    """One build in its own folder: the graph, and a scratch file that is thrown away."""

    def __init__(self, folder: Path, progress: Callable[[BuildProgress], None]) -> None:
        self._progress = progress
        self._stage = ""
        self._total = 0
        self._bytes_before = 0
        self._named = 0
        self._tally = ReadTally(tick=self._report)
        self._reported = 0.0
        self._db = sqlite3.connect(folder / _GRAPH, isolation_level=None)
        # Nothing else reads these files and a broken build is thrown away: no journal, no waiting for the disk.
        for pragma in ("main.page_size = 4096", "locking_mode = EXCLUSIVE", "synchronous = OFF", "threads = 1"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("ATTACH DATABASE ? AS raw", (str(folder / _SCRATCH),))
        for schema in ("main", "raw"):
            self._db.execute(f"PRAGMA {schema}.journal_mode = OFF")
            self._db.execute(f"PRAGMA {schema}.cache_size = -{CACHE_KIB // 2}")
        self._db.execute(f"PRAGMA main.application_id = {APPLICATION_ID}")
        self._db.executescript(SCHEMA + RAW)
        self._db.set_progress_handler(_let_signals_in, 1_000_000)

    def __enter__(self) -> "_Building":
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def run(self, triples: Sequence[Path], *, aliases: Path | None, relations: Path | None) -> GraphCard:
        paths = list(dict.fromkeys((*triples, *(path for path in (aliases, relations) if path is not None))))
        inputs = tuple(Input(name=path.name, sha256=digest(path)) for path in paths)
        self._begin("reading triples", total=sum(path.stat().st_size for path in triples))
        keys = self._read_triples(triples)
        if aliases is not None:
            self._begin("reading names", total=aliases.stat().st_size)
            self._add_called(_called(read_names(aliases, self._tally, part="entity")))
        self._write_relations(keys, relations)
        for stage, script in (("numbering", NUMBER), ("linking", LINK), ("labelling", LABEL)):
            self._begin(stage)
            self._db.executescript(f"BEGIN; {script} COMMIT;")
        self._begin("naming", total=self._count("entity"))
        self._write_names()
        self._begin("indexing")
        self._db.executescript(f"BEGIN; {INDEX} COMMIT;")
        card = GraphCard(
            triples=self._count("edge_out"),
            entities=self._count("entity"),
            relations=len(keys),
            names=self._count("name"),
            bad_lines=self._tally.bad,
            first_bad=self._tally.first_bad,
            inputs=inputs,
        )
        self._db.execute("INSERT INTO card VALUES (?)", (card.model_dump_json(),))
        return card

    def _read_triples(self, paths: Sequence[Path]) -> dict[str, int]:
        """Put all triples into the scratch file; gives the relations with their numbers."""
        numbers: dict[str, int] = {}

        def rows(batch: list[RawTriple]) -> Iterator[tuple[str, int, str]]:
            for triple in batch:
                yield triple.head, numbers.setdefault(triple.relation, len(numbers) + 1), triple.tail

        self._db.execute("BEGIN")
        for path in paths:
            for batch in _batches(read_triples(path, self._tally)):
                self._db.executemany("INSERT INTO raw.triple VALUES (?, ?, ?)", rows(batch))
                self._insert_called(_inline_names(batch))
        self._db.execute("COMMIT")
        if not numbers:
            bad = f"; the first bad line is {self._tally.first_bad}" if self._tally.bad else ""
            raise SetupError(f"there is no triple in {', '.join(map(str, paths))}{bad}")
        return numbers

    def _add_called(self, rows: Iterable[tuple[str, int, str]]) -> None:
        self._db.execute("BEGIN")
        for batch in _batches(rows):
            self._insert_called(batch)
        self._db.execute("COMMIT")

    def _insert_called(self, rows: Iterable[tuple[str, int, str]]) -> None:
        self._db.executemany("INSERT INTO raw.called VALUES (?, ?, ?)", rows)

    def _write_relations(self, numbers: dict[str, int], path: Path | None) -> None:
        names: dict[str, tuple[str, ...]] = {}
        if path is not None:
            found = read_names(path, ReadTally(), part="relation")
            names = {row.key: row.names for row in found if row.key in numbers}
        rows = ((number, key, *_label_and_others(key, names.get(key, ()))) for key, number in numbers.items())
        self._db.executemany("INSERT INTO relation VALUES (?, ?, ?, ?)", rows)

    def _write_names(self) -> None:
        """Fold all names, the often named entities' first: the order of names is the order of entities."""
        spelling = SpellingWriter(self._db)
        self._db.execute("BEGIN")
        number = 0
        for batch in _batches(self._folded()):
            rows = [(number + at, entity, folded) for at, (entity, folded) in enumerate(batch, start=1)]
            number += len(rows)
            self._named = batch[-1][0]
            self._db.executemany("INSERT INTO name VALUES (?, ?, ?)", rows)
            for at, _, folded in rows:
                spelling.add(at, folded)
            self._report()
        spelling.flush()
        self._db.execute("COMMIT")

    def _folded(self) -> Iterator[tuple[int, str]]:
        """Each entity's names, folded and distinct, with and without punctuation."""
        reader = self._db.execute(
            "SELECT entity.id, coalesce(named.name, entity.key) FROM entity "
            "LEFT JOIN raw.named ON named.id = entity.id ORDER BY entity.id, named.place"
        )
        last = 0
        seen: set[str] = set()
        for entity, name in reader:
            if entity != last:
                last = entity
                seen.clear()
            folded = fold(name)
            for form in (folded, " ".join(split(folded))):
                if form and form not in seen:
                    seen.add(form)
                    yield entity, form

    def _count(self, table: str) -> int:
        return self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def _begin(self, stage: str, *, total: int = 0) -> None:
        self._stage = stage
        self._total = total
        self._bytes_before = self._tally.bytes
        self._reported = 0.0
        self._report()

    def _report(self) -> None:
        if perf_counter() - self._reported < 0.1:
            return
        self._reported = perf_counter()
        names = list(_SHARES)
        before = sum(_SHARES[name] for name in names[: names.index(self._stage)])
        part = min(self._part(), 1.0) * _SHARES[self._stage]
        self._progress(BuildProgress(self._stage, lines=self._tally.read, done=before + part))

    def _part(self) -> float:
        """How much of a stage is done: of reading, by bytes; of naming, by names; else it is not known."""
        if self._stage.startswith("reading"):
            return (self._tally.bytes - self._bytes_before) / max(self._total, 1)
        return self._named / max(self._total, 1) if self._stage == "naming" else 0.0


def _batches(rows: Iterable[_T]) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _inline_names(batch: Iterable[RawTriple]) -> Iterator[tuple[str, int, str]]:
    """Names in the triples themselves."""
    for triple in batch:
        for key, names in ((triple.head, triple.head_names), (triple.tail, triple.tail_names)):
            for place, name in enumerate(names):
                yield key, place, name


def _called(rows: Iterable[RawNames]) -> Iterator[tuple[str, int, str]]:
    for row in rows:
        for place, name in enumerate(row.names):
            yield row.key, place, name


def _label_and_others(key: str, names: tuple[str, ...]) -> tuple[str, str]:
    label = names[0] if names else key
    return label, json.dumps([name for name in names if name != label], ensure_ascii=False)
