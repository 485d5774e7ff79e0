# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# A bug is put in the place of a function of any type.
"""Planted bugs: each is patched into the agent, and the invariants must see it. Without one they see nothing."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.evidence import Passage
from agent.loop import execute, observation, recorder, search_round
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.loop.context import ContextWriter
from agent.policies.scripted import ScriptedContext, ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Trace, samples
from agent.trace.samples import Sample
from tests import invariants, virtual_clock
from tests.agent.test_fills import LAST, PLAN, saying
from tests.agent.test_guards import ATTACK
from tests.conftest import PLAN_TURN, Broken, Echo
from tests.engines import Overrunning

CAIRN = protocol_named("cairn")
SHORT = CAIRN.model_copy(update={"budget_tokens": 200})
CHAIN = "<search>\nA: x late (web)\nB: y (web)\nC: of #A (web)\nD: of #B (web)\nA -> B\n</search>"
TWO = "<search>\nA: x late (web)\nB: y (web)\nC: of #A (web)\nD: of #B (web)\n</search>"
FILLED = {"B": "birthplace of Lina Orr</fill>", "C": "of x</fill>", "D": "of y</fill>"}


class Wordy(Echo):
    """Long passages, full of marks; what is "late" comes after a second."""

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        await asyncio.sleep(1 + ("late" in query))
        text = f"{query} {ATTACK} " + "word " * 40
        return SearchResult(
            tuple(
                Passage(id=f"{query}{n}", source=self.name, title="T", text=text, rank=n + 1)
                for n in range(request.limit)
            )
        )


def rounds(context: str) -> str:
    return PLAN_TURN if context.count("</information>") < 2 else LAST


def scenes() -> Iterator[tuple[ScriptedPolicy, TextProtocol, dict[str, Source]]]:
    wordy: dict[str, Source] = {name: Wordy(name) for name in ("web", "news", "kg", "all")}
    for plan in (PLAN, CHAIN, TWO):
        yield ScriptedPolicy(saying(plan, FILLED)), CAIRN, wordy
    yield ScriptedPolicy([PLAN_TURN, PLAN_TURN, LAST]), SHORT, wordy
    yield ScriptedPolicy([PLAN_TURN, "<search>A: z (web)</search>", LAST]), CAIRN, {**wordy, "news": Broken()}
    yield Overrunning([PLAN_TURN, LAST]), CAIRN, wordy


def seen() -> list[str]:
    """What the invariants say of a few rollouts; an error that a bug causes is seen, too."""

    async def main(agent: Agent) -> Trace:
        return await agent.run(agent.new_trace("Who wrote Dune?"))

    found: list[str] = []
    for policy, protocol, sources in scenes():
        trace = virtual_clock.run(main(Agent(policy, protocol, sources, Budgets())))
        found += invariants.violations(trace, protocol)
    return found


def test_without_a_bug_nothing_is_seen():
    assert seen() == []


# The bugs, each as (where, what, instead)

Bug = tuple[object, str, Callable[..., Any]]


def mask_off_by_one() -> Bug:
    original = samples.to_samples

    def shifted(trace: Trace) -> list[Sample]:
        return [replace(row, mask=(row.mask[-1], *row.mask[:-1])) for row in original(trace)]

    return invariants, "to_samples", shifted


def mask_over_the_shared_prefix() -> Bug:
    original = samples.to_samples

    def greedy(trace: Trace) -> list[Sample]:
        return [replace(row, mask=tuple(value != 0 for value in row.logprobs)) for row in _all_trained(original, trace)]

    return invariants, "to_samples", greedy


def _all_trained(original: Callable[[Trace], list[Sample]], trace: Trace) -> list[Sample]:
    rows = original(trace)
    main = rows[0]
    return [replace(r, logprobs=tuple(a or b for a, b in _pairs(r.logprobs, main.logprobs))) for r in rows]


def _pairs(one: Sequence[float], other: Sequence[float]) -> Iterator[tuple[float, float]]:
    for at, value in enumerate(one):
        yield value, other[at] if at < len(other) else 0.0


def what_is_sampled_begins_one_token_late() -> Bug:
    original = ScriptedContext._add  # pyright: ignore[reportPrivateUsage]

    def late(self: ScriptedContext, text: str, *, by: Any) -> Any:
        segment = original(self, text, by=by)
        if by == "policy":
            shorter = {"ids": (segment.ids or ())[1:], "logprobs": (segment.logprobs or ())[1:]}
            self.segments[-1] = segment.model_copy(update=shorter)
        return self.segments[-1]

    return ScriptedContext, "_add", late


def wrapper_without_its_white_space() -> Bug:
    original = TextProtocol.wrap
    return TextProtocol, "wrap", lambda self, lines: original(self, lines).strip()


def parents_without_their_white_space() -> Bug:
    original = search_round.show_parents
    return search_round, "show_parents", lambda *args, **named: original(*args, **named).rstrip()


def truncation_after_wrapping() -> Bug:
    original = search_round.show

    def cut(*args: Any, **named: Any) -> observation.Observation:
        whole = original(*args, **named | {"fits": lambda text: True})
        return replace(whole, text=whole.text[:300])

    return search_round, "show", cut


def numbers_that_begin_at_nought() -> Bug:
    original = observation.gather
    return observation, "gather", lambda *args, **named: original(*args, **named | {"first_number": 0})


def numbers_that_start_again() -> Bug:
    original = observation.gather
    return observation, "gather", lambda *args, **named: original(*args, **named | {"first_number": 1})


def child_before_its_parent() -> Bug:
    async def eager(self: Any) -> Any:
        async with asyncio.TaskGroup() as group:
            for node in self.plan.nodes:
                self._children[node.id] = []
                group.create_task(self._node(node, group))
        return self._found

    return execute._Execution, "run", eager  # pyright: ignore[reportPrivateUsage]


def environment_that_is_read() -> Bug:
    original = ContextWriter.say

    def read(self: Any, text: str, **named: Any) -> int | None:
        at = original(self, text, **named)
        for part in self._reader.feed(ATTACK):
            if hasattr(part, "tagged"):
                self.close(part)
        return at

    return ContextWriter, "say", read


def environment_that_is_the_policys() -> Bug:
    original = ContextWriter.append
    return ContextWriter, "append", lambda self, text, by: original(self, text, by="policy")


def environment_that_is_said_twice() -> Bug:
    original = ScriptedContext.append

    def twice(self: ScriptedContext, text: str, *, by: Any) -> Any:
        original(self, text, by=by)
        return original(self, text, by=by)

    return ScriptedContext, "append", twice


def strangers_text_that_is_not_sanitized() -> Bug:
    return observation, "sanitize", lambda text, tags: text


def fills_in_the_rollouts_own_context() -> Bug:
    return ScriptedContext, "fork", lambda self: self


def branches_in_the_order_in_which_they_ended() -> Bug:
    def commit(self: Any, *, since: int) -> None:
        for node in self._branches:
            self._branches[node].commit(node=node, since=since)

    return search_round.Fills, "commit", commit


def steps_in_the_order_in_which_they_ended() -> Bug:
    return recorder.Recorder, "in_plan_order", lambda self, plan, since: None


def a_query_that_is_searched_as_it_was_written() -> Bug:
    original = search_round.Fills.fill

    async def unfilled(self: Any, node: Any, found: Any) -> Any:
        return await original(self, node, found) and node

    return search_round.Fills, "fill", unfilled


def white_space_that_is_said_again() -> Bug:
    return ContextWriter, "_there_already", lambda self, text: 0


def tokens_of_fills_that_do_not_count() -> Bug:
    original = recorder.Recorder.count

    def count(self: Any, **amounts: float) -> None:
        if "policy_tokens" not in amounts or not any(s.kind == "planned" for s in self.trace.steps):
            original(self, **amounts)

    return recorder.Recorder, "count", count


BUGS = [
    mask_off_by_one, mask_over_the_shared_prefix, what_is_sampled_begins_one_token_late,
    wrapper_without_its_white_space, parents_without_their_white_space, truncation_after_wrapping,
    numbers_that_begin_at_nought, numbers_that_start_again, child_before_its_parent, environment_that_is_read,
    environment_that_is_the_policys, environment_that_is_said_twice, strangers_text_that_is_not_sanitized,
    fills_in_the_rollouts_own_context, branches_in_the_order_in_which_they_ended,
    steps_in_the_order_in_which_they_ended, a_query_that_is_searched_as_it_was_written, white_space_that_is_said_again,
    tokens_of_fills_that_do_not_count,
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_seen(bug: Callable[[], Bug], monkeypatch: pytest.MonkeyPatch):
    where, what, instead = bug()
    monkeypatch.setattr(where, what, instead)
    assert seen()
