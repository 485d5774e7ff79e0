import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from agent.errors import SetupError
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.world import World
from tests.conftest import Broken
from tests.train.rewards.rollouts import SOURCE, TARN
from train.safety.probes import Probe, RetrieverDead, RetrieverProbes, world_probes
from train.world.shards import make_world

PROBE = Probe(source="web", query="Tarn Harbour", expects="Lina Orr")


def check(source: Source, probe: Probe = PROBE, *, when: str = "before step 3") -> None:
    asyncio.run(RetrieverProbes((probe,), seconds=5).check({"web": source}, when=when))


@dataclass(frozen=True)
class Giving:
    hits: SearchResult

    async def search(self, request: SearchRequest) -> SearchResult:
        return self.hits


@dataclass(frozen=True)
class Hanging:
    async def search(self, request: SearchRequest) -> SearchResult:
        await asyncio.Event().wait()
        return SearchResult()


def test_a_source_that_finds_what_it_holds_is_alive() -> None:
    check(SOURCE)
    check(SOURCE, PROBE.model_copy(update={"expects": "tarn"}))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (Broken(), r"it failed \("),
        (Giving(SearchResult()), "it found nothing"),
        (
            Giving(SearchResult((TARN.model_copy(update={"title": "", "text": "Something else."}),))),
            "none of its 1 passages",
        ),
        (Giving(SearchResult((TARN,), cached="stale")), "only an old answer of the cache"),
    ],
    ids=["broken", "empty", "another index", "stale"],
)
def test_a_dead_retriever_ends_the_run_with_a_sentence(source: Source, why: str) -> None:
    with pytest.raises(
        RetrieverDead, match=f"the retriever is dead: before step 3, .*'web'.*{why}.*start the retriever"
    ):
        check(source)


def test_a_source_that_never_answers_is_dead_after_its_time() -> None:
    with pytest.raises(RetrieverDead, match="timeout"):
        asyncio.run(RetrieverProbes((PROBE,), seconds=0.05).check({"web": Hanging()}, when="before the run"))


def test_one_dead_source_of_two_is_enough() -> None:
    probes = (PROBE, PROBE.model_copy(update={"source": "news"}))
    with pytest.raises(RetrieverDead, match="'news'"):
        asyncio.run(RetrieverProbes(probes).check({"web": SOURCE, "news": Broken()}, when="before step 1"))


def test_a_probe_of_a_source_that_there_is_not_is_refused() -> None:
    with pytest.raises(SetupError, match=r"'wiki', and this run has web: fix \[safety\]"):
        check(SOURCE, PROBE.model_copy(update={"source": "wiki"}))


def test_probes_are_due_before_the_first_step_and_then_as_often_as_configured() -> None:
    assert [step for step in range(1, 9) if RetrieverProbes((), every_steps=3).is_due(step)] == [1, 4, 7]
    assert all(RetrieverProbes(()).is_due(step) for step in range(1, 9))


@cache
def world() -> World:
    return make_world(5, split="dev", people=40, questions=4)


def test_a_little_world_brings_a_probe_for_each_of_its_sources() -> None:
    probes = world_probes(world(), ["web", "news", "arxiv", "kg", "all", "documents", "web"])
    assert [probe.source for probe in probes] == ["web", "news", "arxiv", "kg", "all", "documents"]
    asyncio.run(RetrieverProbes(probes).check(world().sources(), when="before step 1"))


def test_the_probes_of_a_little_world_notice_that_another_one_is_searched() -> None:
    other: Mapping[str, Source] = make_world(6, split="train", people=40, questions=4).sources()
    with pytest.raises(RetrieverDead):
        asyncio.run(RetrieverProbes(world_probes(world(), ["web"])).check(other, when="before step 1"))
