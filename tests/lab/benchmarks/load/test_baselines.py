"""The race's questions and its policy; the order of our own searches; a small run; what its figures say."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.cli import run
from agent.errors import SetupError
from agent.protocols import protocol_named
from lab.benchmarks.load.baselines.contenders import NAMES, OURS, SCRIPTS, Name, cairn_service, contender
from lab.benchmarks.load.baselines.policy import PLAN, completion
from lab.benchmarks.load.baselines.race import Race, TaskAlone, Together
from lab.benchmarks.load.baselines.report import page, tables
from lab.benchmarks.load.baselines.tasks import (
    TASKS,
    Values,
    answer_of,
    found_in,
    longest_path_seconds,
    passage_of,
    query_of,
    question_of,
    ready,
    solution,
)
from lab.benchmarks.load.baselines.world import World
from server.launch import address_of, bind
from tests.server.live import serving

CLIENTS = ("m7", "m8")


def levels(task: str) -> list[list[str]]:
    """The searches that may run at the same time, one longest path after the other."""
    found: list[list[str]] = []
    values: Values = {}
    while nodes := ready(task, values):
        found.append(nodes)
        said = " ".join(passage_of(query_of(task, "m7", node, values)) for node in nodes)
        values |= found_in(said, task, "m7")
    return found


@pytest.mark.parametrize("task", TASKS)
def test_who_reads_what_the_searches_give_has_the_solution(task: str):
    values: Values = {}
    for nodes in levels(task):
        said = " ".join(passage_of(query_of(task, "m7", node, values)) for node in nodes)
        values |= found_in(said, task, "m7")
    assert answer_of(task, values) == solution(task, "m7")
    assert len(levels(task)) == round(10 * longest_path_seconds(task))


def test_a_value_depends_on_the_values_before_it():
    assert solution("chain", "m7") != solution("chain", "m8")
    guessed = passage_of(query_of("chain", "m7", "B", {"A": "00000000"}))
    assert solution("chain", "m7") not in guessed


def test_what_another_question_found_is_not_read():
    assert not found_in(passage_of(query_of("pair", "m7", "A", {})), "pair", "m8")
    assert set(found_in(passage_of(query_of("pair", "m7", "A", {})), "pair", "m7")) == {"A"}


def reply(task: str, *, said: str = "", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question_of(task, "m7")}]
    messages += [{"role": "user", "content": said}] if said else []
    return json.loads(completion({"model": "rounds", "messages": messages} | more))["choices"][0]["message"]


def test_a_caller_of_tools_gets_all_calls_that_can_run_now():
    first = reply("pair", tools=[{}])["tool_calls"]
    assert [call["id"] for call in first] == ["call_A", "call_B"]
    found = passage_of(query_of("chain", "m7", "A", {}))
    (call,) = reply("chain", said=found, tools=[{}])["tool_calls"]
    assert found.removesuffix(".").rsplit(" ", 1)[1] in call["function"]["arguments"]


def test_a_whole_plan_names_what_a_query_needs_and_a_fill_holds_it():
    plan = reply("diamond", model=PLAN)["content"]
    assert "D: D of diamond m7 given #B #C (web)" in plan
    found = passage_of(query_of("chain", "m7", "A", {}))
    fill = reply("chain", said=f"{found}\n{protocol_named('cairn').ask_fill_text('B')}", model=PLAN)["content"]
    assert fill == f"<fill>B of chain m7 given {found.removesuffix('.').rsplit(' ', 1)[1]}</fill>"


def test_the_policy_stops_at_the_stop_texts_as_servers_do():
    whole, cut = reply("pair"), reply("pair", stop=["</search>", "</answer>"])
    assert whole["content"] == cut["content"] + "</search>"


class Barrier:
    """Searches end only when all of their level have begun, for every client: who makes two of them in turn hangs."""

    def __init__(self, task: str) -> None:
        self._level = {node: at for at, nodes in enumerate(levels(task)) for node in nodes}
        self._missing = Counter({at: len(CLIENTS) * len(nodes) for at, nodes in enumerate(levels(task))})
        self._all_began = {at: asyncio.Event() for at in self._missing}
        self.order: list[str] = []
        """Nodes as their searches began."""

    async def __call__(self, query: str) -> None:
        node = query.split()[0]
        self.order.append(node)
        at = self._level[node]
        self._missing[at] -= 1
        if not self._missing[at]:
            self._all_began[at].set()
        await self._all_began[at].wait()


@asynccontextmanager
async def live(world: World) -> AsyncGenerator[str]:
    listener = bind("127.0.0.1", 0)
    task = asyncio.create_task(world.serve([listener]))
    try:
        yield address_of(listener)
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", OURS)
def test_ours_waits_once_a_step_of_the_longest_path_and_asks_the_model_no_more_than_it_must(name: Name, task: str):
    async def race() -> tuple[list[str], Barrier, int]:
        wait = Barrier(task)
        world = World(wait)
        async with (
            live(world) as address,
            serving(cairn_service(OURS[name], address, store="memory")) as ours,
            httpx2.AsyncClient(base_url=ours, timeout=20, trust_env=False) as client,
        ):

            async def ask(marker: str) -> str:
                messages = [{"role": "user", "content": question_of(task, marker)}]
                got = await client.post("/v1/chat/completions", json={"model": "cairn", "messages": messages})
                return got.json()["choices"][0]["message"]["content"]

            return await asyncio.gather(*(ask(marker) for marker in CLIENTS)), wait, world.turns

    answers, searched, turns = asyncio.run(race())
    assert answers == [solution(task, marker) for marker in CLIENTS]
    assert len(searched.order) == len(CLIENTS) * len(TASKS[task])
    held_back = sum(1 for parents in TASKS[task].values() if parents)
    once = len(levels(task)) + 1 if name == "cairn_rounds" else 2 + held_back
    assert turns == len(CLIENTS) * once


@pytest.mark.slow
def test_a_small_race_of_ours_and_the_plain_loop_gives_every_right_answer(capsys: pytest.CaptureFixture[str]):
    sizes = ["--times", "1", "--clients", "2", "--seconds", "1", "--rounds", "1", "--no-langgraph"]
    assert run(["bench", "baselines", "--python", sys.executable, *sizes, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["wrong"] == 0
    for name in (*OURS, "plain"):
        assert figures[f"{name}_requests_per_s"] > 0
        for task in TASKS:
            assert figures[f"{name}_{task}_ms_p50"] >= 1000 * longest_path_seconds(task)


def test_a_missing_environment_of_the_others_is_reported_with_how_to_make_it(tmp_path: Path):
    with (
        pytest.raises(SetupError, match="pip install --group baselines"),
        contender("plain", "http://x", python=tmp_path / "no"),
    ):
        raise AssertionError("it cannot start")


def test_the_scripts_of_the_others_are_there():
    assert all(path.is_file() for path in SCRIPTS.values())
    assert set(NAMES) == set(OURS) | set(SCRIPTS)


def made(ours: float, theirs: float) -> Race:
    path = {task: 1000 * longest_path_seconds(task) for task in TASKS}
    alone = [TaskAlone("cairn_plan", task, path[task], path[task] + ours, path[task] + 50) for task in TASKS]
    alone += [TaskAlone("plain", task, path[task], path[task] + theirs, path[task] + 50) for task in TASKS]
    together = Together("cairn_plan", 64, 900, 1000 / ours, 300, 3.5), Together("plain", 64, 900, 1000 / theirs, 300, 4)
    return Race(alone=tuple(alone), together=together, wrong=0)


def test_the_verdicts_follow_the_figures():
    good, slow, late = made(12.5, 14.5), made(16.5, 14.5), made(25, 28)
    assert (good.in_time, good.fastest, good.holds) == (["cairn_plan", "plain"], "cairn_plan", True)
    assert (slow.in_time, slow.fastest, slow.holds) == (["cairn_plan", "plain"], "plain", False)
    assert (late.in_time, late.fastest, late.holds) == ([], "cairn_plan", False)
    assert "Within 20 ms in all four: Cairn, one plan, FastAPI + openai-python." in page(good)
    assert "Within 20 ms in all four: none." in page(late)
    assert "The most requests a second: FastAPI + openai-python." in page(slow)
    assert "| Cairn, one plan | 80.0 | 300 ms | 3.50 ms |" in page(good)
    assert len(list(tables(good))) == 2
