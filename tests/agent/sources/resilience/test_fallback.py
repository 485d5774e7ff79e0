import pytest

from agent.errors import SourceError, SourceErrorKind
from agent.sources.base import SearchRequest, SearchResult, ask
from agent.sources.limits import Limits
from agent.sources.resilience.resilient import Fallback, Guarded
from tests.agent.sources.resilience.backends import HANG, Scripted, error, passage
from tests.virtual_clock import now, run


def backend(name: str, *acts: object, credits: float = 1.0) -> Scripted:
    return Scripted(*acts, name=name, credits=credits)  # pyright: ignore[reportArgumentType]


def chain(*backends: Scripted, enough: int = 1) -> Fallback:
    return Fallback("web", backends, enough=enough)


def test_the_first_one_that_answers_is_the_only_one_tried():
    first, second = backend("tavily"), backend("brave")
    hits = run(ask(chain(first, second), SearchRequest("Dune", limit=3), seconds=10))
    assert [p.id for p in hits.passages] == ["tavily on Dune"]
    assert (hits.backend, hits.credits, hits.failures) == ("tavily", 1, ())
    assert not second.requests


def test_the_next_one_is_tried_when_one_fails_and_what_failed_is_named():
    found = run(
        ask(
            chain(backend("a", error("auth")), backend("b", error("parse")), backend("c")),
            SearchRequest("x", limit=3),
            seconds=9,
        )
    )
    assert found.backend == "c"
    assert [(f.backend, f.kind) for f in found.failures] == [("a", "auth"), ("b", "parse")]


@pytest.mark.parametrize(
    ("kinds", "stands_for_all"),
    [
        (["timeout", "auth"], "auth"),
        (["bad_query", "upstream"], "upstream"),
        (["rate", "quota"], "quota"),
        (["bad_query", "bad_query"], "bad_query"),
    ],
)
def test_when_all_fail_the_most_telling_kind_stands_for_all(
    kinds: list[SourceErrorKind], stands_for_all: SourceErrorKind
):
    sources = [backend(f"b{n}", error(kind, f"it is {kind}", retry_after=n + 5)) for n, kind in enumerate(kinds)]
    with pytest.raises(SourceError) as raised:
        run(ask(chain(*sources), SearchRequest("x", limit=3), seconds=10))
    assert raised.value.kind == stands_for_all
    assert str(raised.value) == f"b0: it is {kinds[0]}; b1: it is {kinds[1]}"
    assert [(f.backend, f.kind) for f in raised.value.failures] == [("b0", kinds[0]), ("b1", kinds[1])]
    assert raised.value.retry_after == 5, "one of them may be tried again then"


def test_a_failure_that_names_its_backend_itself_names_it_once():
    sources = [
        backend("tavily", error("upstream", "tavily cannot be reached")),
        backend("brave", error("timeout", "no answer in 8 s")),
        backend("a", error("parse", "an answer that is no JSON")),
    ]
    with pytest.raises(SourceError) as raised:
        run(ask(chain(*sources), SearchRequest("x", limit=3), seconds=10))
    assert str(raised.value) == "tavily cannot be reached; brave: no answer in 8 s; a: an answer that is no JSON"


def test_one_that_hangs_leaves_its_share_of_the_time_to_those_behind_it():
    async def main() -> None:
        sources = [backend("a", HANG), backend("b", HANG), backend("c", 1.0)]
        guarded = [Guarded(source, name=source.name, limits=Limits()) for source in sources]
        hits = await ask(Fallback("web", guarded), SearchRequest("x", limit=3), seconds=9)
        assert [(f.backend, f.kind) for f in hits.failures] == [("a", "timeout"), ("b", "timeout")]
        a, b = hits.failures
        assert 2.5 < a.took < 3
        assert 2.5 < b.took < 3.1
        assert now() < 7.5

    run(main())


def test_the_time_that_one_does_not_use_is_the_next_ones():
    async def main() -> None:
        sources = [backend("a", error("upstream")), backend("b", 8.0)]
        hits = await ask(chain(*sources), SearchRequest("x", limit=3), seconds=9)
        assert hits.backend == "b"

    run(main())


def test_when_every_one_hangs_all_are_reported_before_the_time_is_over():
    async def main() -> None:
        with pytest.raises(SourceError) as raised:
            await ask(chain(*(backend(name, HANG) for name in "abcd")), SearchRequest("x", limit=3), seconds=10)
        assert [f.backend for f in raised.value.failures] == list("abcd")
        assert now() < 10

    run(main())


def test_too_little_is_made_up_by_the_next_one_without_doubles():
    first = [passage("a", url="https://www.example.org/a/"), passage("b", url="https://example.org/b")]
    second = [passage("a again", url="http://example.org/a#top"), passage("c", url="https://example.org/c")]
    gnews, serper = backend("gnews", first), backend("serper", second, credits=2)
    third = backend("tavily")
    hits = run(ask(chain(gnews, serper, third, enough=3), SearchRequest("x", limit=10), seconds=10))
    assert [(p.id, p.rank) for p in hits.passages] == [("a", 1), ("b", 2), ("c", 3)]
    assert (hits.backend, hits.credits, hits.failures) == ("gnews+serper", 3, ())
    assert not third.requests


def test_little_is_better_than_a_failure():
    gnews = backend("gnews", [passage("a")])
    hits = run(ask(chain(gnews, backend("serper", error("quota")), enough=3), SearchRequest("x", limit=10), seconds=10))
    assert [p.id for p in hits.passages] == ["a"]
    assert [f.kind for f in hits.failures] == ["quota"]


def test_no_more_is_enough_than_was_requested():
    second = backend("b")
    run(ask(chain(backend("a", [passage("x")]), second, enough=3), SearchRequest("x", limit=1), seconds=10))
    assert not second.requests


def test_an_honestly_empty_answer_is_one_when_no_one_knows_more():
    hits = run(ask(chain(backend("a", []), backend("b", [])), SearchRequest("x", limit=3), seconds=10))
    assert hits.passages == ()
    assert (hits.backend, hits.failures) == ("a+b", ())


def test_nothing_of_one_is_no_answer_where_another_one_failed():
    sources = [backend("tavily", error("quota", "no credits", retry_after=7)), backend("ddgs", [])]
    with pytest.raises(SourceError, match=r"^tavily: no credits; ddgs found nothing$") as raised:
        run(ask(chain(*sources), SearchRequest("x", limit=3), seconds=10))
    assert (raised.value.kind, raised.value.retry_after) == ("quota", 7)
    assert [(f.backend, f.kind) for f in raised.value.failures] == [("tavily", "quota")]


def test_nothing_is_an_answer_where_a_backend_gave_it_at_the_second_try():
    guarded = Guarded(backend("tavily", error("upstream"), []), name="tavily", limits=Limits(tries=2))
    found = run(ask(Fallback("web", [guarded]), SearchRequest("x", limit=3), seconds=10))
    assert (found.passages, [f.kind for f in found.failures]) == ((), ["upstream"])


def test_notes_pass_through_once():
    def noting() -> SearchResult:
        return SearchResult((passage("a"),), backend="a", notes=("it cannot filter by 'lang de'",))

    again = backend(
        "b", lambda: SearchResult((passage("b"),), backend="b", notes=("it cannot filter by 'lang de'", "more"))
    )
    hits = run(ask(chain(backend("a", noting), again, enough=2), SearchRequest("x", limit=3), seconds=10))
    assert hits.notes == ("it cannot filter by 'lang de'", "more")


def test_the_most_that_a_search_may_cost_is_stated():
    a, b = backend("a", credits=1), backend("b", credits=2)
    assert chain(a, b).credits_per_search == 3
    assert chain(a, b, enough=0).credits_per_search == 2


def test_without_a_deadline_no_backend_is_waited_for_for_ever():
    async def main() -> None:
        hits = await chain(backend("a", HANG), backend("b")).search(SearchRequest("x", limit=3))
        assert hits.backend == "b"
        assert now() == 60

    run(main())


def test_closing_closes_each_once():
    source = backend("a")
    run(chain(source, source).aclose())
    assert source.closed == 1
