"""Golden traces: transcript in, exact text and token ids out. `python -m tests.agent.test_golden` writes them again."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.errors import PolicyError
from agent.loop.agent import Agent, Budgets
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import Source
from agent.trace import Trace
from agent.trace.io import read_traces, timeless, write_traces
from tests.agent.test_fills import PLAN, saying
from tests.conftest import ANSWER_TURN, PLAN_TURN, Broken, Echo, answer
from tests.invariants import violations

FOLDER = Path(__file__).parent.parent / "golden"
SOURCES: Mapping[str, Source] = {"web": Echo(), "news": Echo("news"), "kg": Broken(), "all": Echo("all")}
CHAIN = (
    "<search>\nA: who wrote Dune (web)\nB: when was it out (news, after 1960)\nC: its film (kg)\nA -> B -> C\n</search>"
)
FILLED = saying(PLAN.replace("kg", "news"), {"B": "birthplace of Lina Orr</fill>"})
SKIPPED = saying(PLAN, {"B": "skip</fill>"})
FOLLOWED = "<question>Who wrote the novel Dune?</question>\n<answer>Frank Herbert</answer>"
CASES: dict[str, tuple[str, Script, Budgets]] = {
    "cairn-answered": ("cairn", [PLAN_TURN, ANSWER_TURN], Budgets()),
    "cairn-without-search": ("cairn", ["<think>I know.</think>\n<answer>42</answer>"], Budgets()),
    "cairn-failed-source": ("cairn", [CHAIN, ANSWER_TURN], Budgets()),
    "cairn-rejected": ("cairn", ["<search>\nA: <x> (mars)\n</search>", "<answer>I do not know</answer>"], Budgets()),
    "cairn-forced": ("cairn", [PLAN_TURN, PLAN_TURN, "\n- It was Herbert. [1]\n</evidence>", "Herbert"], Budgets(rounds=1)),
    "cairn-filled": ("cairn", FILLED, Budgets()),
    "cairn-fill-skipped": ("cairn", SKIPPED, Budgets()),
    "cairn-restated": ("cairn", [FOLLOWED], Budgets()),
    "cairn-bad-format": ("cairn", ["I think it is Herbert."], Budgets()),
    "cairn-engine": ("cairn", [PLAN_TURN, PolicyError("the engine is gone")], Budgets()),
    "multisearch-answered": (
        "multisearch",
        ['<search>who wrote Dune, "Dune, the novel"</search>', "<merge>It was Herbert [1].</merge>\n<answer>Herbert</answer>"],
        Budgets(),
    ),
}  # fmt: skip


def golden(name: str) -> Trace:
    protocol, turns, budgets = CASES[name]
    agent = Agent(ScriptedPolicy(turns), protocol_named(protocol), SOURCES, budgets)
    return timeless(answer([], agent=agent)).model_copy(update={"id": name, "versions": {}})


@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_the_golden_trace_to_the_byte(name: str):
    (wanted,) = read_traces(FOLDER / f"{name}.jsonl")
    assert golden(name) == wanted


@pytest.mark.parametrize("name", CASES)
def test_a_golden_trace_agrees_with_itself(name: str):
    assert not violations(golden(name), protocol_named(CASES[name][0]))


def test_every_golden_trace_is_of_a_script():
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == sorted(CASES)


if __name__ == "__main__":
    for case in CASES:
        write_traces(FOLDER / f"{case}.jsonl", [golden(case)])
