"""What a report may use, by its request, and by the time that its runs waited for their slots."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.report import Report
from agent.sources.base import SearchRequest, SearchResult
from server.auth.admission import Admission, AdmissionBounds
from server.reports.request import ReportBudgetOptions, ReportRequest
from server.reports.routes import open_report
from tests import virtual_clock
from tests.agent.report.library import QUESTION, Library, agent_of, researcher
from tests.server.live import make_service
from tests.server.reports.test_routes import REQUEST, RIGHT, client_of, run, service_of

SECONDS = 60.0


class Slow(Library):
    """Takes long for everything but the outline's search."""

    async def search(self, request: SearchRequest) -> SearchResult:
        if self.searches:
            await asyncio.sleep(9)
        return await super().search(request)


async def without_a_thread(work: Callable[..., object], *args: object, **kwargs: object) -> object:
    """`asyncio.to_thread` where time is virtual: it would jump while a thread works."""
    return work(*args, **kwargs)


def waited(bounds: AdmissionBounds, *, freed_after: float) -> Report:
    """A report of one section, whose server has its only slot free again after some seconds."""

    async def scene() -> Report:
        agent = agent_of(researcher(RIGHT), source=Slow())
        service = make_service(agent=agent, admission=Admission(bounds))
        budget = ReportBudgetOptions(seconds=SECONDS)
        research = open_report(service, ReportRequest(question=QUESTION, sections=["Lina Orr"], budget=budget))
        other = await service.admission.enter()
        asyncio.get_running_loop().call_later(freed_after, other.leave)
        report = await research.run()
        assert virtual_clock.now() <= SECONDS + 0.01
        assert service.admission.waiting == 0
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "to_thread", without_a_thread)
        return virtual_clock.run(scene())


@pytest.mark.parametrize("queue", [0, 1])
def test_a_run_whose_slot_came_late_ends_within_the_time_of_the_report(queue: int):
    report = waited(AdmissionBounds(runs=1, queue=queue), freed_after=50)
    assert [section.state for section in report.sections] == ["researched"]
    assert 50 < report.used.seconds <= SECONDS


@pytest.mark.parametrize(("freed_after", "why"), [(59.5, "the time has ended"), (100, "it found no slot")])
def test_a_section_whose_slot_came_too_late_is_left_out_with_its_reason(freed_after: float, why: str):
    report = waited(AdmissionBounds(runs=1, queue=1), freed_after=freed_after)
    assert [section.state for section in report.sections] == ["left_out"]
    assert report.sections[0].why.startswith(why)


def test_a_request_lowers_the_budget_and_never_raises_it():
    async def test() -> None:
        service = service_of()
        service = replace(service, agent=replace(service.agent, budgets=replace(service.agent.budgets, credits=5.0)))
        async with client_of(service) as client:
            low = {"searches": 2, "seconds": 5.0, "credits": 1.0}
            high = {"searches": 10**9, "seconds": 10**9, "credits": 10**9, "tokens": 10**9}
            for wanted, most in ((low, low), (high, {"seconds": 1800.0, "credits": 5.0, "searches": 384})):
                reply = (await client.post("/v1/reports", json=REQUEST | {"budget": wanted})).json()
                assert {name: reply["report"]["budget"][name] for name in most} == most

    run(test())


def test_effort_scales_what_a_report_and_its_runs_may_use():
    async def test() -> None:
        async with client_of(service_of()) as client:
            for effort, searches, seconds in (("low", 24, 150.0), ("medium", 48, 300.0), ("high", 96, 600.0)):
                reply = (await client.post("/v1/reports", json=REQUEST | {"reasoning_effort": effort})).json()
                budget = reply["report"]["budget"]
                assert (budget["searches"], budget["seconds"]) == (searches, seconds)
            said = {"reasoning_effort": "low", "budget": {"searches": 40}}
            budget = (await client.post("/v1/reports", json=REQUEST | said)).json()["report"]["budget"]
            assert (budget["searches"], budget["seconds"]) == (40, 150.0)

    run(test())
