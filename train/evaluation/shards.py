"""One evaluation in shards, in other processes. What they send back is what this process would have got itself.

A worker makes the same evaluation of the same arguments, once, and asks the questions of each shard that it is given;
its agent and its event loop stay from shard to shard.
"""

import asyncio
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, Protocol, TypeVar

from agent.parallel.workers import at_end
from agent.settings import CairnSettings
from agent.trace import Trace
from train.evaluation.questions import GoldQuestion
from train.evaluation.result import QuestionResult
from train.evaluation.run import OnResult, TooManyFailed

T = TypeVar("T")
R = TypeVar("R")

ROUNDS: Final = 4
"""Shards for each worker at least, so that a slow one does not hold up the end."""
TURNS: Final = 4
"""Questions of a shard for each that runs at the same time. What ended of a shard is lost with a worker that is
killed; but where shards are much smaller, workers often wait for the slowest of their questions."""


class ShardWorkers(Protocol):
    """What has workers; `agent.parallel.spread.Spread` is one."""

    @property
    def workers(self) -> int: ...

    def ended(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]: ...


@dataclass(frozen=True)
class QuestionShard:
    arguments: bytes
    """Those of the evaluation, pickled: the same bytes are the same evaluation."""
    ids: tuple[str, ...]


@dataclass(frozen=True)
class ShardResult:
    """What came of a shard."""

    ended: tuple[tuple[QuestionResult, Trace | None], ...]
    hopeless: str = ""
    """Why the rest of it did not run; see `TooManyFailed`."""


def pickled(settings: CairnSettings, arguments: dict[str, Any]) -> bytes:
    """The arguments of an evaluation, for `QuestionShard`. Settings go as values: their class is made at run time."""
    alone = settings.model_copy(update={"work": "local", "workers": 1})
    return pickle.dumps((alone.model_dump(), arguments))


def ask_elsewhere(
    spread: ShardWorkers, arguments: bytes, questions: Sequence[GoldQuestion], *, concurrency: int, on_result: OnResult
) -> None:
    """Have the questions answered, and call `on_result` with each as its shard ends.

    Args:
        spread: whose workers ask; each asks `concurrency` questions at the same time.
        arguments: of the evaluation, by `pickled`.
        questions: that wait.
        concurrency: no shard is smaller, but for the last, and none larger than `TURNS` times that.
        on_result: see `train.evaluation.run.OnResult`.

    Raises:
        TooManyFailed: of one shard over the allowed share failed. No other one was begun, and `on_result` got what
            ended, also in the shards on their way.
        WorkerLost: a worker ended in the middle of a shard. Of the other shards the same holds.
        SetupError: the agent cannot be used there.
    """
    ids = [question.id for question in questions]
    size = max(concurrency, min(TURNS * concurrency, ceil(len(ids) / (ROUNDS * spread.workers))))
    hopeless = ""

    def shards() -> Iterator[QuestionShard]:
        for at in range(0, len(ids), size):
            if hopeless:
                return
            yield QuestionShard(arguments, tuple(ids[at : at + size]))

    for part in spread.ended(ask_shard, shards()):
        for result, trace in part.ended:
            on_result(result, trace)
        hopeless = hopeless or part.hopeless
    if hopeless:
        raise TooManyFailed(hopeless)


def ask_shard(shard: QuestionShard) -> ShardResult:
    """Ask here. It is what a worker runs."""
    if shard.arguments not in _held:
        let_go()
        _held[shard.arguments] = _WorkerSession(shard.arguments)
        at_end(let_go)
    return _held[shard.arguments].ask(shard.ids)


def let_go() -> None:
    """Close what this process keeps for its next shard."""
    while _held:
        _held.popitem()[1].close()


class _WorkerSession:
    """The evaluation in one process."""

    def __init__(self, arguments: bytes) -> None:
        from train.evaluation.session import Evaluation

        settings, others = pickle.loads(arguments)
        self._evaluation = Evaluation(CairnSettings(**settings), **others)
        self._questions = {question.id: question for question in self._evaluation.questions}
        self._respondent, _, self._scoring = self._evaluation.respondent()
        self._loop = asyncio.Runner()

    def ask(self, ids: Sequence[str]) -> ShardResult:
        ended: list[tuple[QuestionResult, Trace | None]] = []

        def on_result(result: QuestionResult, trace: Trace | None) -> None:
            ended.append((result, trace))

        hopeless = ""
        questions = [self._questions[id] for id in ids]
        try:
            self._loop.run(self._evaluation.ask(self._respondent, questions, self._scoring, on_result))
        except TooManyFailed as error:
            hopeless = str(error)
        return ShardResult(tuple(ended), hopeless)

    def close(self) -> None:
        with self._loop:
            self._loop.run(self._respondent.aclose())


_held: Final[dict[bytes, _WorkerSession]] = {}
"""The evaluation that this process worked on last."""
