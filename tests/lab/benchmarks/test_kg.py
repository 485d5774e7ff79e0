import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from agent.cli import run
from agent.settings import load_settings
from agent.sources.kg.build import build_graph
from lab.benchmarks.graphs import alias_of, name_of, write_graph
from lab.benchmarks.kg import measure_answers, misspelled, time_lookups


def test_the_same_seed_writes_the_same_graph(tmp_path: Path):
    texts: list[list[bytes]] = []
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        (tmp_path / folder).mkdir()
        files = write_graph(tmp_path / folder, triples=2000, seed=seed)
        texts.append([path.read_bytes() for path in (files.triples, files.aliases, files.relations)])
    assert texts[0] == texts[1] != texts[2]


def test_a_made_up_graph_has_hubs_and_many_names(tmp_path: Path):
    files = write_graph(tmp_path, triples=20_000)
    tails = [line.split("\t")[2] for line in files.triples.read_text(encoding="utf-8").split("\n") if line]
    counts = sorted((tails.count(tail) for tail in set(tails[:200])), reverse=True)
    assert len(tails) == 20_000
    assert counts[0] > 20 * counts[len(counts) // 2]
    assert len({name_of(number) for number in range(4000)}) > 3500
    assert 0.3 < sum(bool(alias_of(number)) for number in range(1000)) / 1000 < 0.5


@given(st.integers(0, 10_000), st.integers())
def test_a_misspelled_name_is_one_edit_away(number: int, seed: int):
    name = name_of(number)
    assert OSA.distance(name, misspelled(name, random.Random(seed))) <= 1


def test_look_ups_are_timed_and_their_typos_found(tmp_path: Path):
    files = write_graph(tmp_path, triples=3000)
    build_graph([files.triples], tmp_path / "g.kg", aliases=files.aliases, relations=files.relations)
    speed = time_lookups(tmp_path / "g.kg", seed=0, lookups=40)
    assert speed.typo_found_10 > 0.9
    assert 0 < speed.p50_exact_ms <= speed.p99_exact_ms
    assert 0 < speed.p50_typo_ms <= speed.p99_typo_ms
    assert speed.rss_mb > 10


def test_the_command_prints_plain_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAIRN_DATA", str(tmp_path))
    assert run(["bench", "kg", "--triples", "2000", "--lookups", "50", "--json", "--write"]) == 0
    captured = capsys.readouterr()
    figures = json.loads(captured.out)
    assert {"p99_exact_ms", "p99_prefix_ms", "p99_edges_ms", "p99_typo_ms", "rss_mb", "build_s", "file_mb"} <= set(
        figures
    )
    assert "metaqa_1hop_found" not in figures
    assert "MetaQA is not in" in captured.err
    assert "| exact name |" in (tmp_path / "docs/bench/kg.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_answers_of_real_questions_are_found():
    answers = measure_answers(load_settings().data, every=5)
    if answers is None:
        pytest.skip("the data set is not here")
    assert answers.metaqa_1hop_found >= 0.97
    assert answers.questions >= 100
    assert answers.most_triples <= 100
    assert answers.most_tokens <= 1024
