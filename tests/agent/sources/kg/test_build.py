import gzip
import io
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.errors import SetupError
from agent.sources.kg.build import BuildProgress, build_graph
from agent.sources.kg.store import Graph
from tests.agent.sources.kg.graphs import FILMS, facts_of, make_graph, write_tsv

ALIASES = "Q1\tlina orr\tL. Orr\tLina\nQ2\ttrieste\nQ9\tnobody\n"
RELATIONS = "P19\tplace of birth\tborn in\tbirthplace\n"
names = st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip()) and "|" not in text and not text.startswith(("{", "\ufeff"))
)


def tar_of(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"folder/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


@settings(max_examples=40)
@example(rows=[("¯", "r", "\u0301"), ("'", "r", '"'), ("a; b", "r", "%_*"), ("0", "0", "0\ufeff")])
@given(rows=st.lists(st.tuples(names, names, names), min_size=1, max_size=12))
def test_every_triple_is_found_out_and_in(rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory):
    graph = Graph.open(make_graph(tmp_path_factory.mktemp("kg"), rows))
    clean = {tuple(" ".join(cell.split()) for cell in row) for row in rows}
    for row in clean:
        assert row in facts_of(graph, row[0])
        assert row in facts_of(graph, row[2])
    assert graph.card.triples == len(clean)
    graph.close()


def test_the_card_says_what_is_in_the_file(tmp_path: Path):
    out = tmp_path / "graph.kg"
    card = build_graph([write_tsv(tmp_path / "t.tsv", [*FILMS, FILMS[0]])], out)
    assert (card.triples, card.relations, card.bad_lines, card.first_bad) == (len(FILMS), 7, 0, "")
    assert card.inputs[0].name == "t.tsv"
    graph = Graph.open(out)
    assert graph.card == card
    graph.close()


def test_bad_lines_are_counted_and_the_first_is_named(tmp_path: Path):
    file = tmp_path / "t.tsv"
    file.write_bytes(b'a\tr\tb\nonly two\tcolumns\n\na\t\tb\n\xff\xfe\tr\tb\na\tr\tb\0\n{"h": "a"}\nc\tr\td\n')
    card = build_graph([file], tmp_path / "g.kg")
    assert (card.triples, card.bad_lines) == (2, 5)
    assert card.first_bad == f"{file}, line 2: has 2 columns instead of 3 (head, relation, tail)"


def test_a_line_without_an_end_is_one_bad_line(tmp_path: Path):
    file = tmp_path / "t.tsv"
    file.write_bytes(b"a\tr\tb\n" + b"x" * 2_500_000 + b"\nc\tr\td\n")
    card = build_graph([file], tmp_path / "g.kg")
    assert (card.triples, card.bad_lines) == (2, 1)


def test_nothing_but_bad_lines_is_refused_and_leaves_nothing(tmp_path: Path):
    with pytest.raises(SetupError, match=r"no triple .* first bad line is .*, line 1: has 1 columns"):
        build_graph([write_tsv(tmp_path / "t.tsv", [["a"]])], tmp_path / "g.kg")
    assert [path.name for path in tmp_path.iterdir()] == ["t.tsv"]


@pytest.mark.parametrize("text", ["a|r|b\n", '{"h": "a", "r": "r", "t": "b"}\n', "\ufeffa\tr\tb\r\n"])
def test_bars_json_and_windows_files_are_read(text: str, tmp_path: Path):
    file = tmp_path / "t.txt"
    file.write_text(text, encoding="utf-8", newline="")
    build_graph([file], tmp_path / "g.kg")
    graph = Graph.open(tmp_path / "g.kg")
    assert facts_of(graph, "a") == {("a", "r", "b")}
    graph.close()


def test_json_lines_may_name_identifiers_and_aliases(tmp_path: Path):
    file = tmp_path / "t.jsonl"
    file.write_text('{"h": "Lina Orr", "r": "born", "t": "Graz", "h_id": "Q1", "h_aliases": ["L. Orr"]}\n')
    build_graph([file], tmp_path / "g.kg")
    graph = Graph.open(tmp_path / "g.kg")
    for name in ("lina orr", "L. Orr", "l orr", "Q1"):
        assert facts_of(graph, name) == {("Lina Orr", "born", "Graz")}
    graph.close()


def test_wikidata_files_are_read_out_of_their_tars(tmp_path: Path):
    triples = tar_of(tmp_path / "t.tar.gz", {"w_train.txt": "Q1\tP19\tQ2\n", "w_test.txt": "Q1\tP20\tQ3\n"})
    aliases = tar_of(tmp_path / "a.tar.gz", {"w_entity.txt": ALIASES, "w_relation.txt": RELATIONS})
    card = build_graph([triples], tmp_path / "g.kg", aliases=aliases)
    assert (card.triples, card.entities, card.relations, card.bad_lines) == (2, 3, 2, 0)
    graph = Graph.open(tmp_path / "g.kg")
    for name in ("Lina", "l. orr", "L Orr", "Q1"):
        assert facts_of(graph, name) == {("lina orr", "P19", "trieste"), ("lina orr", "P20", "Q3")}
    assert {(r.label, r.aliases) for r in graph.relations.values()} == {
        ("place of birth", ("born in", "birthplace")),
        ("P20", ()),
    }
    assert not graph.exact("no one")
    graph.close()


def test_gzipped_files_are_read(tmp_path: Path):
    file = tmp_path / "t.tsv.gz"
    file.write_bytes(gzip.compress(b"a\tr\tb\n"))
    assert build_graph([file], tmp_path / "g.kg").triples == 1


@pytest.mark.parametrize("name", ["t.tsv.gz", "t.tar.gz", "missing.tsv"])
def test_a_file_that_cannot_be_read_is_named_and_the_old_graph_stays(name: str, tmp_path: Path):
    out = make_graph(tmp_path)
    before = out.read_bytes()
    file = tmp_path / name
    if not name.startswith("missing"):
        file.write_bytes(gzip.compress(b"a\tr\tb\n" * 1000)[:-20])
    with pytest.raises(SetupError, match=f"{name} cannot be read"):
        build_graph([file], out)
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_is_no_graph_is_not_replaced(tmp_path: Path):
    out = tmp_path / "notes.txt"
    out.write_text("mine" * 100)
    with pytest.raises(SetupError, match="is not a graph; choose another --out"):
        build_graph([write_tsv(tmp_path / "t.tsv", FILMS)], out)
    with pytest.raises(SetupError, match="is a folder"):
        build_graph([tmp_path / "t.tsv"], tmp_path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(SetupError, match="is not a graph"):
        build_graph([tmp_path / "t.tsv"], other)


def test_progress_only_goes_forward(tmp_path: Path):
    reported: list[BuildProgress] = []
    build_graph([write_tsv(tmp_path / "t.tsv", FILMS)], tmp_path / "g.kg", progress=reported.append)
    assert reported[0].stage == "reading triples"
    assert [far.done for far in reported] == sorted(far.done for far in reported)
    assert reported[-1].done <= reported[-1].total


BUILD_AND_STOP = """
import sys, time
from pathlib import Path
from agent.sources.kg.build import build_graph

def wait(far):
    if far.stage == sys.argv[3]:
        print("there", flush=True)
        time.sleep(60)

build_graph([Path(sys.argv[1])], Path(sys.argv[2]), progress=wait)
"""


@pytest.mark.parametrize("stage", ["reading triples", "linking", "indexing"])
@pytest.mark.parametrize("old", [False, True])
def test_a_killed_build_leaves_the_old_graph_or_none(stage: str, old: bool, tmp_path: Path):
    out = make_graph(tmp_path) if old else tmp_path / "graph.kg"
    before = out.read_bytes() if old else b""
    triples = write_tsv(tmp_path / "new.tsv", [["new", "r", "thing"]])
    command = [sys.executable, "-c", BUILD_AND_STOP, str(triples), str(out), stage]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        assert list(tmp_path.glob(".graph.kg.building-*"))
        build_graph([triples], tmp_path / "graph.kg.other")
        os.kill(process.pid, signal.SIGKILL)
    assert (out.read_bytes() if out.exists() else b"") == before
    assert list(tmp_path.glob(".graph.kg.building-*")), "a killed process cleans nothing up"
    build_graph([triples], out)
    assert not list(tmp_path.glob(".*")), "the next build does"
    graph = Graph.open(out)
    assert facts_of(graph, "new") == {("new", "r", "thing")}
    graph.close()


def test_a_build_leaves_another_one_that_runs_alone(tmp_path: Path):
    triples = write_tsv(tmp_path / "new.tsv", [["new", "r", "thing"]])
    out = tmp_path / "graph.kg"
    command = [sys.executable, "-c", BUILD_AND_STOP, str(triples), str(out), "linking"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        build_graph([triples], out)
        assert list(tmp_path.glob(".graph.kg.building-*/scratch.sqlite"))
        process.kill()


def test_an_interrupt_cleans_up(tmp_path: Path):
    triples = write_tsv(tmp_path / "new.tsv", [["new", "r", "thing"]])
    command = [sys.executable, "-c", BUILD_AND_STOP, str(triples), str(tmp_path / "graph.kg"), "naming"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(10)
        assert time.monotonic() - started < 10
    assert [path.name for path in tmp_path.iterdir()] == ["new.tsv"]
