"""One budget for many runs: what they take and give back never comes to more than there is."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.loop.budgets import BudgetEnded, Budgets
from agent.report.report import ReportBudget
from agent.report.shared_budget import SharedBudget
from agent.trace import Usage

OWN = Budgets(searches=8, passages=24, policy_tokens=600)


def inside(scene: object) -> None:
    async def run() -> None:
        scene()  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues, reportUnknownVariableType]

    asyncio.run(run())


@given(
    runs=st.integers(1, 12), searches=st.integers(1, 40), passages=st.integers(1, 100), tokens=st.integers(1, 5_000),
    credits=st.floats(0, 20), cost=st.sampled_from([0.0, 0.5, 1.0]), part=st.floats(0, 1), at_once=st.booleans(),
)  # fmt: skip
def test_shares_of_all_runs_together_stay_within_the_budget(
    runs: int, searches: int, passages: int, tokens: int, credits: float, cost: float, part: float, *, at_once: bool
):
    def scene() -> None:
        budget = ReportBudget(searches=searches, passages=passages, tokens=tokens, credits=credits)
        shared = SharedBudget(budget)
        out: list[Budgets] = []
        spent = Usage()
        for waiting in range(runs, 0, -1):
            try:
                share = shared.take(OWN, waiting=waiting, cost=cost)
            except BudgetEnded:
                continue
            out.append(share)
            if not at_once:
                used = Usage(
                    searches=int(share.searches * part),
                    passages=int(share.passages * part),
                    policy_tokens=int(share.policy_tokens * part),
                    credits=share.credits * part,
                )
                shared.give_back(share, used)
                spent = Usage(
                    searches=spent.searches + used.searches,
                    passages=spent.passages + used.passages,
                    policy_tokens=spent.policy_tokens + used.policy_tokens,
                    credits=spent.credits + used.credits,
                )
        if at_once:
            assert sum(share.searches for share in out) <= searches
            assert sum(share.passages for share in out) <= passages
            assert sum(share.policy_tokens for share in out) <= tokens
            assert sum(share.credits for share in out) <= credits + 1e-6
        assert spent.searches <= searches
        assert spent.passages <= passages
        assert spent.policy_tokens <= tokens
        assert spent.credits <= credits + 1e-6
        assert all(share.answer_tokens <= share.policy_tokens for share in out)

    inside(scene)


def test_what_a_run_gave_back_is_there_for_the_next():
    def scene() -> None:
        shared = SharedBudget(ReportBudget(searches=4))
        first = shared.take(OWN, waiting=2, cost=0.0)
        assert first.searches == 2
        shared.give_back(first, Usage(searches=1))
        assert shared.take(OWN, waiting=1, cost=0.0).searches == 3

    inside(scene)


def test_a_run_gets_no_more_than_its_own_budget():
    def scene() -> None:
        share = SharedBudget(ReportBudget()).take(OWN, waiting=1, cost=0.0)
        assert (share.searches, share.passages, share.policy_tokens) == (8, 24, 600)

    inside(scene)


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (ReportBudget(tokens=50), "policy_tokens"),
        (ReportBudget(credits=0.5), "credits"),
        (ReportBudget(seconds=0.5), "seconds"),
    ],
)
def test_too_little_for_a_run_is_said_by_name(budget: ReportBudget, named: str):
    def scene() -> None:
        with pytest.raises(BudgetEnded) as ended:
            SharedBudget(budget).take(replace(OWN, seconds=60.0), waiting=1, cost=1.0)
        assert ended.value.budget == named

    inside(scene)


def test_a_run_and_its_forced_answer_end_within_the_time_of_the_report():
    def scene() -> None:
        share = SharedBudget(ReportBudget(seconds=10.0)).take(OWN, waiting=3, cost=0.0, keep_seconds=4.0)
        assert share.seconds + share.answer_seconds <= 6.0

    inside(scene)
