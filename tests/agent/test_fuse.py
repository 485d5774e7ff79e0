import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult, Source, ask, credits_of
from agent.sources.fuse import FusedSource, fuse
from tests.conftest import Broken, Echo, Hanging
from tests.virtual_clock import now, run


def found(*ids: str, source: str = "web") -> list[Passage]:
    return [Passage(id=id, source=source, title="", text=id) for id in ids]


def ids(passages: Sequence[Passage]) -> str:
    return "".join(p.id for p in passages)


def search(sources: dict[str, Source], *, limit: int = 3, seconds: float = 5) -> SearchResult:
    return run(ask(FusedSource(sources), SearchRequest("q", limit=limit), seconds=seconds))


class Slow(Echo):
    async def search(self, request: SearchRequest) -> SearchResult:
        await asyncio.sleep(12)
        return await super().search(request)


def test_what_two_sources_found_comes_before_what_one_found_first():
    assert ids(fuse([found("a", "b"), found("c", "b")])) == "bac"


def test_equal_ranks_keep_the_order_of_the_sources():
    assert ids(fuse([found("a", "c"), found("b", "d")])) == "abcd"


def test_scores_are_those_of_reciprocal_rank_fusion():
    (first, second) = fuse([found("a", "b"), found("a")])
    assert (first.score, first.rank) == (2 / 61, 1)
    assert (second.score, second.rank) == (1 / 62, 2)


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=4))
def test_every_passage_comes_once_and_scores_fall(lists: list[list[str]]):
    fused = fuse([found(*names) for names in lists])
    assert sorted(ids(fused)) == sorted({name for names in lists for name in names})
    assert [p.score for p in fused] == sorted((p.score for p in fused), reverse=True)


def test_a_passage_keeps_the_name_of_the_source_that_found_it():
    assert [p.source for p in search({"web": Echo(), "news": Echo("news")}).passages] == ["web", "news"]


def test_a_source_that_fails_or_hangs_does_not_silence_the_others():
    sources: dict[str, Source] = {"kg": Broken(), "news": Hanging(), "web": Echo()}
    assert [p.source for p in search(sources).passages] == ["web"]


def test_when_every_source_fails_all_reasons_are_given():
    class Odd:
        async def search(self, request: SearchRequest) -> SearchResult:
            raise KeyError("odd")

    with pytest.raises(SourceError, match="kg: no route; web: KeyError: 'odd'") as caught:
        search({"kg": Broken(), "web": Odd()})
    assert caught.value.kind == "upstream"


class Nothing:
    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult()


def test_where_one_fails_and_the_others_find_nothing_the_search_has_failed():
    with pytest.raises(SourceError, match=r"^web: no route; corpus found nothing$") as caught:
        search({"web": Broken(), "corpus": Nothing()})
    assert caught.value.kind == "upstream"
    assert [(failure.backend, failure.why) for failure in caught.value.failures] == [("web", "no route")]


def test_where_none_fails_nothing_is_an_honest_answer_also_after_a_second_try():
    class Second:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult(failures=(Failure("second", "rate", "too many requests"),))

    found = search({"web": Nothing(), "corpus": Second()})
    assert (found.passages, found.lost, len(found.failures)) == ((), (), 1)


def test_what_failed_is_given_with_what_the_others_found():
    found = search({"kg": Broken(), "web": Echo()})
    assert [(failure.backend, failure.why) for failure in found.failures] == [("kg", "no route")]
    assert found.backend == "web"


def test_a_source_that_gave_nothing_is_named_also_behind_another_fused_one_and_one_that_tried_twice_is_not():
    class Twice:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult(tuple(found("a")), failures=(Failure("twice", "rate", "too many requests"),))

    inner = FusedSource({"news": Broken(), "twice": Twice()})
    assert search({"others": inner, "kg": Broken()}).lost == ("kg", "news")
    assert search({"twice": Twice(), "web": Echo()}).lost == ()


def test_no_more_than_the_limit_is_given():
    assert len(search({"a": Echo("a"), "b": Echo("b"), "c": Echo("c")}, limit=2).passages) == 2


def test_it_costs_what_its_sources_cost():
    class Paid(Echo):
        credits_per_search = 1.5

    assert credits_of(FusedSource({"a": Paid(), "b": Paid(), "c": Echo()})) == 3.0


def test_fusing_nothing_is_a_wrong_argument():
    with pytest.raises(ValueError, match="no source"):
        FusedSource({})


def test_a_source_may_take_as_long_as_the_caller_waits_and_one_that_hangs_costs_the_others_nothing():
    async def main() -> SearchResult:
        sources = {"fast": Echo(), "slow": Slow("slow"), "late": Hanging()}
        found = await ask(FusedSource(sources), SearchRequest("q", limit=3), seconds=30)
        assert now() < 30
        return found

    found = run(main())
    assert [passage.source for passage in found.passages] == ["web", "slow"]
    assert [(failure.backend, failure.kind) for failure in found.failures] == [("late", "timeout")]
    assert found.lost == ("late",)


def test_without_a_deadline_each_source_is_waited_for():
    assert (
        len(run(FusedSource({"fast": Echo(), "slow": Slow("slow")}).search(SearchRequest("q", limit=3))).passages) == 2
    )
