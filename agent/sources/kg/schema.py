"""What is in a graph file: its tables, how they are filled from a scratch file `raw`, and what its card says."""

from typing import Final

from agent.evidence import Frozen

FORMAT: Final = 1
APPLICATION_ID: Final = 0x4361696B
"""In the file's header: "Caik"."""

SCHEMA: Final = """
CREATE TABLE entity (id INTEGER PRIMARY KEY, key TEXT NOT NULL, label TEXT, degree INTEGER NOT NULL);
CREATE TABLE relation (id INTEGER PRIMARY KEY, key TEXT NOT NULL, label TEXT NOT NULL, aliases TEXT NOT NULL);
CREATE TABLE edge_out (head INTEGER, relation INTEGER, tail INTEGER, PRIMARY KEY (head, relation, tail)) WITHOUT ROWID;
CREATE TABLE edge_in (tail INTEGER, relation INTEGER, head INTEGER, PRIMARY KEY (tail, relation, head)) WITHOUT ROWID;
CREATE TABLE name (id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, folded TEXT NOT NULL);
CREATE TABLE card (text TEXT NOT NULL);
"""
SPELLING: Final = "CREATE TABLE spelling (id INTEGER PRIMARY KEY, names BLOB NOT NULL);"
RAW: Final = """
CREATE TABLE raw.triple (head TEXT, relation INTEGER, tail TEXT);
CREATE TABLE raw.called (key TEXT, place INTEGER, name TEXT);
"""
NUMBER: Final = """
CREATE TABLE raw.counted AS
    SELECT key, count(*) AS degree
    FROM (SELECT head AS key FROM raw.triple UNION ALL SELECT tail FROM raw.triple) GROUP BY key;
INSERT INTO entity (key, degree) SELECT key, degree FROM raw.counted ORDER BY degree DESC, key;
DROP TABLE raw.counted;
CREATE TABLE raw.number (key TEXT PRIMARY KEY, id INTEGER) WITHOUT ROWID;
INSERT INTO raw.number SELECT key, id FROM entity ORDER BY key;
"""
LINK: Final = """
INSERT INTO edge_out
    SELECT DISTINCT h.id, triple.relation, t.id FROM raw.triple
    CROSS JOIN raw.number AS h ON h.key = triple.head CROSS JOIN raw.number AS t ON t.key = triple.tail
    ORDER BY 1, 2, 3;
DROP TABLE raw.triple;
INSERT INTO edge_in SELECT tail, relation, head FROM edge_out ORDER BY 1, 2, 3;
"""
LABEL: Final = """
CREATE TABLE raw.named AS
    SELECT number.id, called.place, called.name
    FROM raw.called CROSS JOIN raw.number ON number.key = called.key ORDER BY 1, 2;
DROP TABLE raw.called;
DROP TABLE raw.number;
UPDATE entity SET label = first.name
    FROM (SELECT id, name, min(place) FROM raw.named GROUP BY id) AS first WHERE entity.id = first.id;
"""
INDEX: Final = """
CREATE INDEX name_folded ON name (folded, entity);
CREATE INDEX entity_key ON entity (key) WHERE label IS NOT NULL;
CREATE VIRTUAL TABLE word USING fts5(folded, content='name', content_rowid='id', tokenize='unicode61');
INSERT INTO word (word) VALUES ('rebuild');
INSERT INTO word (word) VALUES ('optimize');
"""


class Input(Frozen):
    """One file that was read."""

    name: str
    sha256: str


class GraphCard(Frozen):
    """What a graph file says of itself."""

    version: int = FORMAT
    triples: int
    entities: int
    relations: int
    names: int
    """Folded and distinct for each entity; several entities may share one."""
    bad_lines: int
    first_bad: str
    """Where the first line that was left out is, and why; empty where none was."""
    inputs: tuple[Input, ...]
