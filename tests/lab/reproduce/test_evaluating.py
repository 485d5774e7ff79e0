"""What is particular about an arm: fewer queries a search, vectors instead of BM25, question lists."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.build.agent import build_policy
from agent.policies.base import Sampling
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest
from agent.world import load_world
from lab.reproduce.dense import dense_sources
from lab.reproduce.narrow import NarrowPolicy
from lab.reproduce.study import CHECKPOINTS, SHIPPED_RECIPE, read_study
from lab.reproduce.worlds import evaluation_world, question_lists
from tests.lab.reproduce.small import small_study
from train.evaluation.questions import read_questions
from train.world.shards import make_world

pytestmark = [pytest.mark.train, pytest.mark.anyio]


async def first_turn(queries: int) -> str:
    protocol = protocol_named("multisearch")
    policy = build_policy(CairnSettings(checkpoint=CHECKPOINTS / "tiny-v2" / "ct2"))
    assert isinstance(policy, EmbeddedPolicy)
    narrow = NarrowPolicy(policy, queries) if queries else policy
    question = make_world(3, split="dev", people=30, questions=1, mix={"chain1": 1.0}).questions[0]
    context = narrow.open(protocol, question.question)
    stop = [protocol.closing("search"), protocol.closing("answer")]
    try:
        async with asyncio.timeout(60):
            return "".join([chunk.text async for chunk in context.generate(Sampling(), stop=stop, max_tokens=96)])
    finally:
        await policy.aclose()


@pytest.mark.parametrize("queries", [1, 2])
async def test_a_search_ends_behind_the_last_query_that_it_may_have(queries: int):
    whole, cut = await first_turn(0), await first_turn(queries)
    _, _, searched = whole.partition("<search>")
    wanted = searched.removesuffix("</search>").split(",")
    assert len(wanted) == 3
    assert cut == whole.partition("<search>")[0] + "<search>" + ",".join(wanted[:queries]) + "</search>"


class Letters:
    """An encoder whose vectors count letters."""

    def encode_queries(self, queries: list[str]) -> np.ndarray:
        return self.encode_passages(queries)

    def encode_passages(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[text.lower().count(letter) + 1e-6 for letter in "abcdefghij"] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


async def test_vectors_rank_the_same_passages_behind_each_name():
    world = make_world(3, split="dev", people=30)
    sources = dense_sources(world, Letters())  # pyright: ignore[reportArgumentType] - what is used of it
    document = next(one for one in world.documents if one.source == "news")
    found = await sources["all"].search(SearchRequest(f"{document.title}. {document.text}", limit=3))
    assert (found.passages[0].id, found.passages[0].rank, len(found.passages)) == (document.id, 1, 3)
    assert {p.source for p in (await sources["kg"].search(SearchRequest("abc", limit=5))).passages} == {"kg"}
    assert "kg" not in {p.source for p in (await sources["documents"].search(SearchRequest("abc", limit=50))).passages}


def test_the_lists_part_questions_over_several_sources_from_those_over_one(tmp_path: Path):
    study = small_study(tmp_path)
    folder = question_lists(study, 1)
    world = load_world(folder / "pipeline" / "world")
    of = {document.id: document.source for document in world.documents}
    sources = {
        name: [len({of[key] for key in one.supporting}) for one in read_questions(folder / name / "questions.jsonl")]
        for name in ("pipeline", "single")
    }
    assert sources["single"] == [1] * study.recipe.worlds.listed
    assert len(sources["pipeline"]) == study.recipe.worlds.listed
    assert sources["pipeline"] == sorted(sources["pipeline"])
    assert min(sources["pipeline"]) > 1
    assert load_world(folder / "single" / "world").documents == world.documents


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_the_shipped_recipe_has_room_for_its_lists(tmp_path: Path, seed: int):
    study = read_study(SHIPPED_RECIPE, tmp_path)
    folder = question_lists(study, seed)
    for name in ("pipeline", "single"):
        assert len(read_questions(folder / name / "questions.jsonl")) == study.recipe.worlds.listed


def test_the_world_of_a_seed_is_made_once_and_is_another_one_for_another_seed(tmp_path: Path):
    study = small_study(tmp_path)
    first, again, other = (evaluation_world(study, "known", seed) for seed in (1, 1, 2))
    assert first == again
    assert load_world(first).documents != load_world(other).documents
    assert {question.type for question in load_world(first).questions} >= {"known", "chain1"}
