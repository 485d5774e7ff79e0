"""Researching a report: an outline, then a run of the loop for each section, several at once, under one budget.

The runs are ordinary rollouts: the caller says how one is driven (`drive`), so that a server can count it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal
from uuid import uuid4

from agent.errors import AgentError, QuestionError, SourceError
from agent.evidence import Frozen, Passage
from agent.loop.agent import Agent
from agent.loop.budgets import BudgetEnded, Control
from agent.loop.plain import PlainChat, plain_protocol
from agent.loop.recorder import Emit
from agent.plan import EVERY_SOURCE
from agent.policies.base import Sampling
from agent.report import writing
from agent.report.assembling import ReportHead, SectionResult, assemble, left_out
from agent.report.outline import MOST_SECTIONS, outline_of, read_outline
from agent.report.report import Outline, Report, ReportBudget, ReportState, ReportUsage
from agent.report.shared_budget import SharedBudget
from agent.sources.base import SearchRequest, ask, credits_of
from agent.sources.select import selected
from agent.trace import BudgetName, Event, Trace

AT_ONCE: Final = 4
"""Sections that are researched side by side."""
SECTIONS: Final = 6
_FOUND: Final = 40
"""Passages that the outline is made from."""
_TO_WRITE_FROM: Final = 14
_OUTLINE_SECONDS: Final = 0.25
_WRITING_SECONDS: Final = 0.3
"""Of the time that is left, what the outline may take, and what is kept for writing after a run."""
_EVERY_SECONDS: Final = 0.25
_ENDED: Final[dict[BudgetName, str]] = {"user": "you requested the report now", "seconds": "the time has ended"}


class ReportEvent(Frozen):
    """What happens on the way to a report."""

    kind: Literal["outline", "section_started", "section_ended", "used", "ended"]
    section: int | None = None
    """Its place in the outline, from 0."""
    heading: str = ""
    headings: tuple[str, ...] = ()
    """Of all sections, with `outline`."""
    run: str = ""
    """Id of the run of a section."""
    state: str = ""
    why: str = ""
    sentences: int = 0
    used: ReportUsage | None = None


class NotDriven(AgentError):
    """A run could not be started; the sentence says why."""


Rollout = Agent | PlainChat
Drive = Callable[[Rollout, Trace, Emit, Control], Awaitable[object]]
"""Drives one run; where it waits first, it starts what `Research.in_time` gives then."""


async def _drive(rollout: Rollout, trace: Trace, emit: Emit, control: Control) -> None:
    await rollout.run(trace, emit=emit, control=control)


@dataclass(frozen=True)
class ReportPlan:
    """What is requested."""

    question: str
    headings: tuple[str, ...] = ()
    """The user's own sections; without any, the outline is made."""
    sections: int = SECTIONS
    budget: ReportBudget = field(default_factory=ReportBudget)

    def __post_init__(self) -> None:
        """Refuse what cannot be researched.

        Raises:
            QuestionError: no question, or too many sections.
        """
        if not self.question.strip():
            raise QuestionError("the question is empty; write what the report is to be about")
        if len(self.headings) > MOST_SECTIONS or not 1 <= self.sections <= MOST_SECTIONS:
            raise QuestionError(f"a report has 1 to {MOST_SECTIONS} sections", about="sections")
        if any(not heading.strip() for heading in self.headings):
            raise QuestionError("a section's heading is empty; write a few words or a question", about="sections")


class Research:
    """One report on its way. `run` it once."""

    def __init__(
        self,
        agent: Agent,
        plan: ReportPlan,
        *,
        emit: Callable[[ReportEvent], None] = lambda event: None,
        drive: Drive = _drive,
        searched: Callable[[int, float], None] = lambda searches, credits: None,
        at_once: int = AT_ONCE,
        id: str = "",
    ) -> None:
        """Prepare it.

        Args:
            agent: who researches, with the options of the request.
            plan: what is requested.
            emit: called with each event as it happens.
            drive: drives one run.
            searched: hears of the outline's search, which belongs to no run: how many, and their credits.
            at_once: sections side by side.
            id: of the report; a new one by default.
        """
        self.plan = plan
        self._agent, self._emit, self._drive, self._searched = agent, emit, drive, searched
        self._gate = asyncio.Semaphore(at_once)
        self._head = ReportHead(
            id=id or uuid4().hex,
            question=plan.question.strip(),
            created=datetime.now(UTC).replace(microsecond=0),
            budget=plan.budget,
            policy=agent.policy.name,
            protocol=agent.protocol.name,
        )
        self._outline = Outline(title=plan.question.strip()[:200], sections=(), by="sources")
        self._results: list[SectionResult] = []
        self._waiting = 0
        """Sections that have not taken their share of the budget."""
        self._budget: SharedBudget | None = None
        self._controls: set[Control] = set()
        self._silence = ""
        """Why the engine gave no text the last time."""
        self._now = False
        self._emitted_at = 0.0

    @property
    def id(self) -> str:
        return self._head.id

    @property
    def used(self) -> ReportUsage:
        return self._budget.used if self._budget else ReportUsage()

    @property
    def seconds_left(self) -> float:
        return self._budget.seconds_left if self._budget else self.plan.budget.seconds

    @property
    def libraries(self) -> tuple[str, ...]:
        """Ids of the libraries that it searches."""
        return self._agent.libraries

    def in_time(self, rollout: Rollout) -> Rollout:
        """A run that begins now, though its share was taken earlier: with no more time than the report has left.

        Raises:
            NotDriven: that is too little.
        """
        if self._budget is None:
            return rollout
        keep = self._kept_for_writing(self._budget) if isinstance(rollout, Agent) else 0.0
        try:
            return replace(rollout, budgets=self._budget.in_time(rollout.budgets, keep_seconds=keep))
        except BudgetEnded as ended:
            raise NotDriven(_ended(ended.budget)) from ended

    def answer_now(self) -> None:
        """Stop searching: the sections that run end with what they have, the others are left out."""
        self._now = True
        for control in self._controls:
            control.answer_now()

    def report(self, state: ReportState = "running") -> Report:
        """The report as far as it goes."""
        return assemble(self._head, self._outline, self._results, state=state, used=self.used)

    async def run(self) -> Report:
        """Research it. What goes wrong in a source or an engine is in the report, never raised."""
        self._budget = budget = SharedBudget(self.plan.budget)
        try:
            found = await self._found(budget)
            await self._plan(budget, found)
            async with asyncio.TaskGroup() as group:
                for place in range(len(self._results)):
                    group.create_task(self._section(place, budget))
        except asyncio.CancelledError:
            self._results = [self._cancelled(result) for result in self._results]
            raise
        report = await asyncio.to_thread(self.report, self._state())
        self._emit(ReportEvent(kind="ended", state=report.state, used=report.used, sentences=len(report.sentences)))
        return report

    def _cancelled(self, result: SectionResult) -> SectionResult:
        return left_out(result, "cancelled", "cancelled") if result.state in ("waiting", "running") else result

    def _state(self) -> ReportState:
        states = {result.state for result in self._results}
        if states and states <= {"failed"}:
            return "failed"
        return "cut" if "left_out" in states else "done"

    async def _found(self, budget: SharedBudget) -> Sequence[Passage]:
        """What a search for the whole question finds: the outline is made from it."""
        agent = self._agent
        source = selected(agent.sources, only=agent.only, filters=agent.filters)[EVERY_SOURCE]
        cost = credits_of(source)
        try:
            budget.search(cost=cost)
        except BudgetEnded:
            return ()
        seconds = min(agent.budgets.search_seconds, budget.seconds_left)
        credits, usd, found = 0.0, 0.0, ()
        try:
            request = SearchRequest(self.plan.question, _FOUND, question=self.plan.question)
            result = await ask(source, request, seconds=seconds)
            credits, usd, found = result.credits or 0.0, result.usd, result.passages
        except SourceError as error:  # the sections' searches say what is wrong with it
            credits, usd = error.credits, error.usd
        budget.searched(cost=cost, credits=credits, usd=usd)
        self._searched(1, credits)
        return found

    async def _plan(self, budget: SharedBudget, found: Sequence[Passage]) -> None:
        plan = self.plan
        outline, passages = await asyncio.to_thread(
            outline_of, plan.question, found, headings=plan.headings, most=plan.sections
        )
        if self._agent.policy.instructed and not plan.headings:
            own = await self._written_outline(budget, found)
            if own is not None:
                outline, passages = own, ((),) * len(own.sections)
            elif not self._now:
                why = self._silence or "it wrote none that could be read"
                note = f"The model made no outline ({why}); this one is made from what was found."
                outline = outline.model_copy(update={"note": note})
        self._outline = outline
        pairs = zip(outline.sections, passages, strict=True)
        self._results = [SectionResult(planned, passages=of, about=plan.question) for planned, of in pairs]
        self._waiting = len(self._results)
        headings = tuple(planned.heading for planned in outline.sections)
        self._emit(ReportEvent(kind="outline", headings=headings, used=budget.used))

    async def _written_outline(self, budget: SharedBudget, found: Sequence[Passage]) -> Outline | None:
        rules = writing.OUTLINE_RULES.replace("{most}", str(self.plan.sections))
        request = writing.outline_request(self.plan.question, found)
        seconds = budget.seconds_left * _OUTLINE_SECONDS
        text = await self._write(budget, rules, request, tokens=writing.OUTLINE_TOKENS, seconds=seconds)
        return read_outline(text, self.plan.question, most=self.plan.sections)

    async def _write(self, budget: SharedBudget, rules: str, request: str, *, tokens: int, seconds: float) -> str:
        """What the model writes; empty where it may not or does not."""
        if self._now or seconds <= 0 or not (most := budget.tokens(tokens)):
            return ""
        agent = self._agent
        seconds = min(seconds, agent.budgets.seconds)
        budgets = replace(agent.budgets, policy_tokens=most, seconds=seconds, answer_seconds=0.0)
        sampling = Sampling(temperature=agent.sampling.temperature, top_p=agent.sampling.top_p)
        chat = PlainChat(agent.policy, plain_protocol(rules), sampling, budgets)
        trace = replace(agent, protocol=chat.protocol).new_trace(request)
        with suppress(NotDriven):
            await self._driven(budget, chat, trace, Control())
        budget.return_tokens(most, trace.usage)
        self._silence = trace.stopped.detail if trace.stopped and trace.stopped.reason == "engine" else ""
        return trace.answer or ""

    async def _driven(self, budget: SharedBudget, rollout: Rollout, trace: Trace, control: Control) -> None:
        """Drive one run, and count what it uses."""

        def emit(event: Event) -> None:
            self._progress(budget)

        budget.watch(trace)
        self._controls.add(control)
        if self._now:
            control.answer_now()
        try:
            await self._drive(rollout, trace, emit, control)
        finally:
            self._controls.discard(control)

    def _progress(self, budget: SharedBudget) -> None:
        """Say what is used, now and then."""
        now = asyncio.get_running_loop().time()
        if now - self._emitted_at >= _EVERY_SECONDS:
            self._emitted_at = now
            self._emit(ReportEvent(kind="used", used=budget.used))

    async def _section(self, place: int, budget: SharedBudget) -> None:
        async with self._gate:
            ended = await self._researched(place, self._results[place], budget)
        self._results[place] = ended
        event = ReportEvent(
            kind="section_ended",
            section=place,
            heading=ended.planned.heading,
            run=ended.trace.id if ended.trace else "",
            state=ended.state,
            why=ended.why,
            sentences=len(ended.sentences),
            used=budget.used,
        )
        self._emit(event)

    async def _researched(self, place: int, result: SectionResult, budget: SharedBudget) -> SectionResult:
        agent = self._agent
        cost = credits_of(selected(agent.sources, only=agent.only, filters=agent.filters)[EVERY_SOURCE])
        waiting, self._waiting = self._waiting, self._waiting - 1
        if self._now:
            return left_out(result, _ENDED["user"])
        try:
            keep = self._kept_for_writing(budget)
            share = budget.take(agent.budgets, waiting=waiting, cost=cost, keep_seconds=keep)
        except BudgetEnded as ended:
            return left_out(result, _ended(ended.budget))
        searcher = replace(agent, budgets=share)
        trace = searcher.new_trace(result.planned.question, conversation=self.id)
        self._results[place] = replace(result, state="running", trace=trace)
        self._emit(ReportEvent(kind="section_started", section=place, heading=result.planned.heading, run=trace.id))
        try:
            await self._driven(budget, searcher, trace, Control())
        except NotDriven as error:
            return left_out(result, str(error))
        finally:
            budget.give_back(share, trace.usage)
        return await self._finished(replace(result, trace=trace), trace, budget)

    def _kept_for_writing(self, budget: SharedBudget) -> float:
        """Seconds that no search may use."""
        return budget.seconds_left * _WRITING_SECONDS if self._agent.policy.instructed else 0.0

    async def _finished(self, result: SectionResult, trace: Trace, budget: SharedBudget) -> SectionResult:
        """The section of a run that has ended."""
        stopped = trace.stopped
        if stopped is None or stopped.reason in ("engine", "cancelled", "interrupted"):
            return left_out(result, stopped.detail if stopped else "its run did not end", "failed")
        result = replace(result, state="researched", why="" if stopped.reason == "answered" else _why(stopped.budget))
        question = result.planned.question
        if self._agent.policy.instructed:
            found = await asyncio.to_thread(result.choose, enough=_TO_WRITE_FROM)
            text = ""
            if found:
                rules = writing.SECTION_RULES.replace("{most}", str(writing.MOST_SENTENCES))
                request = writing.section_request(question, found)
                seconds = budget.seconds_left
                text = await self._write(budget, rules, request, tokens=writing.SECTION_TOKENS, seconds=seconds)
            kept, refused = await asyncio.to_thread(writing.read_section, text, found)
            result = replace(result, refused=tuple(refused))
            if kept:
                return replace(result, sentences=tuple(kept), written=True)
        return replace(result, sentences=await asyncio.to_thread(result.choose))


def _why(budget: BudgetName | None) -> str:
    """Why a section was researched less than it could have been; empty where that is as usual."""
    if budget in (None, "rounds", "context"):
        return ""
    return _ended(budget)


def _ended(budget: BudgetName) -> str:
    name = "tokens" if budget == "policy_tokens" else budget
    return _ENDED.get(budget, f"the budget of {name} has ended")
