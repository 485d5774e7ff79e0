"""The model's parameters, from questions one after the other, and from a load of few streams."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

from agent.cores import cores
from agent.errors import SetupError
from agent.settings import CairnSettings
from lab.benchmarks.load.client import Heard, ask, question, request
from lab.benchmarks.load.measure import Tokens, questions_of, server_of
from lab.benchmarks.load.model.calls import Call, read_calls
from lab.benchmarks.load.model.cost import Cost, fit_alone, fit_together
from lab.benchmarks.load.model.loop import loop_seconds
from lab.benchmarks.load.model.paced import PacedCost, PacedLoad, fit_wakes
from lab.benchmarks.load.model.runs import Run, TimedQuestion, runs_of
from lab.benchmarks.load.model.simulate import Machine, predict
from lab.benchmarks.load.paced import SEARCH_SECONDS, TOKENS_PER_S, script, text_of
from lab.benchmarks.load.process import Running
from lab.benchmarks.load.streams import CHAT, StreamLoad, load_embedded, load_paced

STRIDE: Final = 187
"""Questions are sent alone in steps of this many, so that a part of them is like all of them."""

PACED_ANSWERS: Final = 2
"""That one stream gets, of the paced policy."""

MANY: Final = 8
"""Times as many streams has the second of the two loads that separate the event loop's wakes from its tokens."""

_HALVINGS: Final = 12
_MOST_SLOWED: Final = 8.0
"""By which calls may slow each other down: it is looked for between 1 and this."""

Progress = Callable[[float], object]
"""Gets how many seconds have passed."""


@dataclass(frozen=True)
class StreamAlone:
    """What one stream showed of the embedded policy."""

    answers: int
    seconds: float
    answer_s_p50: float
    runs: tuple[Run, ...]
    """Of each question in its place; one that was not sent is represented by one that was."""
    cost: Cost


@dataclass(frozen=True)
class Fitted:
    alone: StreamAlone
    load: StreamLoad
    """The one load that was used."""
    calls: int
    """Of the engine, in that load."""
    machine: Machine


def fit(settings: CairnSettings, *, streams: int, seconds: float, progress: Callable[[str, float], object]) -> Fitted:
    """Fit the model of the embedded policy: one stream, and one load of `streams` streams, each of `seconds`.

    Raises:
        SetupError: a server could not be started, or the time was too short.
    """
    questions = questions_of(settings)
    alone = _alone(settings, _limits(streams), questions, seconds, lambda at: progress("one stream", at))
    with TemporaryDirectory(prefix="cairn-calls-") as folder:
        log = Path(folder) / "calls.jsonl"
        with server_of(settings, _limits(streams), calls=log) as server:
            before = loop_seconds(server)
            load = _loaded(server, questions, streams, seconds, lambda at: progress("one load", at))
            loop = loop_seconds(server) - before
        calls = read_calls(log)
    token_seconds = _token_seconds(alone.runs, loop / max(1, load.answers))
    machine = Machine(fit_together(alone.cost, calls), token_seconds, workers=cores())
    return Fitted(alone, load, len(calls), slowed(alone.runs, machine, load, seconds=seconds))


def refit(settings: CairnSettings, fitted: Fitted, *, seconds: float, progress: Progress) -> Machine:
    """The machine as fast as it is now: the load that it was fitted with, once more.

    A machine that is shared with others changes its speed from minute to minute, by more than the model is off.
    """
    streams = fitted.load.streams
    with server_of(settings, _limits(streams)) as server:
        load = _loaded(server, questions_of(settings), streams, seconds, progress)
    return slowed(fitted.alone.runs, fitted.machine, load, seconds=seconds)


def slowed(runs: Sequence[Run], machine: Machine, load: StreamLoad, *, seconds: float) -> Machine:
    """How much calls at the same time slow each other down, so that the model sees what that load saw in answers/s.

    What the calls themselves show of it leaves out the loop and the client, which have their share of the same cores.

    Args:
        runs: see `simulate.predict`.
        machine: all else of it stays.
        load: that was measured.
        seconds: after which no new answer began in it.
    """

    def so_much(both: float) -> Machine:
        return replace(machine, cost=replace(machine.cost, both=both))

    least, most = 1.0, _MOST_SLOWED
    for _ in range(_HALVINGS):
        both = (least + most) / 2
        found = predict(runs, so_much(both), streams=load.streams, seconds=seconds)
        least, most = (both, most) if found.answers_per_s > load.answers_per_s else (least, both)
    return so_much((least + most) / 2)


def _limits(streams: int) -> dict[str, Any]:
    return {"max_runs": streams, "max_queue": streams}


def _loaded(server: Running, questions: Sequence[str], streams: int, seconds: float, progress: Progress) -> StreamLoad:
    return asyncio.run(load_embedded(server, questions, streams=streams, seconds=seconds, progress=progress))


def _alone(
    settings: CairnSettings, bounds: dict[str, Any], questions: Sequence[str], seconds: float, progress: Progress
) -> StreamAlone:
    with TemporaryDirectory(prefix="cairn-calls-") as folder:
        log = Path(folder) / "calls.jsonl"
        with server_of(settings, bounds, calls=log) as server:
            timed = asyncio.run(_ask_alone(server, questions, seconds, progress))
        calls = read_calls(log)
    return alone_of(timed, calls, questions=len(questions))


def alone_of(timed: Sequence[TimedQuestion], calls: Sequence[Call], *, questions: int) -> StreamAlone:
    """What was seen, as parameters.

    Raises:
        SetupError: there was too little of it.
    """
    found = runs_of(timed, calls)
    if not found:
        raise SetupError("no question was answered by the engine in that time; ask alone for longer")
    others = list(found.values())
    took = [(one.ended - one.began) / 1e9 for one in timed]
    runs = tuple(found.get(place) or others[place % len(others)] for place in range(questions))
    return StreamAlone(len(timed), sum(took), median(took), runs, fit_alone(calls))


async def _ask_alone(
    server: Running, questions: Sequence[str], seconds: float, progress: Progress
) -> list[TimedQuestion]:
    """Ask one after the other; the first one warms everything up and is not among what comes back."""
    timed: list[TimedQuestion] = []
    turn, began = 0, perf_counter()
    while perf_counter() - began < seconds:
        place = turn * STRIDE % len(questions)
        heard = await _whole(server, questions[place])
        if turn:
            timed.append(TimedQuestion(place, heard.began, heard.times[-1]))
        turn += 1
        progress(perf_counter() - began)
    return timed


async def _whole(server: Running, text: str) -> Heard:
    heard = await ask(server.address, request(server.address, CHAT, question(text, stream=True)))
    if heard is None or heard.status != 200 or not heard.times:
        raise SetupError(f"the server did not answer {text!r} ({heard.status if heard else 'no connection'})")
    return heard


def _token_seconds(runs: Sequence[Run], answer_seconds: float) -> float:
    """What is left of the loop's time for an answer when what lies between the turns is taken away, for each token."""
    gaps = sum(run.gap_seconds for run in runs) / len(runs)
    tokens = sum(run.tokens for run in runs) / len(runs)
    return max(0.0, answer_seconds - gaps) / tokens


def fit_paced(
    settings: CairnSettings, *, tokens: Tokens, streams: int, seconds: float, progress: Progress
) -> PacedCost:
    """The same of the paced policy: a few answers one after the other, and two loads, of few streams and of many.

    Raises:
        SetupError: the server could not be started, or did not answer.
    """
    with server_of(settings, _limits(streams), tokens) as server:
        pace, few = asyncio.run(_pace(server, tokens, streams, seconds, progress))
    with server_of(settings, _limits(MANY * streams), tokens) as server:
        many = asyncio.run(_seen(server, tokens, MANY * streams, seconds, progress))
    return fit_wakes(pace, few, many)


async def _pace(
    server: Running, tokens: Tokens, streams: int, seconds: float, progress: Progress
) -> tuple[PacedCost, PacedLoad]:
    turns = tuple(sum(1 for _ in script("whole", "m0x0", turn, tokens)) for turn in (1, 2))
    await _whole(server, text_of("whole", "m0x0"))
    began, took = perf_counter(), list[float]()
    for turn in range(PACED_ANSWERS):
        took.append((await _whole(server, text_of("whole", f"m1x{turn}"))).seconds)
        progress(perf_counter() - began)
    due = sum(count - 1 for count in turns) / TOKENS_PER_S + SEARCH_SECONDS
    pace = PacedCost(turns, TOKENS_PER_S, SEARCH_SECONDS, rest_seconds=max(0.0, median(took) - due))
    return pace, await _seen(server, tokens, streams, seconds, progress)


async def _seen(server: Running, tokens: Tokens, streams: int, seconds: float, progress: Progress) -> PacedLoad:
    before = loop_seconds(server)
    await load_paced(server, streams=streams, seconds=seconds, tokens=sum(tokens), progress=progress)
    return PacedLoad(streams, seconds, loop_seconds(server) - before)
