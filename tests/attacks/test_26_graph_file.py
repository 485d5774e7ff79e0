"""Finding 26: a graph file with endless views, triggers, or values of other kinds."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.product import Product

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


def endless_view(table: str, columns: str) -> Callable[[sqlite3.Connection], None]:
    def harm(db: sqlite3.Connection) -> None:
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        db.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {columns} FROM n WHERE x < 0")

    return harm


def blob(table: str, column: str, value: str = "x'ff00'") -> Callable[[sqlite3.Connection], None]:
    def harm(db: sqlite3.Connection) -> None:
        db.execute(f"UPDATE {table} SET {column} = {value}")

    return harm


def trigger(db: sqlite3.Connection) -> None:
    db.execute("CREATE TRIGGER t AFTER INSERT ON card BEGIN DELETE FROM entity; END")


def endless_aliases(db: sqlite3.Connection) -> None:
    db.execute("UPDATE relation SET aliases = ?", ("[" * 500_000,))


def other_table(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE edge_in")
    db.execute("CREATE VIRTUAL TABLE edge_in USING fts5(tail, relation, head)")


def lost_relation(db: sqlite3.Connection) -> None:
    db.execute("UPDATE relation SET id = id + 1000")


HARMS = {
    "relations without end": endless_view("relation", "x AS id, 'k' AS key, 'l' AS label, '[]' AS aliases"),
    "names without end": endless_view("name", "x AS id, x AS entity, 'lina orr' AS folded"),
    "card without end": endless_view("card", "'{}' AS text"),
    "bytes as label": blob("entity", "label"),
    "bytes as key": blob("entity", "key"),
    "bytes as number": blob("entity", "degree"),
    "text as number": blob("entity", "degree", "'many'"),
    "bytes in the card": blob("card", "text"),
    "a label of megabytes": blob("entity", "label", "hex(zeroblob(2000000))"),
    "a label of 20 megabytes": blob("entity", "label", "hex(zeroblob(10000000))"),
    "bytes in a relation": blob("relation", "label"),
    "a trigger": trigger,
    "aliases without end": endless_aliases,
    "another table": other_table,
    "lost relations": lost_relation,
}


@pytest.fixture
def graph(product: Product, tmp_path: Path) -> Path:
    (tmp_path / "t.tsv").write_text("Aurora\tdirector\tLina Orr\nLina Orr\tborn in\tTrieste\n", encoding="utf-8")
    done = product.run("kg", "build", "t.tsv", "--out", "g.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "g.db"


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_harmed_graph_is_refused_in_a_sentence(
    product: Product, graph: Path, harm: Callable[[sqlite3.Connection], None]
) -> None:
    db = sqlite3.connect(graph)
    harm(db)
    db.commit()
    db.close()
    done = product.run("kg", "lookup", "g.db", "Lina Orr", cwd=graph.parent, seconds=20)
    assert done.returncode != 0
    assert "the graph g.db cannot be read" in done.stderr
    assert "build it again" in done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
