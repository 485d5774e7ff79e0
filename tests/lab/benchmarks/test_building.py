"""What `cairn bench building` says; the commands that it runs have tests of their own."""

import re
from pathlib import Path

import numpy as np
import pytest

from agent.cli.console import messages
from agent.errors import SetupError
from lab.benchmarks.building import KINDS, BuildingFigures, BuildingWay, Nearest, clustered, measure, nearest
from lab.cli.building import Parts, page
from tests.agent.sources.corpus.encoding import needs_faiss


@pytest.mark.slow
@needs_faiss
def test_every_kind_of_index_is_built_and_searched():
    shown: list[str] = []
    found = nearest(1500, shown.append)
    assert [one.kind for one in found] == list(KINDS)
    assert (found[0].recall_10, found[0].bytes) == (1.0, 0)
    assert all(one.build_s > 0 and one.query_ms > 0 for one in found)
    assert found[1].bytes > 1500 * 384 * 4, "HNSW has a copy of the vectors"
    assert 0 < found[3].bytes < found[2].bytes < found[1].bytes
    assert shown == [f"1,500 vectors, {kind}" for kind in KINDS]


def test_vectors_have_length_one_and_are_the_same_every_time():
    made = clustered(250, dim=16)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(250), abs=1e-5)
    assert (made == clustered(250, dim=16)).all()


@pytest.mark.slow
def test_a_command_that_fails_is_reported_with_what_it_said(tmp_path: Path):
    with pytest.raises(SetupError, match=r"cairn index build .*nothing.* failed: .*nothing"):
        measure(tmp_path / "nothing", model="m", questions=1, vectors=1, ways=[("local", 1)], show=lambda what: None)


def test_each_part_is_printed_with_its_time_as_it_ends(capsys: pytest.CaptureFixture[str]):
    with messages().status("starting") as status:
        parts = Parts(status)
        parts.begin("index by words, local, 1")
        assert capsys.readouterr().err == ""
        parts.begin("data, local, 1")
        assert re.search(r"index by words, local, 1: 0\.\d s\n", capsys.readouterr().err)
        parts.end()
        parts.end()
    assert capsys.readouterr().err.count("data, local, 1: 0.") == 1


def test_the_page_shows_rates_and_bytes_of_each_way():
    ways = (
        BuildingWay("local", 1, 4000, 2.0, 40.0, 8_000_000, 6_400_000, 300, 15.0, 2600, 130.0),
        BuildingWay("ray", 2, 4000, 4.0, 25.0, 1, 1, 300, 12.0, 2600, 65.0),
    )
    text = page(BuildingFigures("documents.jsonl", "m", ways, (Nearest("hnsw", 50_000, 9.5, 92_000_000, 0.31, 0.97),)))
    assert "| local | 1 | 2,000 | 100 | 20.0 | 20.0 |" in text
    assert "| ray | 2 | 1,000 | 160 | 25.0 | 40.0 |" in text
    assert "data of 2,600 documents of a little world in two parts" in text
    assert "a passage takes 2,000 bytes on disk, its text included; its vector and its key 1,600 more" in text
    assert "| hnsw | 50,000 | 9.50 s | 1,840 | 0.31 ms | 0.970 |" in text
