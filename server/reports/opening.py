"""From a request to a report that can start. Each of its runs takes a slot and counts for its key, as any run does."""

import asyncio
from collections.abc import Callable
from typing import Final

from agent.errors import QuestionError
from agent.loop.budgets import FACTORS, Budgets, Control
from agent.loop.plain import PlainChat
from agent.loop.recorder import Emit
from agent.report import ReportBudget, ReportEvent, ReportPlan, Research
from agent.report.outline import MOST_SECTIONS
from agent.report.research import NotDriven, Rollout
from agent.sanitize.text import whole
from agent.trace import Trace
from server.auth.admission import Slot
from server.chat.service import CHAT_MODEL, Service, agent_of, level_of
from server.http.errors import ApiError, bad_request, sentence
from server.reports.request import ReportBudgetOptions, ReportRequest

MOST_SECONDS: Final = 1_800.0
_LONGEST_WAIT_SECONDS: Final = 60
"""A limit that lasts longer is no queue: a key has used up its day."""
_WAIT_SECONDS: Final = 0.5


def open_report(
    service: Service, request: ReportRequest, emit: Callable[[ReportEvent], None] = lambda event: None
) -> Research:
    """Read a request into a report that can start.

    Raises:
        ApiError: it cannot be researched, or there is no room for it; nothing was started.
    """
    service.require(request.model)
    if request.model == CHAT_MODEL:
        raise bad_request(f"The model {CHAT_MODEL!r} does not search; leave 'model' out.", param="model")
    question = whole(request.question)
    if len(question) > service.question_chars:
        said = f"The question has {len(question):,} characters; at most {service.question_chars:,} are allowed."
        raise bad_request(said, param="question", code="question_too_long")
    agent = agent_of(service, request)
    headings = tuple(whole(heading) for heading in request.sections or ())
    budget = budget_of(request.budget or ReportBudgetOptions(), agent.budgets, factor=FACTORS[level_of(request)])
    try:
        plan = ReportPlan(question, headings=headings, sections=request.most_sections, budget=budget)
    except QuestionError as error:
        raise bad_request(sentence(error), param=error.about) from error
    service.admission.check(service.keys.limit)
    service.keys.may_search(1)

    async def drive(rollout: Rollout, trace: Trace, emit: Emit, control: Control) -> None:
        with await _slot(service, lambda: research.seconds_left):
            keep = _keep_nothing if isinstance(rollout, PlainChat) else None
            await service.run(rollout, trace, emit, control, keep=keep)

    research = Research(agent, plan, emit=emit, drive=drive, searched=service.keys.searched)
    return research


def budget_of(wanted: ReportBudgetOptions, own: Budgets, *, factor: float) -> ReportBudget:
    """`factor` of the usual budget, or what the request says, and never more than so many runs may use."""
    usual = ReportBudget()
    return ReportBudget(
        seconds=min(wanted.seconds or usual.seconds * factor, MOST_SECONDS),
        searches=min(wanted.searches or int(usual.searches * factor), max(1, own.searches) * MOST_SECTIONS),
        passages=min(wanted.passages or int(usual.passages * factor), max(1, own.passages) * MOST_SECTIONS),
        tokens=min(wanted.tokens or int(usual.tokens * factor), own.policy_tokens * (MOST_SECTIONS + 1)),
        credits=own.credits if wanted.credits is None else min(wanted.credits, own.credits),
    )


async def _slot(service: Service, seconds_left: Callable[[], float]) -> Slot:
    """Wait for a slot as long as the report has time: its sections queue behind each other, and behind other runs.

    Raises:
        NotDriven: none came free, or the key may use no more today.
    """
    while True:
        try:
            return await service.enter()
        except ApiError as error:
            wait = int((error.headers or {}).get("retry-after", "0"))
            said = error.body["error"]["message"]
            if service.admission.closed or wait > _LONGEST_WAIT_SECONDS or seconds_left() <= _WAIT_SECONDS:
                raise NotDriven(f"it found no slot: {said[:1].lower()}{said[1:].rstrip('.')}") from error
        await asyncio.sleep(_WAIT_SECONDS)


def _keep_nothing(trace: Trace) -> None:
    """The outline and the words of a section are in the report."""
