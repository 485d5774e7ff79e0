import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from tests.agent.sources.kg.graphs import FILMS, write_tsv


@pytest.fixture
def graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    triples = write_tsv(tmp_path / "films.tsv", FILMS)
    assert run(["kg", "build", str(triples), "--out", str(tmp_path / "films.kg")]) == 0
    capsys.readouterr()
    return str(tmp_path / "films.kg")


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert not captured.err
    return json.loads(captured.out)


def test_build_prints_what_it_made_and_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triples, out = write_tsv(tmp_path / "films.tsv", FILMS), tmp_path / "films.kg"
    assert run(["kg", "build", str(triples), "--out", str(out)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{out}: 13 triples of 15 entities and 7 relations, ")
    assert second == f'next: cairn kg lookup {out} "a name"'


def test_build_as_json_prints_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triples, out = write_tsv(tmp_path / "films.tsv", FILMS), tmp_path / "films.kg"
    assert run(["kg", "build", str(triples), "--out", str(out), "--json"]) == 0
    card = printed(capsys)
    assert (card["triples"], card["bad_lines"], card["out"]) == (13, 0, str(out))
    assert card["bytes"] == out.stat().st_size


def test_names_come_from_their_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triples = write_tsv(tmp_path / "t.txt", [["Q1", "P19", "Q2"]])
    aliases = write_tsv(tmp_path / "e.txt", [["Q1", "Lina Orr"], ["Q2", "Trieste"]])
    relations = write_tsv(tmp_path / "r.txt", [["P19", "place of birth", "born in"]])
    out = str(tmp_path / "g.kg")
    named = ["--aliases", str(aliases), "--relations", str(relations)]
    assert run(["kg", "build", str(triples), "--out", out, *named]) == 0
    capsys.readouterr()
    assert run(["kg", "lookup", out, "lina orr", "--relation", "born in"]) == 0
    assert "Lina Orr | place of birth | Trieste" in capsys.readouterr().out


def test_lines_that_are_left_out_are_reported_on_the_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triples = write_tsv(tmp_path / "t.tsv", [["a", "r", "b"], ["a"], ["b"]])
    assert run(["kg", "build", str(triples), "--out", str(tmp_path / "g.kg"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bad_lines"] == 2
    assert "2 lines were skipped; the first is " in captured.err
    assert "line 2: has 1 columns" in captured.err


def test_look_up_shows_the_entity_and_its_triples(graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "lina orr"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Lina Orr  exact · 3 triples"
    assert set(lines[1:]) == {
        "  Lina Orr | place of birth | Trieste",
        "  Lina Orr | place of death | Graz",
        "  Aurora Falls | directed by | Lina Orr",
    }


@pytest.mark.parametrize("relation", ["starred actors", "starred_actors", "starredActors", "Starring actor"])
def test_look_up_can_keep_to_one_relation(relation: str, graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "Aurora Falls", "--relation", relation, "--json"]) == 0
    found = printed(capsys)
    assert {(t["relation"], t["tail"]) for t in found["triples"]} == {
        ("starred_actors", "Tom Vance"),
        ("starred_actors", "Ida Bell"),
    }


def test_a_relation_that_is_not_there_is_said(graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "Aurora Falls", "--relation", "eats"]) == 0
    captured = capsys.readouterr()
    assert "this graph has no relation 'eats'" in captured.err
    assert "|" not in captured.out


def test_look_up_as_json_says_how_each_was_found(graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "Treiste", "--json"]) == 0
    found = printed(capsys)
    assert [(m["label"], m["how"]) for m in found["matches"]] == [("Trieste", "typo")]
    assert {"head": "Trieste", "relation": "country", "tail": "Italy", "found_by": "head"} in found["triples"]


def test_look_up_limits_triples_each_way(graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "Aurora Falls", "--limit", "1", "--json"]) == 0
    assert len(printed(capsys)["triples"]) == 1


def test_nothing_found_is_said(graph: str, capsys: pytest.CaptureFixture[str]):
    assert run(["kg", "lookup", graph, "zzzzzzzz"]) == 0
    assert "No entity has this name" in capsys.readouterr().out


def test_names_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triples = write_tsv(tmp_path / "t.tsv", [["a\x1b[31mb", "r[red]", "[bold]c"]])
    assert run(["kg", "build", str(triples), "--out", str(tmp_path / "g.kg")]) == 0
    capsys.readouterr()
    assert run(["kg", "lookup", str(tmp_path / "g.kg"), "[bold]c"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "a[31mb | r[red] | [bold]c" in out


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["lookup", "none.kg", "x"], 1, "build one with: cairn kg build"),
        (["lookup", "none.kg", "  "], 2, "the entity is empty"),
        (["build", "none.tsv", "--out", "g.kg"], 1, "none.tsv cannot be read: No such file"),
        (["build", "none.tsv"], 2, "--out"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    arguments: list[str],
    status: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert run(["kg", *arguments]) == status
    captured = capsys.readouterr()
    assert sentence in " ".join(captured.err.replace("│", " ").split())
    assert not captured.out
