"""A run that goes on while the page comes and goes: commands, reloads and cut connections."""

import time

import pytest
from playwright.sync_api import Browser, expect

from agent.loop.agent import Agent
from agent.outbound.llm import LlmClient
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from server.evidence.answering import Answering
from tests.agent.test_fills import saying
from tests.server.live import ANSWER, SEARCH, FakeSource
from tests.server.threaded import in_thread
from tests.web.pages import Watched, scripted, tab
from tests.web.servers import HeldSource, Wire, reader, wire

pytestmark = pytest.mark.web

QUESTION = "Where was the director of Aurora Falls born?"
REFUSED = "net::ERR_"


def seen_once(page: Watched) -> None:
    """The page shows each step of the trace, and each only once."""
    trace = page.trace()
    apart = ("searched", "search_failed", "skipped", "filled", "gathered")
    wanted = [step["kind"] for step in trace["steps"] if step["kind"] not in apart]
    rows = page.page.eval_on_selector_all(".list > .step", "all => all.map(s => s.classList[1])")
    assert [{"round": "planned"}.get(row, row) for row in rows] == wanted
    assert page.page.locator(".list .node").count() == sum(
        len(step["plan"]["nodes"]) for step in trace["steps"] if step["kind"] == "planned"
    )


def test_a_search_that_waits_is_shown_as_running_and_cancel_reaches_the_server(browser: Browser) -> None:
    held = HeldSource()
    with in_thread(scripted(sources={"web": held})) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        expect(page.page.locator(".node.running")).to_have_count(1)
        expect(page.page.locator(".now")).to_contain_text("Searching web")
        page.page.click("#tab-graph")
        expect(page.page.locator(".vertex.node[data-state=running]")).to_have_count(1)
        page.page.get_by_role("button", name="Cancel", exact=True).click()
        page.ended()
        expect(page.page.locator(".now")).to_have_text("Cancelled")
        assert page.api(f"/api/runs/{page.run_id}")["state"] == "cancelled"


def test_answer_now_reaches_the_server(browser: Browser) -> None:
    held = HeldSource()
    turns = (SEARCH, "\n- Nothing.\n</evidence>", "Trieste")
    with in_thread(scripted(turns, sources={"web": held})) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        assert held.requested.wait(10)
        page.page.get_by_role("button", name="Answer now").click()
        page.ended()
        stopped = page.trace()["steps"][-1]
        assert (stopped["reason"], stopped["budget"]) == ("forced", "user")
        expect(page.page.locator(".now")).to_contain_text("you requested the answer")


def test_a_run_goes_on_when_its_page_is_reloaded_in_the_middle(browser: Browser) -> None:
    held = HeldSource()
    with in_thread(scripted(sources={"web": held})) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        expect(page.page.locator(".node.running")).to_have_count(1)
        run = page.run_id
        page.page.reload()
        expect(page.page.locator(".node.running")).to_have_count(1)
        assert page.run_id == run
        held.go()
        page.ended()
        seen_once(page)
        expect(page.page.locator(".answer-text")).to_contain_text("Trieste")


def run_over(browser: Browser, hand: Wire, held: HeldSource, *, cuts: int) -> None:
    with tab(browser, hand.address) as page:
        page.ask(QUESTION)
        expect(page.page.locator(".node.running")).to_have_count(1)
        for _ in range(cuts):
            before = hand.cut()
            until = time.monotonic() + 15
            while hand.connections == before:
                assert time.monotonic() < until, "the page does not come again"
                page.page.wait_for_timeout(50)
        held.go()
        page.ended()
        seen_once(page)
        page.complaints = [said for said in page.complaints if REFUSED not in said]


def test_a_connection_that_is_cut_is_resumed_without_a_lost_or_doubled_step(browser: Browser) -> None:
    held = HeldSource()
    with in_thread(scripted(sources={"web": held})) as address, wire(address) as hand:
        run_over(browser, hand, held, cuts=3)


def test_the_page_says_that_the_connection_is_lost_and_reconnects_when_the_server_can_be_reached(
    browser: Browser,
) -> None:
    held = HeldSource()
    with (
        in_thread(scripted(sources={"web": held})) as address,
        wire(address) as hand,
        tab(browser, hand.address) as page,
    ):
        page.ask(QUESTION)
        expect(page.page.locator(".node.running")).to_have_count(1)
        hand.refuses = True
        hand.cut()
        expect(page.page.locator(".lost")).to_be_visible()
        held.go()
        hand.refuses = False
        page.ended()
        expect(page.page.locator(".lost")).to_have_count(0)
        seen_once(page)
        page.complaints = [said for said in page.complaints if REFUSED not in said]


def test_the_waterfall_shows_searches_that_ran_at_the_same_time_and_the_graph_the_query_that_was_filled_in(
    browser: Browser,
) -> None:
    plan = "<search>\nA: director of Aurora Falls (web)\nB: birthplace of #A (kg)\nC: premiere (web)\n</search>"
    policy = ScriptedPolicy(saying(plan, {"B": "birthplace of Lina Orr</fill>"}, last=ANSWER))
    sources = {"web": FakeSource("web"), "kg": FakeSource("kg"), "all": FakeSource("all")}
    agent = Agent(policy=policy, protocol=protocol_named("cairn"), sources=sources)
    with in_thread(scripted(agent=agent)) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        page.ended()
        expect(page.page.locator(".node", has_text="birthplace of Lina Orr")).to_have_count(1)
        page.page.click("#tab-graph")
        expect(page.page.locator(".edge.filled")).to_have_count(1)
        expect(page.page.locator(".fill")).to_have_attribute("title", "birthplace of Lina Orr")
        page.page.click("#tab-waterfall")
        expect(page.page.locator(".fall[data-kind=fill]")).to_have_count(1)
        page.page.click("#tab-raw")
        expect(page.page.locator(".piece.fork")).not_to_have_count(0)


def test_the_evidence_goes_to_another_model_and_its_answer_stands_beside_ours(browser: Browser) -> None:
    with reader() as url:
        answering = Answering([LlmClient(base_url=url, model="other-model")])
        with in_thread(scripted(answering=answering)) as address, tab(browser, address) as page:
            page.ask(QUESTION)
            page.ended()
            page.page.click("#tab-evidence")
            page.page.get_by_role("button", name="Send").click()
            beside = page.page.locator(".beside-ours")
            expect(beside).to_contain_text("Trieste")
            expect(beside).to_contain_text("Frank Herbert")
            expect(beside).to_contain_text("other-model")


def test_where_the_policy_does_not_know_no_source_is_cited_for_that(browser: Browser) -> None:
    turns = (SEARCH, "<evidence>\n- Lina Orr was born in Trieste. [1]\n</evidence>\n<answer>I do not know</answer>")
    with in_thread(scripted(turns)) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        page.ended()
        answer = page.page.locator(".answer")
        expect(answer).to_contain_text("The passages that were found do not say it.")
        expect(answer.locator(".cites")).to_have_count(0)
        expect(answer.get_by_label("What was found on the way")).to_contain_text("Trieste")


@pytest.mark.parametrize("answer", ["1944.", "1944. [1]", "1944. That was the year."])
def test_a_number_with_a_full_stop_is_shown_as_it_is(browser: Browser, answer: str) -> None:
    turns = (SEARCH, f"<evidence>\n- Lina Orr was born in Trieste. [1]\n</evidence>\n<answer>{answer}</answer>")
    with in_thread(scripted(turns)) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        page.ended()
        text = page.page.locator(".answer-text")
        start = text.locator("ol").get_attribute("start") if text.locator("ol").count() else ""
        assert f"{start}{text.inner_text()}".startswith("1944")


def test_the_chip_of_a_claim_shows_its_own_check_though_others_cite_the_same(browser: Browser) -> None:
    claims = "- Aurora Falls was directed by Lina Orr. [1]\n- Lina Orr has a dog of seven years. [1]\n"
    turns = (SEARCH, f"<evidence>\n{claims}</evidence>\n<answer>Trieste [1]</answer>")
    with in_thread(scripted(turns)) as address, tab(browser, address) as page:
        page.ask(QUESTION)
        page.ended()
        checks: list[str] = []
        for claim in page.page.locator(".answer .claims li").all():
            claim.locator(".chip").focus()
            expect(claim.locator(".peek .check")).to_have_text(claim.locator("> .check").inner_text())
            checks.append(claim.locator("> .check").inner_text())
        assert len(set(checks)) == 2
        page.page.locator(".answer-text .chip").first.focus()
        expect(page.page.locator(".answer-text .peek")).to_be_visible()
        expect(page.page.locator(".answer-text .peek .check")).to_have_count(0)
