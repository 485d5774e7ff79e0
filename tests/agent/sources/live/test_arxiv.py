"""arXiv: questions as its query language, ids, dates, one polite queue, and what it says instead of an error."""

import asyncio
import inspect
import time
from functools import partial
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import SourceError
from agent.sources.base import SearchRequest
from agent.sources.http import make_client
from agent.sources.live.arxiv import LIMITS, QUEUE, ArxivSource, search_query
from agent.sources.live.polite_queue import PoliteQueue
from agent.sources.live.standalone import MAX_AUTHORS
from tests import virtual_clock
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, run, text_reply
from tests.agent.sources.live.knowledge import answered, arxiv, entry, feed, fixture

WHOLE = Reply(fixture("arxiv/q_testing.xml"))


def params(query: str, **filters: str) -> dict[str, str]:
    _, requests = answered(arxiv, WHOLE, query, limit=7, **filters)
    return requests[0].params


def test_one_request_asks_for_as_many_papers_as_are_wanted():
    _, requests = answered(arxiv, WHOLE, "all:electron", limit=7)
    (only,) = requests
    assert (only.method, only.path) == ("GET", "/api/query")
    assert only.params == {
        "search_query": "all:electron", "start": "0", "max_results": "7", "sortBy": "relevance", "sortOrder": "descending",
    }  # fmt: skip
    assert only.headers["user-agent"].startswith("cairn-search/")
    assert "arxiv.py" not in only.headers["user-agent"]


def test_no_more_than_a_hundred_papers_are_requested():
    _, requests = answered(arxiv, WHOLE, "all:electron", limit=5000)
    assert requests[0].params["max_results"] == "100"


@pytest.mark.parametrize(
    ("question", "written"),
    [
        ("au:bengio AND ti:attention", "au:bengio AND ti:attention"),
        ('cat:cs.CL AND abs:"chain of thought"', 'cat:cs.CL AND abs:"chain of thought"'),
        ("LoRA", "all:LoRA"),
        (
            "which papers on CoNLL-2003 came out in 2021",
            'ti:"which papers on CoNLL 2003 came out in 2021" OR (all:"CoNLL 2003")',
        ),
        ("1984", "all:1984"),
        ("papers on Noether's theorem", 'ti:"papers on Noether s theorem" OR (all:Noether AND all:theorem)'),
        ("What is BERT?", 'ti:"What is BERT" OR (all:BERT)'),
        ("Attention is all you need", 'ti:"Attention is all you need" OR (all:Attention AND all:need)'),
        ('papers about "chain of thought" in GPT-4', 'all:"chain of thought" AND all:"GPT 4"'),
        (
            "multi-hop question answering with knowledge graphs and reinforcement learning",
            'ti:"multi hop question answering with knowledge graphs and reinforcement learning" OR '
            '(all:"multi hop" AND all:answering AND all:reinforcement AND '
            "(all:question OR all:knowledge OR all:graphs OR all:learning))",
        ),
        ("graph networks AND chemistry NOT drugs", "(all:graph AND all:networks) AND all:chemistry ANDNOT all:drugs"),
        ("SCIENCE AND ART", 'ti:"SCIENCE AND ART" OR (all:SCIENCE AND all:ART)'),
        ("cats AND ?", 'ti:"cats AND" OR (all:cats)'),
        ("Dune: Part Two", 'ti:"Dune Part Two" OR (all:Dune AND all:Part AND all:Two)'),
        ("日本語 構文解析", 'ti:"日本語 構文解析" OR (all:日本語 AND all:構文解析)'),
    ],
)
def test_a_question_is_written_in_the_query_language(question: str, written: str):
    assert search_query(question) == written


@given(st.text(alphabet=st.sampled_from("ab Z1-:\"()[]{}+?*~^&|!\\/.,'ANDORT "), max_size=60))
def test_what_is_written_for_a_question_has_no_syntax_but_ours(text: str):
    written = search_query(text)
    if ":" not in text:
        assert written.count('"') % 2 == 0
        assert written.count("(") == written.count(")")
        assert not set(written) & set("[]{}+?*~^&|!\\/,'")
        assert not any(part in written for part in ("()", "AND AND", "OR OR", "AND )", '""'))


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("1706.03762", "1706.03762"),
        ("arXiv:1706.03762v5", "1706.03762v5"),
        ("arxiv: 0704.0001", "0704.0001"),
        ("https://arxiv.org/abs/hep-th/9901001v2", "hep-th/9901001v2"),
        ("http://www.arxiv.org/pdf/2005.14165.pdf", "2005.14165"),
        ("https://doi.org/10.48550/arXiv.2005.14165", "2005.14165"),
        ("math.GT/0309136", "math.GT/0309136"),
        ("cond-mat.str-el/0309136", "cond-mat.str-el/0309136"),
        ("1706.03762, 2005.14165v4 and cs/0112017", "1706.03762,2005.14165v4,cs/0112017"),
        ("who wrote arXiv:1706.03762?", "1706.03762"),
    ],
)
def test_an_id_is_looked_up_and_not_searched_for(query: str, ids: str):
    sent = params(query)
    assert sent["id_list"] == ids
    assert "search_query" not in sent


@pytest.mark.parametrize("query", ["pi is 3141.59265 or so", "arXiv:1706.037621234", "and/or1234567"])
def test_a_number_within_a_sentence_is_no_id(query: str):
    assert "id_list" not in params(query)


@pytest.mark.parametrize(
    ("filters", "dates"),
    [
        ({"after": "2026-01"}, "submittedDate:[202601010000 TO 202611212359]"),
        ({"before": "2024"}, "submittedDate:[199101010000 TO 202412312359]"),
        ({"after": "2023-05-06", "before": "2024-02"}, "submittedDate:[202305060000 TO 202402292359]"),
        ({"recent": "week"}, "submittedDate:[202611140000 TO 202611212359]"),
    ],
)
def test_dates_become_a_range_of_submission(filters: dict[str, str], dates: str):
    assert params("all:x OR all:y", **filters)["search_query"] == f"(all:x OR all:y) AND {dates}"
    assert params("1706.03762", **filters) | {"search_query": dates, "id_list": "1706.03762"} == params(
        "1706.03762", **filters
    )


def test_other_filters_are_reported():
    hits, _ = answered(arxiv, WHOLE, "x", site="a.com", lang="de", after="2020")
    assert hits.notes == ("arxiv cannot filter by 'site a.com'", "arxiv cannot filter by 'lang de'")


def test_a_paper_says_who_wrote_it_and_where_it_stands():
    authors = "".join(f"<author><name>Author {n}</name></author>" for n in range(1, MAX_AUTHORS + 3))
    more = '<category term="cs.CL"/><category term="cs.AI"/><arxiv:journal_ref>Nature 1,\n 2</arxiv:journal_ref>'
    paper = entry(summary="One\n  two.").replace("</entry>", f"{authors}{more}</entry>")
    (hit,) = answered(arxiv, feed(paper), "x")[0].passages
    assert hit.text == (
        "Author 1, Author 2, Author 3, Author 4, Author 5, Author 6, Author 7, Author 8, 2 others"
        " · cs.CL, cs.AI · Nature 1, 2\nOne two."
    )
    assert (hit.id, hit.url) == ("arxiv:2401.00001v2", "https://arxiv.org/abs/2401.00001v2")
    assert (hit.title, hit.date, hit.source, hit.rank) == ("A title", "2024-01-02", "arxiv", 1)


def failure(reply: Reply) -> SourceError:
    with pytest.raises(SourceError) as caught:
        answered(arxiv, reply, "x")
    return caught.value


def test_a_refusal_with_status_200_is_a_rate_limit_and_no_empty_answer():
    error = failure(text_reply("Rate exceeded.", content_type="text/plain", retry_after="30"))
    assert (error.kind, error.retry_after) == ("rate", 30.0)


def test_an_empty_page_of_many_papers_is_worth_another_try():
    error = failure(feed(total=250))
    assert (error.kind, str(error)) == ("upstream", "arxiv sent an empty page of 250 papers")


@pytest.mark.parametrize("status", [200, 400])
def test_an_error_that_comes_as_a_paper_is_a_bad_query(status: int):
    page = feed(
        "<entry><id>https://arxiv.org/api/errors#incorrect_id_format_for_1234.1234</id><title>Error</title>"
        "<summary>incorrect id format for &lt;1234.1234&gt;</summary></entry>"
    )
    error = failure(Reply(page.body, status))
    assert (error.kind, str(error)) == ("bad_query", "arxiv refuses the query: incorrect id format for <1234.1234>")


@pytest.mark.parametrize("cut", [200, 3000, -10])
def test_a_feed_that_breaks_off_loses_no_papers_in_silence(cut: int):
    assert failure(Reply(WHOLE.body[:cut])).kind == "parse"


@pytest.mark.parametrize("date", ["yesterday", "2024-99-99T00:00:00Z"])
def test_a_date_that_is_none_makes_the_feed_unreadable(date: str):
    assert failure(feed(entry(published=date))).kind == "parse"


def test_a_hang_is_a_timeout_of_the_request_and_the_next_one_gets_its_turn():
    replies = iter([Reply(how="hang"), WHOLE])

    async def test(server: ApiServer) -> None:
        server.routes["*"] = lambda _: next(replies)
        async with make_client() as client:
            source = arxiv(client, server.base, request_seconds=0.1)
            with pytest.raises(SourceError) as caught:
                await source.search(SearchRequest("x", limit=3))
            assert caught.value.kind == "timeout"
            assert (await source.search(SearchRequest("x", limit=3))).passages

    run(test)


class Timed(httpx2.AsyncBaseTransport):
    """Answers after `seconds` of a clock that jumps, and keeps when it was requested."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.came: list[float] = []
        self.under_way = self.most = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.came.append(virtual_clock.now())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self._seconds)
        self.under_way -= 1
        return httpx2.Response(200, content=WHOLE.body)


@pytest.mark.parametrize(("answer_seconds", "came"), [(0.4, [0, 3, 6, 9, 12]), (5.0, [0, 5, 10, 15, 20])])
def test_searches_of_several_objects_go_one_by_one_with_three_seconds_between(answer_seconds: float, came: list[float]):
    transport = Timed(answer_seconds)
    queue = PoliteQueue(3.0, clock=virtual_clock.now)

    async def test() -> None:
        async with httpx2.AsyncClient(transport=transport) as client, asyncio.TaskGroup() as group:
            one, other = ArxivSource(client, queue=queue), ArxivSource(client, queue=queue)
            for source in (one, other, one, other, one):
                group.create_task(source.search(SearchRequest("x", limit=1)))

    virtual_clock.run(test())
    assert transport.came == pytest.approx(came, abs=0.001)
    assert transport.most == 1


def test_searches_that_come_slowly_do_not_wait():
    transport = Timed(0.1)
    queue = PoliteQueue(3.0, clock=virtual_clock.now)

    async def test() -> None:
        async with httpx2.AsyncClient(transport=transport) as client:
            for _ in range(3):
                await ArxivSource(client, queue=queue).search(SearchRequest("x", limit=1))
                await asyncio.sleep(5)

    virtual_clock.run(test())
    assert transport.came == pytest.approx([0, 5.1, 10.2], abs=0.001)


def test_five_searches_over_http_take_at_least_four_pauses():
    pause = 0.05
    came: list[float] = []

    def route(_: ApiRequest) -> Reply:
        came.append(time.monotonic())
        return WHOLE

    async def test(server: ApiServer) -> float:
        server.routes["*"] = route
        queue = PoliteQueue(pause)
        started = time.monotonic()
        async with make_client() as client, asyncio.TaskGroup() as group:
            for source in [arxiv(client, server.base, queue=queue) for _ in range(5)]:
                group.create_task(source.search(SearchRequest("x", limit=1)))
        return started

    started = run(test)
    assert len(came) == 5
    assert came[-1] - started > 4 * pause - 0.01


def test_a_caller_who_leaves_the_queue_leaves_it_in_order():
    async def test(server: ApiServer) -> None:
        server.routes["*"] = WHOLE
        queue = PoliteQueue(0.02)
        async with make_client() as client:
            waiting = [
                asyncio.create_task(arxiv(client, server.base, queue=queue).search(SearchRequest("x", limit=1)))
                for _ in range(4)
            ]
            await asyncio.sleep(0)
            for task in waiting[1:3]:
                task.cancel()
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [False, True, True, False]
        assert len(server.requests) == 2

    run(test)


def test_the_queue_serves_one_event_loop_after_another():
    queue = PoliteQueue(0.001)
    for _ in range(2):
        hits, _requests = answered(partial(arxiv, queue=queue), WHOLE, "x")
        assert hits.passages


def test_the_limits_are_those_that_arxiv_asks_for_in_one_queue_of_all_objects():
    assert inspect.signature(ArxivSource).parameters["queue"].default is QUEUE
    assert (QUEUE.interval_seconds, QUEUE.file) == (3.0, Path("~/.cache/cairn/arxiv.queue"))
    assert (LIMITS.concurrency, LIMITS.requests, LIMITS.per_seconds) == (1, 1.0, 3.0)
