"""Many small indices searched as one find what one large index finds."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.plan import Filter
from agent.sources.corpus.shards import IndexShard, ShardedSource
from agent.sources.corpus.source import CorpusSource, build_index

SHARDS, EACH, WORDS = 60, 25, 40
VOCABULARY = [f"{first}{second}" for first in ("bra", "tiv", "kol", "sen", "mar") for second in "abdegiklmnoprstuvz"]


def texts(count: int) -> list[str]:
    draw = random.Random(3)
    weights = [1 / place for place in range(1, len(VOCABULARY) + 1)]
    return [" ".join(draw.choices(VOCABULARY, weights, k=WORDS)) for _ in range(count)]


def write(path: Path, rows: Sequence[str], *, first: int) -> Path:
    lines = [
        {"id": f"p{first + at}", "title": "", "text": text, "date": str(2000 + (first + at) % 20)}
        for at, text in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[ShardedSource, CorpusSource]:
    root = tmp_path_factory.mktemp("shards")
    rows = texts(SHARDS * EACH)
    shards: list[IndexShard] = []
    for number in range(SHARDS):
        first = number * EACH
        file = write(root / f"{number}.jsonl", rows[first : first + EACH], first=first)
        build_index([file], root / f"index-{number}")
        shards.append(IndexShard(root / f"index-{number}"))
    build_index([write(root / "all.jsonl", rows, first=0)], root / "all")
    return ShardedSource(shards), CorpusSource(root / "all")


@pytest.mark.parametrize("filters", [(), (Filter(name="after", value="2012"),)], ids=["all", "of some years"])
def test_the_best_of_all_parts_are_those_of_one_index(
    both: tuple[ShardedSource, CorpusSource], filters: tuple[Filter, ...]
):
    draw = random.Random(5)
    parts, whole = both
    for _ in range(25):
        query = " ".join(draw.sample(VOCABULARY, draw.randint(1, 4)))
        found, wanted = (source.find(query, limit=10, filters=filters) for source in (parts, whole))
        assert len(found) == len(wanted) == 10
        assert [passage.score for passage in found] == pytest.approx([passage.score for passage in wanted], rel=1e-4)
        least = wanted[-1].score  # those as good as the last one may be others
        above = [{p.text for p in passages if p.score > least * 1.0001} for passages in (found, wanted)]
        assert above[0] == above[1]
