"""A tiny graph of our own, and how tests build and ask one."""

from collections.abc import Iterable
from pathlib import Path

from agent.sources.kg.build import build_graph
from agent.sources.kg.store import Graph

FILMS = [
    ("Aurora Falls", "directed_by", "Lina Orr"),
    ("Aurora Falls", "starred_actors", "Tom Vance"),
    ("Aurora Falls", "starred_actors", "Ida Bell"),
    ("Aurora Falls", "release_year", "2025"),
    ("Night Ferry", "directed_by", "Ida Bell"),
    ("Night Ferry", "starred_actors", "Tom Vance"),
    ("Night Ferry", "release_year", "2019"),
    ("Lina Orr", "place of birth", "Trieste"),
    ("Lina Orr", "place of death", "Graz"),
    ("Trieste", "country", "Italy"),
    ("Pâté & Sons, Ltd.", "directed_by", "José Ñandú"),
    ("The Writer", "directed_by", "Ann Writer"),
    ("The Writer", "written_by", "Bo Lund"),
]


def write_tsv(path: Path, rows: Iterable[Iterable[str]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_graph(folder: Path, rows: Iterable[Iterable[str]] = FILMS) -> Path:
    out = folder / "graph.kg"
    build_graph([write_tsv(folder / "triples.tsv", rows)], out)
    return out


def facts_of(graph: Graph, name: str) -> set[tuple[str, str, str]]:
    """Every triple around everything that is called `name`."""
    found: set[tuple[str, str, str]] = set()
    for match in graph.exact(name):
        label = match.entity.label
        out, in_ = graph.edges(match.entity.id, "head"), graph.edges(match.entity.id, "tail")
        found |= {(label, graph.relations[e.relation].key, e.label) for e in out}
        found |= {(e.label, graph.relations[e.relation].key, label) for e in in_}
    return found
