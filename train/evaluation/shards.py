"""One evaluation, asked in shards by other processes. What they send back is what this process would have got itself.

A worker makes the same evaluation of the same arguments, once, and asks the questions of each shard that it is given.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from agent.settings import CairnSettings
from agent.trace import Trace
from train.evaluation.questions import Question
from train.evaluation.result import Result
from train.evaluation.run import OnResult, TooManyFailed

if TYPE_CHECKING:
    from train.evaluation.session import Evaluation

T = TypeVar("T")
R = TypeVar("R")

ROUNDS: Final = 4
"""Shards for each worker, so that one that is slow holds nobody up at the end."""
MOST: Final = 256
"""Questions of a shard: what a lost worker takes with it."""


class Spreads(Protocol):
    """Whoever has workers; `agent.spread.Spread` is one."""

    @property
    def workers(self) -> int: ...

    def mapped(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]: ...


@dataclass(frozen=True)
class Shard:
    arguments: bytes
    """Those of the evaluation, pickled: the same bytes are the same evaluation."""
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """What came of a shard."""

    ended: tuple[tuple[Result, Trace | None], ...]
    hopeless: str = ""
    """Why the rest of it was not asked; see `TooManyFailed`."""


def pickled(settings: CairnSettings, arguments: dict[str, Any]) -> bytes:
    """The arguments of an evaluation, for `Shard`. The settings go as their values: their class is made at run time."""
    alone = settings.model_copy(update={"work": "local", "workers": 1})
    return pickle.dumps((alone.model_dump(), arguments))


def ask_elsewhere(
    spread: Spreads, arguments: bytes, questions: Sequence[Question], *, concurrency: int, on_result: OnResult
) -> None:
    """Have the questions asked, and tell `on_result` of each, shard after shard.

    Args:
        spread: whose workers ask; each asks `concurrency` questions at the same time.
        arguments: of the evaluation, by `pickled`.
        questions: that wait.
        concurrency: no shard is smaller, but for the last.
        on_result: see `train.evaluation.run.OnResult`.

    Raises:
        TooManyFailed: of one shard over the allowed share failed. What ended was told of.
        WorkerLost: a worker ended in the middle of a shard.
        SetupError: the agent cannot be used there.
    """
    ids = [question.id for question in questions]
    size = max(concurrency, min(MOST, ceil(len(ids) / (ROUNDS * spread.workers))))
    shards = (Shard(arguments, tuple(ids[at : at + size])) for at in range(0, len(ids), size))
    for part in spread.mapped(ask_shard, shards):
        for result, trace in part.ended:
            on_result(result, trace)
        if part.hopeless:
            raise TooManyFailed(part.hopeless)


def ask_shard(shard: Shard) -> Part:
    """Ask here. It is what a worker runs."""
    return _evaluation(shard.arguments).part(shard.ids)


@lru_cache(maxsize=1)
def _evaluation(arguments: bytes) -> "Evaluation":
    from train.evaluation.session import Evaluation

    settings, others = pickle.loads(arguments)
    return Evaluation(CairnSettings(**settings), **others)
