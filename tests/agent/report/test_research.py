"""A whole report: its sections are researched by the loop under one budget, and only what is supported is in it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace

import pytest

from agent.errors import PolicyError, QuestionError
from agent.evidence import Passage
from agent.loop.budgets import Budgets
from agent.policies.scripted import Script
from agent.report import Report, ReportBudget, ReportEvent, ReportPlan, Research, unsupported
from agent.report.export import export
from agent.sources.base import SearchRequest, SearchResult, Source
from tests.agent.report.library import PAGES, QUESTION, Library, agent_of, passages, researcher
from tests.conftest import Broken

RIGHT = "Lina Orr was born in Trieste in 1931. [1][2][3]"
WRONG_YEAR = "Lina Orr was born in Trieste in 1935. [1][2][3]"
INVENTED = "Lina Orr kept a circus in Naples for many years. [1]"


def bounded(scene: Awaitable[Report]) -> Report:
    async def run() -> Report:
        async with asyncio.timeout(30):
            return await scene

    return asyncio.run(run())


def research(
    turns: Script,
    plan: ReportPlan | None = None,
    *,
    events: list[ReportEvent] | None = None,
    source: Source | None = None,
    budgets: Budgets | None = None,
    instructed: bool = False,
) -> Report:
    async def scene() -> Report:
        agent = agent_of(turns, source=source, budgets=budgets, instructed=instructed)
        heard = events if events is not None else []
        return await Research(agent, plan or ReportPlan(QUESTION, sections=4), emit=heard.append).run()

    return bounded(scene())


def texts(report: Report) -> list[str]:
    return [sentence.text for sentence in report.sentences]


def test_every_sentence_of_a_report_is_supported_when_it_is_checked_again_from_the_exported_json():
    exported = export(research(researcher(RIGHT, WRONG_YEAR, INVENTED)), "json").data
    report = Report.model_validate_json(exported)
    assert len(report.sentences) >= 6
    assert unsupported(report) == []
    numbers = {source.number for source in report.sources}
    for sentence in report.sentences:
        assert sentence.sources
        assert set(sentence.sources) <= numbers
        assert sentence.check in ("verbatim", "close")
        for quote in sentence.quotes:
            source = next(source for source in report.sources if source.number == quote.source)
            texts = [passage.text for passage in source.passages if passage.id == quote.passage]
            assert quote.text in {text[quote.start : quote.end] for text in texts}


def test_a_sentence_that_was_changed_afterwards_is_found():
    report = research(researcher(RIGHT))
    first = report.sections[0]
    forged = first.sentences[0].model_copy(update={"text": "Lina Orr was born in Naples in 1899."})
    section = first.model_copy(update={"sentences": (forged, *first.sentences[1:])})
    assert unsupported(report.model_copy(update={"sections": (section, *report.sections[1:])})) == [forged]


def test_what_no_source_says_is_listed_and_never_written_as_a_fact():
    report = research(researcher(RIGHT, INVENTED))
    assert any("circus" in one.text for one in report.unverified)
    assert not any("circus" in text for text in texts(report))


def test_a_contradicted_claim_is_named_with_both_sides():
    report = research(researcher(WRONG_YEAR))
    found = next(one for one in report.contradictions if "1935" in one.says)
    assert "1931" in found.against
    assert found.against_sources
    assert found.says_sources == ()
    assert not any("1935" in text for text in texts(report))


def test_two_sources_that_contradict_each_other_are_named():
    other = Passage(id="b.md#1", source="web", title="Lina Orr", text="Lina Orr was born in Trieste in 1929.", url="")
    library = Library([*passages(), other])
    report = research(researcher(RIGHT), source=library)
    assert any(one.says_sources and "1929" in f"{one.says} {one.against}" for one in report.contradictions)


def test_sources_are_numbered_once_over_the_whole_report_in_the_order_of_their_citation():
    report = research(researcher(RIGHT))
    assert [source.number for source in report.sources] == list(range(1, len(report.sources) + 1))
    cited = [number for sentence in report.sentences for number in sentence.sources]
    assert list(dict.fromkeys(cited)) == sorted(set(cited))
    assert len({source.title for source in report.sources}) == len(report.sources)


def test_nothing_is_said_twice():
    said = texts(research(researcher(RIGHT)))
    assert len(said) == len(set(said))


def test_without_a_model_that_writes_sentences_are_quotes_and_say_so():
    report = research(researcher("Lina Orr, place of birth: Trieste [1][2][3]"))
    assert {sentence.kind for sentence in report.sentences} == {"quote"}
    everything = " ".join(text for texts_ in PAGES.values() for text in texts_)
    assert all(text in everything for text in texts(report))


def test_sections_of_the_user_are_researched_in_their_order():
    plan = ReportPlan(QUESTION, headings=("The old harbour", "Who is Lina Orr?"))
    report = research(researcher(RIGHT), plan)
    assert [section.heading for section in report.sections] == ["The old harbour", "Who is Lina Orr?"]
    assert report.outline_by == "user"
    assert report.sections[0].sentences


@pytest.mark.parametrize("searches", [1, 2, 3, 5])
@pytest.mark.parametrize("passages", [1, 4, 240])
def test_the_budget_holds_over_all_sections_together(searches: int, passages: int):
    library = Library()
    budget = ReportBudget(searches=searches, passages=passages)
    report = research(researcher(RIGHT), ReportPlan(QUESTION, sections=4, budget=budget), source=library)
    assert report.used.searches == library.searches <= searches
    assert report.used.passages <= passages


def test_sections_that_the_budget_does_not_reach_are_said_to_be_left_out():
    report = research(researcher(RIGHT), ReportPlan(QUESTION, sections=3, budget=ReportBudget(searches=2)))
    states = [section.state for section in report.sections]
    assert states == ["researched", "left_out", "left_out"]
    assert report.state == "cut"
    assert report.sections[1].why == "the budget of searches has ended"
    assert "left out" in export(report, "md").data.decode()


def test_tokens_of_all_sections_stay_within_the_budget():
    report = research(researcher(RIGHT), ReportPlan(QUESTION, sections=4, budget=ReportBudget(tokens=1_000)))
    assert report.used.tokens <= 1_000


@dataclass
class Slow(Library):
    """Takes long for everything but the outline's search."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(self, request: SearchRequest) -> SearchResult:
        if self.searches:
            self.begun.set()
            await asyncio.sleep(60)
        return await super().search(request)


def test_the_time_holds_for_the_whole_report():
    budget = ReportBudget(seconds=2.0)
    report = research(researcher(RIGHT), ReportPlan(QUESTION, sections=6, budget=budget), source=Slow())
    assert report.used.seconds < 4.0
    assert report.sections


def test_answer_now_ends_the_search_and_writes_what_there_is():
    async def scene() -> Report:
        slow = Slow()
        made = Research(agent_of(researcher(RIGHT), source=slow), ReportPlan(QUESTION, sections=6), at_once=2)
        task = asyncio.create_task(made.run())
        await slow.begun.wait()
        made.answer_now()
        return await task

    report = bounded(scene())
    assert report.state == "cut"
    assert {section.why for section in report.sections if section.state == "left_out"} == {
        "you requested the report now"
    }
    assert report.sentences  # quotes of what the outline was made from


def test_cancelling_ends_every_run_and_what_was_done_can_still_be_read():
    async def scene() -> Report:
        slow = Slow()
        made = Research(agent_of(researcher(RIGHT), source=slow), ReportPlan(QUESTION))
        task = asyncio.create_task(made.run())
        await slow.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return made.report("cancelled")

    report = bounded(scene())
    assert report.state == "cancelled"
    assert {section.state for section in report.sections} == {"cancelled"}


def test_an_engine_that_fails_is_said_and_nothing_is_invented():
    report = research([PolicyError("no one listens")])
    assert report.state == "failed"
    assert report.sentences == ()
    assert {section.why for section in report.sections} == {"no one listens"}


def test_a_source_that_finds_nothing_leaves_one_section_that_says_so():
    report = research(researcher(), source=Library([]))
    assert report.sentences == ()
    assert [section.why for section in report.sections] == ["nothing was found that could be verified"]


def test_a_source_that_fails_is_named_and_no_search_is_made_up():
    report = research(researcher(RIGHT), source=Broken())
    assert report.sentences == ()
    assert report.sections[0].why == "its searches failed: no route"


def test_an_engine_that_fails_at_the_outline_is_said():
    report = research([PolicyError("no one listens")], instructed=True)
    assert (report.outline_by, report.state) == ("sources", "failed")
    assert "no one listens" in report.note


def test_events_tell_of_the_outline_each_section_and_what_is_used():
    events: list[ReportEvent] = []
    report = research(researcher(RIGHT), events=events)
    assert events[0].kind == "outline"
    assert list(events[0].headings) == [section.heading for section in report.sections]
    assert sorted(e.section or 0 for e in events if e.kind == "section_ended") == list(range(len(report.sections)))
    assert {e.run for e in events if e.kind == "section_started"} == {section.run for section in report.sections}
    assert events[-1].kind == "ended"
    assert events[-1].used == report.used


def test_the_same_library_gives_the_same_report():
    one, other = research(researcher(RIGHT)), research(researcher(RIGHT))
    assert texts(one) == texts(other)
    assert [section.heading for section in one.sections] == [section.heading for section in other.sections]


@pytest.mark.parametrize(
    "plan", [{"question": "  "}, {"question": "q", "sections": 0}, {"question": "q", "headings": (" ",)}]
)
def test_a_report_about_nothing_is_refused(plan: dict[str, object]):
    with pytest.raises(QuestionError):
        ReportPlan(**plan)  # pyright: ignore[reportArgumentType]


OUTLINE = "Title: Lina Orr and her film\n1. The film | What is Aurora Falls?\n2. Her life | Where was Lina Orr born?\n"
SECTION = (
    "Lina Orr was born in Trieste in 1931. [{orr}]\nShe was the queen of Sweden. [{orr}]\n"
    "No one knows why she stopped.\n"
)


def writer(outline: str) -> Script:
    """A model that writes the outline and the sections, too."""
    search = researcher(RIGHT)
    assert callable(search)

    def turn(context: str) -> str | Exception:
        if "You plan a report" in context:
            return outline
        if "You write one section" in context:
            quotations = context.split("Quotations:")[1]
            number = next(
                (line[1 : line.index("]")] for line in quotations.splitlines() if "born in Trieste" in line), "1"
            )
            return SECTION.format(orr=number)
        return search(context)

    return turn


def test_a_model_writes_outline_and_sections_and_unsupported_sentences_are_dropped():
    report = research(writer(OUTLINE), instructed=True)
    assert report.outline_by == "model"
    assert [section.heading for section in report.sections] == ["The film", "Her life"]
    assert "Lina Orr was born in Trieste in 1931." in texts(report)
    assert not any("queen" in text or "No one" in text for text in texts(report))
    assert any("queen" in one.text for one in report.unverified)
    assert unsupported(report) == []


def test_an_outline_that_cannot_be_read_is_replaced_and_that_is_said():
    report = research(writer("I would rather not."), instructed=True)
    assert report.outline_by == "sources"
    assert "it wrote none that could be read" in report.note
    assert unsupported(report) == []


def test_what_the_model_writes_counts_in_the_budget():
    budget = ReportBudget(tokens=1_500)
    plan = ReportPlan(QUESTION, sections=2, budget=budget)
    report = research(writer(OUTLINE), plan, instructed=True, budgets=replace(Budgets(), policy_tokens=500))
    assert report.used.tokens <= 1_500


def test_a_paid_source_that_is_not_searched_ends_no_budget():
    class Paid(Library):
        credits_per_search = 2.0

    agent = agent_of(researcher("Lina Orr was born in Trieste in 1931. [1]"), budgets=Budgets(credits=0))
    agent = replace(agent, sources={**agent.sources, "web": Paid(), "all": Paid()}, only=("corpus",))
    plan = ReportPlan(QUESTION, headings=("Lina Orr",), budget=ReportBudget(credits=0))
    report = asyncio.run(Research(agent, plan).run())
    assert [section.state for section in report.sections] == ["researched"]
