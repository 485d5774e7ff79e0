"""One claim of an earlier run, checked again: searched for again, beside what it cited then. No model is involved."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.checks import check_claim
from agent.evidence import Passage
from agent.loop.agent import Agent, record_end
from agent.loop.budgets import Control
from agent.loop.execute import execute
from agent.loop.recorder import Emit, Recorder
from agent.plan import EVERY_SOURCE, Node, Plan
from agent.sources.base import Source, credits_of
from agent.sources.select import selected
from agent.trace import BudgetName, Claim, Evidenced, Gathered, Planned, Searched, SearchFailed, Stopped, Trace

_SAID = {
    "verbatim": "Supported: a passage says it in these words.",
    "close": "Supported: a passage says it in other words.",
    "contradicted": "Contradicted: a passage says something else.",
}


@dataclass(frozen=True)
class Recheck:
    """A rollout that checks one claim."""

    agent: Agent
    """For its sources and budgets."""
    claim: Claim
    cited: Sequence[Passage]
    """What it cited then."""
    question: str = ""
    """That its run answered: a second query."""

    async def run(self, trace: Trace, *, emit: Emit, control: Control) -> Trace:
        """Write the check onto `trace`. However it ends is recorded as the loop records it."""
        recorder = Recorder(trace, emit)
        return await record_end(recorder, self._check(recorder, control))

    async def _check(self, recorder: Recorder, control: Control) -> Stopped:
        trace = recorder.trace
        queries = dict.fromkeys(text for text in (self.claim.text, self.question) if text)
        sources = selected(self.agent.sources, only=trace.only, filters=trace.filters)
        most, budget = self._affordable(credits_of(sources[EVERY_SOURCE]))
        names = zip("AB", list(queries)[:most], strict=False)
        plan = Plan(nodes=tuple(Node(id=id, query=query, source=EVERY_SOURCE) for id, query in names))
        if plan.nodes:
            recorder.count(rounds=1, searches=len(plan.nodes))
            recorder.step(Planned(round=1, plan=plan))
        found: list[Passage] = []

        def record(step: Searched | SearchFailed) -> None:
            recorder.step(step)
            recorder.count(credits=step.credits, usd=step.usd)
            if isinstance(step, Searched):
                found.extend(step.passages)
            else:
                trace.infrastructure = True

        first, began = len(trace.steps), recorder.seconds
        ended = await self._searched(plan, sources, trace.question, record, control) if plan.nodes else budget
        recorder.spent(search=recorder.seconds - began)
        recorder.in_plan_order(plan, since=first)
        passages = _numbered(self.cited, found, most=self.agent.budgets.passages)
        trace.passages.extend(passages)
        recorder.count(passages=len(passages))
        recorder.step(Gathered(round=1, passages=passages, dropped=len(self.cited) + len(found) - len(passages)))
        claim = _checked(self.claim, passages)
        recorder.step(Evidenced(text=claim.text, claims=(claim,)))
        recorder.answer(_said(claim, len(passages)), by_loop=True)
        return Stopped(reason="forced", budget=ended) if ended else Stopped(reason="answered")

    def _affordable(self, cost: float) -> tuple[int, BudgetName]:
        """How many searches the budgets allow, and which of these ends first."""
        budgets = self.agent.budgets
        paid = int(budgets.credits // cost) if cost else budgets.searches
        return (paid, "credits") if paid < budgets.searches else (budgets.searches, "searches")

    async def _searched(
        self,
        plan: Plan,
        sources: Mapping[str, Source],
        question: str,
        record: Callable[[Searched | SearchFailed], None],
        control: Control,
    ) -> BudgetName | None:
        """Search; gives the budget that ended it."""
        budgets = self.agent.budgets
        scope = asyncio.timeout(budgets.seconds)
        try:
            async with scope:
                with control.cutting(scope):
                    await execute(
                        plan,
                        sources,
                        round=1,
                        limit=self.agent.protocol.passages,
                        seconds=budgets.search_seconds,
                        emit=record,
                        question=question,
                    )
        except TimeoutError:
            if not scope.expired():
                raise
            return "user" if control.answer_requested else "seconds"
        return None


def _numbered(cited: Sequence[Passage], found: Sequence[Passage], *, most: int) -> tuple[Passage, ...]:
    """Each once, numbered from 1; one that was cited is as it is found now.

    A hit of the web is known by its address and has other words for another query: of one both are kept.
    """
    now = {(passage.source, passage.id): passage for passage in reversed(found) if passage.id != passage.url}
    as_now = [now.get((passage.source, passage.id), passage) for passage in cited]
    distinct = {(passage.source, passage.id, passage.text): passage for passage in reversed([*as_now, *found])}
    ordered = dict.fromkeys((passage.source, passage.id, passage.text) for passage in [*as_now, *found])
    kept = [distinct[key] for key in ordered][:most]
    return tuple(passage.model_copy(update={"number": number}) for number, passage in enumerate(kept, start=1))


def _checked(claim: Claim, passages: Sequence[Passage]) -> Claim:
    """The claim held against every passage; it cites those that say it, or the one that says something else."""
    shown = {passage.number: (passage,) for passage in passages}
    bare = Claim(text=claim.text, cites=tuple(shown))
    judged = check_claim(bare, shown)
    quoted = tuple(dict.fromkeys(quote.number for quote in judged.quotes))
    if judged.check == "contradicted":
        quoted = tuple(
            n for n in shown if check_claim(bare.model_copy(update={"cites": (n,)}), shown).check == "contradicted"
        )
    return judged.model_copy(update={"cites": quoted})


def _said(claim: Claim, passages: int) -> str:
    marks = "".join(f" [{number}]" for number in claim.cites)
    why = _SAID.get(claim.check, f"Not verified: none of the {passages} passages that were found says it.")
    return f"{why[:-1]}{marks}. “{claim.text}”"
