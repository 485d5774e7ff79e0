"""One budget for all runs of a report: each takes its share when it starts, and gives back what it did not use."""

import asyncio
from dataclasses import replace
from math import ceil
from typing import Final

from agent.loop.budgets import BudgetEnded, Budgets
from agent.report.report import ReportBudget, ReportUsage
from agent.trace import Trace, Usage

LEAST_TOKENS: Final = 96
"""Of a run: fewer are no search and no answer."""
LEAST_SECONDS: Final = 1.0
_FOR_ANSWER: Final = 0.2
"""Share of a run's time for the answer that is forced when its searches have ended."""


class SharedBudget:
    """What is left of a report's budget. Shares are taken out at once, so that runs side by side can't overdraw it."""

    def __init__(self, budget: ReportBudget) -> None:
        """Start the clock."""
        self.budget = budget
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._searches, self._passages, self._tokens = budget.searches, budget.passages, budget.tokens
        self._credits = budget.credits
        self._traces: list[Trace] = []
        self._extra = Usage()

    @property
    def seconds_left(self) -> float:
        return self.budget.seconds - (self._clock() - self._began)

    @property
    def used(self) -> ReportUsage:
        """What all runs used until now, those that go on included."""
        usages = [self._extra, *(trace.usage for trace in self._traces)]
        return ReportUsage(
            seconds=self._clock() - self._began,
            searches=sum(usage.searches for usage in usages),
            passages=sum(usage.passages for usage in usages),
            tokens=sum(usage.policy_tokens for usage in usages),
            credits=sum(usage.credits for usage in usages),
            usd=sum(usage.usd for usage in usages),
        )

    def search(self, *, cost: float) -> None:
        """Take one search that belongs to no run.

        Raises:
            BudgetEnded: there is none, or it costs more than is left.
        """
        if self._searches < 1:
            raise BudgetEnded("searches")
        if cost > self._credits:
            raise BudgetEnded("credits")
        self._searches -= 1
        self._credits -= cost

    def searched(self, *, cost: float, credits: float, usd: float) -> None:
        """Count that search, once its cost is known."""
        self._credits += cost - credits
        self._extra = Usage(searches=self._extra.searches + 1, credits=self._extra.credits + credits, usd=usd)

    def take(self, own: Budgets, *, waiting: int, cost: float, keep_seconds: float = 0.0) -> Budgets:
        """A run's part of what is left.

        Args:
            own: what the run may use in any case.
            waiting: runs that have not taken theirs, this one included.
            cost: the most that one search may cost.
            keep_seconds: time that is kept for what comes after the run.

        Raises:
            BudgetEnded: there is too little left for a run.
        """
        searches = min(own.searches, ceil(self._searches / waiting))
        passages = min(own.passages, ceil(self._passages / waiting))
        tokens = min(own.policy_tokens, max(self._tokens // waiting, min(self._tokens, LEAST_TOKENS)))
        credits = min(own.credits, max(self._credits / waiting, min(self._credits, cost)))
        own = self.in_time(own, keep_seconds=keep_seconds)
        if tokens < min(LEAST_TOKENS, own.policy_tokens):
            raise BudgetEnded("policy_tokens")
        if not searches:
            raise BudgetEnded("searches")
        if not passages:
            raise BudgetEnded("passages")
        if credits < cost:
            raise BudgetEnded("credits")
        self._searches, self._passages = self._searches - searches, self._passages - passages
        self._tokens, self._credits = self._tokens - tokens, self._credits - credits
        return replace(
            own.with_tokens(tokens),
            searches=searches,
            passages=passages,
            credits=credits,
        )

    def in_time(self, own: Budgets, *, keep_seconds: float = 0.0) -> Budgets:
        """What a run that begins now may use: no more time than is left.

        Args:
            own: what it may use in any case.
            keep_seconds: time that is kept for what comes after the run.

        Raises:
            BudgetEnded: there is too little time left for a run.
        """
        seconds = self.seconds_left - keep_seconds
        if seconds < LEAST_SECONDS:
            raise BudgetEnded("seconds")
        answer_seconds = min(own.answer_seconds, seconds * _FOR_ANSWER)
        return replace(own, seconds=min(own.seconds, seconds - answer_seconds), answer_seconds=answer_seconds)

    def tokens(self, wanted: int) -> int:
        """Take tokens for a text that a model writes; 0 where they are too few for one."""
        taken = min(wanted, self._tokens)
        if taken < LEAST_TOKENS:
            return 0
        self._tokens -= taken
        return taken

    def watch(self, trace: Trace) -> None:
        """Count what this run uses from now on."""
        self._traces.append(trace)

    def give_back(self, share: Budgets, usage: Usage) -> None:
        """Return what an ended run did not use."""
        self._searches += share.searches - usage.searches
        self._passages += share.passages - usage.passages
        self._credits += share.credits - usage.credits
        self.return_tokens(share.policy_tokens, usage)

    def return_tokens(self, taken: int, usage: Usage) -> None:
        self._tokens += taken - usage.policy_tokens
