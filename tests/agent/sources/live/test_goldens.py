"""What the backends read in recorded and documented answers. `python -m tests.agent.sources.live.test_goldens` writes it again."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.sources.live.reading import Topic
from tests.agent.sources.live.backend_cases import (
    FIXTURES,
    NAMES,
    Make,
    answered,
    brave,
    exa,
    gnews,
    recorded,
    searxng,
    serper,
    tavily,
)

FOLDER = Path(__file__).parent / "golden"


def of(make: Any, topic: Topic) -> Make:
    return partial(make, topic=topic)


CASES: dict[str, tuple[Make, dict[str, str]]] = {
    "tavily/basic_search.json": (tavily, {}),
    "tavily/bound_params.json": (tavily, {"site": "arxiv.org"}),
    "tavily/news.json": (of(tavily, "news"), {}),
    "serper/search.json": (serper, {}),
    "serper/news.json": (of(serper, "news"), {}),
    "serper/scholar.json": (serper, {"kind": "science"}),
    "searxng/general.json": (searxng, {}),
    "searxng/news.json": (of(searxng, "news"), {}),
    "brave/web.json": (brave, {}),
    "brave/news.json": (of(brave, "news"), {}),
    "exa/search.json": (exa, {}),
    "exa/news.json": (of(exa, "news"), {}),
    "gnews/vendor_example.json": (gnews, {}),
    "gnews/variants.json": (gnews, {}),
}


def read(name: str) -> dict[str, Any]:
    make, conditions = CASES[name]
    hits, _ = answered(make, recorded(name), limit=20, where=conditions)
    return {
        "backend": hits.backend,
        "notes": list(hits.notes),
        "credits": hits.credits,
        "usd": hits.usd,
        "passages": [hit.model_dump(exclude_defaults=True) for hit in hits.passages],
    }


def golden(name: str) -> Path:
    return FOLDER / name.replace("/", "_")


@pytest.mark.parametrize("name", CASES)
def test_the_passages_of_an_answer_are_the_golden_ones(name: str):
    assert read(name) == json.loads(golden(name).read_text(encoding="utf-8"))


def test_every_fixture_has_its_golden_file_and_its_provenance():
    for folder in NAMES:
        there = {path.name for path in (FIXTURES / folder).iterdir()} - {"PROVENANCE.json"}
        listed = {row["file"]: row for row in recorded(f"{folder}/PROVENANCE.json")["files"]}
        assert there == set(listed)
        assert all(row["source"] and row["licence"] for row in listed.values())
        assert {f"{folder}/{name}" for name in there} == {name for name in CASES if name.startswith(folder)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        text = json.dumps(read(case), indent=1, ensure_ascii=False) + "\n"
        golden(case).write_text(text, encoding="utf-8")
