"""All contenders on the same questions: how long one takes alone, and how many a second there are at many clients.

They take turns, each in a process of its own, and every answer is checked.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from agent.errors import SetupError
from lab.benchmarks.load.baselines.contenders import NAMES, OURS, Name, contender
from lab.benchmarks.load.baselines.tasks import TASKS, longest_path_seconds, question_of, solution
from lab.benchmarks.load.baselines.world import world
from lab.benchmarks.load.client import ask, question, request
from lab.benchmarks.load.process import Listening, running
from lab.benchmarks.load.streams import CHAT

BOUND_MS: Final = 20.0
WARM: Final = 3
"""Questions of each kind before anything is measured."""

Show = Callable[[str], object]


@dataclass(frozen=True)
class TaskAlone:
    """One question after the other."""

    contender: Name
    task: str
    longest_path_ms: float
    ms_p50: float
    ms_max: float

    @property
    def over_ms(self) -> float:
        """The median, less the longest path."""
        return self.ms_p50 - self.longest_path_ms


@dataclass(frozen=True)
class Together:
    """Many clients, each of which sends the next question as soon as it has its answer; all kinds in turn."""

    contender: Name
    clients: int
    requests: int
    requests_per_s: float
    ms_p50: float
    cpu_ms: float
    """CPU time of the server's process for a request."""


@dataclass(frozen=True)
class Race:
    alone: tuple[TaskAlone, ...]
    together: tuple[Together, ...]
    wrong: int
    """Answers that were not the right one, over all."""

    def over_ms(self, name: Name) -> float:
        """What it takes over the longest path, in the question in which that is most."""
        return max(one.over_ms for one in self.alone if one.contender == name)

    def rate(self, name: Name) -> float:
        return next(one.requests_per_s for one in self.together if one.contender == name)

    @property
    def contenders(self) -> list[Name]:
        return [one.contender for one in self.together]

    @property
    def in_time(self) -> list[Name]:
        """Who ends within the bound in all four questions."""
        return [name for name in self.contenders if self.over_ms(name) <= BOUND_MS]

    @property
    def fastest(self) -> Name:
        """Who serves the most requests a second."""
        return max(self.contenders, key=self.rate)

    @property
    def holds(self) -> bool:
        """One and the same form of ours ends in time and serves the most."""
        return self.fastest in OURS and self.fastest in self.in_time

    def as_dict(self) -> dict[str, Any]:
        """Plain names: `plain_chain_ms_p50`, `cairn_plan_requests_per_s`, …."""
        made: dict[str, Any] = {
            "wrong": self.wrong,
            "in_time": self.in_time,
            "fastest": self.fastest,
            "holds": self.holds,
        }
        for one in self.alone:
            made[f"{one.contender}_{one.task}_ms_p50"] = round(one.ms_p50, 2)
            made[f"{one.contender}_{one.task}_over_ms"] = round(one.over_ms, 2)
        for many in self.together:
            made[f"{many.contender}_requests_per_s"] = round(many.requests_per_s, 1)
            made[f"{many.contender}_ms_p50"] = round(many.ms_p50, 1)
            made[f"{many.contender}_cpu_ms"] = round(many.cpu_ms, 2)
        return made


def race(
    *,
    python: Path,
    names: Sequence[Name] = tuple(NAMES),
    times: int = 20,
    clients: int = 64,
    seconds: float = 10.0,
    rounds: int = 3,
    show: Show = lambda what: None,
) -> Race:
    """Start all of them and ask.

    Args:
        python: of the environment with the others' libraries.
        names: who takes part.
        times: how often each question is sent alone.
        clients: that ask at the same time.
        seconds: of each round of many clients.
        rounds: of each contender; the middle one counts.
        show: gets what goes on.

    Raises:
        SetupError: one of them cannot be started, or answers nothing.
    """
    with ExitStack() as stack:
        services = stack.enter_context(running(world))
        servers: dict[Name, Listening] = {
            name: stack.enter_context(contender(name, services.address, python=python)) for name in names
        }
        return asyncio.run(_race(servers, times=times, clients=clients, seconds=seconds, rounds=rounds, show=show))


async def _race(
    servers: dict[Name, Listening], *, times: int, clients: int, seconds: float, rounds: int, show: Show
) -> Race:
    senders: dict[Name, _Sender] = {name: _Sender(server) for name, server in servers.items()}
    for name, one in senders.items():
        show(f"{NAMES[name]}: warming up")
        for task in TASKS:
            for _ in range(WARM):
                await one.ask(task)
        if one.wrong:
            raise SetupError(f"{NAMES[name]} does not give the right answer: {one.said[:200]!r}")
    alone: dict[tuple[Name, str], list[float]] = {(name, task): [] for task in TASKS for name in servers}
    for _ in range(times):
        for name, task in alone:
            show(f"{NAMES[name]}: {task}")
            alone[name, task].append(1000 * await senders[name].ask(task))
    together: dict[Name, list[Together]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name in servers:
            show(f"{NAMES[name]}: {clients} clients")
            together[name].append(await _together(name, senders[name], clients=clients, seconds=seconds))
    return Race(
        alone=tuple(_alone(name, task, took) for (name, task), took in alone.items()),
        together=tuple(_middle(found) for found in together.values()),
        wrong=sum(one.wrong for one in senders.values()),
    )


class _Sender:
    """Sends questions to one server, and checks its answers."""

    def __init__(self, server: Listening) -> None:
        self.server = server
        self.wrong = 0
        self.said = ""
        """The last wrong answer."""
        self._sent = 0

    async def ask(self, task: str) -> float:
        """Seconds until the answer was there."""
        self._sent += 1
        marker = f"m{self._sent}"
        body = question(question_of(task, marker), stream=False)
        began = perf_counter()
        heard = await ask(self.server.address, request(self.server.address, CHAT, body))
        took = perf_counter() - began
        answer = heard.json() if heard else {}
        said = answer["choices"][0]["message"]["content"] if answer.get("choices") else str(answer)
        if said.strip() != solution(task, marker):
            self.wrong += 1
            self.said = said
        return took


def _middle(found: Sequence[Together]) -> Together:
    return sorted(found, key=lambda one: one.requests_per_s)[len(found) // 2]


def _alone(name: Name, task: str, took: Sequence[float]) -> TaskAlone:
    return TaskAlone(name, task, 1000 * longest_path_seconds(task), median(took), max(took))


async def _together(name: Name, sender: _Sender, *, clients: int, seconds: float) -> Together:
    took: list[float] = []
    began, cpu = perf_counter(), sender.server.cpu_seconds or 0.0

    async def client(number: int) -> None:
        tasks = list(TASKS)
        at = number
        while perf_counter() - began < seconds:
            took.append(await sender.ask(tasks[at % len(tasks)]))
            at += 1

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))
    spent, cpu = perf_counter() - began, (sender.server.cpu_seconds or 0.0) - cpu
    return Together(name, clients, len(took), len(took) / spent, 1000 * median(took), 1000 * cpu / len(took))
