"""The bench of libraries: a small one is filled, indexed and searched, and the page that keeps its figures."""

import asyncio
from pathlib import Path

import pytest

from lab.benchmarks.libraries import measure, texts
from lab.cli.libraries import page


@pytest.mark.slow
def test_a_small_library_is_filled_indexed_and_searched(tmp_path: Path):
    stages: list[str] = []

    def progress(stage: str, done: int, total: int) -> None:
        stages.append(stage)

    work = measure(documents=3, megabytes=0.05, queries=5, folder=tmp_path, progress=progress)
    figures = asyncio.run(work)
    assert figures.documents == 3
    assert figures.passages >= 30
    assert {"uploading", "indexing"} == set(stages)
    assert 0 < figures.search_ms_p50 <= figures.search_ms_p99
    assert figures.index_mb > 0.05
    assert list(tmp_path.iterdir()) == [], "nothing is left of it"
    assert "| documents | 3 |" in page(figures)


def test_documents_differ_and_are_the_same_each_time():
    first = list(texts(2, 0.02))
    assert first == list(texts(2, 0.02))
    assert first[0] != first[1]
    assert 8_000 < len(first[0]) < 12_000
