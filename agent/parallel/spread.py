"""One function over many items: in this process, in worker processes of this machine, or on a Ray cluster.

Results come in the items' order, or as they end; few items are ahead of the one that is wanted next. It knows nothing
of what is done. Functions are of a module; what is dear to load they keep themselves, once a process.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeVar

from agent.errors import SetupError
from agent.parallel.processes import SAFE_PATH
from agent.parallel.workers import ProcessWorkers, lost
from agent.settings import CairnSettings, default_environment, environment_of_children

T = TypeVar("T")
R = TypeVar("R")

On = Literal["local", "ray"]

_AHEAD: Final = 2
"""Items for each worker that are on their way, or done before they are wanted."""
_STORE_BYTES: Final = 256 * 1024 * 1024
"""Shared memory of a Ray that is started here; what does not fit goes to the disk."""
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def mapped(
    function: Callable[[T], R], items: Iterable[T], *, workers: int = 1, on: On = "local", address: str = ""
) -> Generator[R]:
    """Give `function(item)` of each item, in the items' order. For more than one such call open a `Spread`.

    Args:
        function: of a module, so that another process finds it; with one local worker any function will do.
        items: read as they are needed, in this process; what they and the results hold must be picklable.
        workers: processes; 1 on `local` is this one.
        on: `local`, or `ray`, whose machines must have the same packages and see the same files.
        address: of a Ray cluster; empty: one of this machine, which ends with the work.

    Raises:
        SetupError: Ray is not installed, or its cluster cannot be reached.
        WorkerLost: a worker ended in the middle of its work.
        Exception: what the function raised, as it raised it. What is on its way then is given up.
    """
    with Spread(workers=workers, on=on, address=address) as spread:
        yield from spread.mapped(function, items)


class _Team(Protocol):
    """Workers that were started."""

    def submit(self, function: Callable[[Any], Any], item: Any) -> Future[Any]:
        """Begin; what the function raises is raised by the result, and `WorkerLost` where its worker ended."""
        ...

    def close(self) -> None:
        """End the workers, also in the middle of their work."""
        ...


class Spread:
    """Where work is done. Workers are started when they are first needed, and end with it."""

    def __init__(self, *, workers: int = 1, on: On = "local", address: str = "") -> None:
        """Say where; see `mapped`.

        Raises:
            SetupError: no worker would be left.
        """
        if workers < 1:
            raise SetupError(f"workers is {workers}; it must be at least 1")
        self.workers, self.on, self.address = workers, on, address
        self._team: _Team | None = None

    @property
    def here(self) -> bool:
        """Whether everything is done in this process, and nothing is started."""
        return self.on == "local" and self.workers == 1

    def mapped(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `mapped`. With several workers, what ended before its turn waits for it, and an error takes it along."""
        return map(function, items) if self.here else self._in_order(function, items)

    def ended(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """As `mapped`, but each result as soon as it is there, in whatever order.

        Where the function or a worker fails nothing more is begun. What is on its way is waited for and given, and only
        then the error is raised.
        """
        return map(function, items) if self.here else self._as_they_end(function, items)

    def _in_order(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        team = self._started()
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(team.submit(function, item))
            if len(waiting) >= _AHEAD * self.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _as_they_end(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        team, left = self._started(), iter(items)
        waiting: set[Future[R]] = set()
        failed: list[Future[R]] = []
        while True:
            if not failed:
                waiting |= {team.submit(function, item) for item in islice(left, _AHEAD * self.workers - len(waiting))}
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            failed += [future for future in done if future.exception()]
            yield from (future.result() for future in done if not future.exception())
        if failed:
            failed[0].result()

    def _started(self) -> _Team:
        if self._team is None:
            self._team = ProcessWorkers(self.workers) if self.on == "local" else _Ray(self.workers, self.address)
        return self._team

    def close(self) -> None:
        """End the workers. What is on its way is given up: nothing more is begun, and who is busy is stopped.

        It may be called twice.
        """
        if self._team is not None:
            self._team.close()
            self._team = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def spread_of(settings: CairnSettings) -> Spread:
    """Where the settings want work to be done."""
    return Spread(workers=settings.workers, on=settings.work, address=settings.ray_address)


class _Ray:
    """Tasks of a Ray cluster, one core each. A Ray that is already running is used, and left as it is."""

    def __init__(self, workers: int, address: str) -> None:
        default_environment(_QUIET)
        try:
            import ray
            import ray.exceptions
        except ModuleNotFoundError as error:
            raise SetupError("work on Ray needs an extra: pip install 'cairn-search[ray]'") from error
        self._ray: Any = ray
        self._errors: Any = ray.exceptions
        self._workers = workers
        self._promised: dict[Future[Any], Any] = {}
        self._started = not self._ray.is_initialized()
        if self._started:
            self._start(address)
        self._task = self._ray.remote(_done).options(num_cpus=1, max_retries=0)
        self._folder = os.getcwd()

    def submit(self, function: Callable[[Any], Any], item: Any) -> Future[Any]:
        promised = self._task.remote(function, item, self._folder)
        result: Future[Any] = Future()
        self._promised[result] = promised
        future: Future[Any] = promised.future()
        future.add_done_callback(lambda ended: self._resolve(result, ended))
        return result

    def close(self) -> None:
        for promised in list(self._promised.values()):
            self._ray.cancel(promised, force=True)
        if self._started:
            self._ray.shutdown()

    def _resolve(self, result: Future[Any], ended: Future[Any]) -> None:
        """Hand on what came of a task, with the function's own error in the place of Ray's."""
        del self._promised[result]
        error: Any = ended.exception()
        if error is None:
            result.set_result(ended.result())
        elif isinstance(error, self._errors.RayTaskError):
            error.cause.__cause__ = error
            result.set_exception(error.cause)
        else:
            result.set_exception(lost(self._workers) if isinstance(error, self._errors.RayError) else error)

    def _start(self, address: str) -> None:
        """Reach the cluster that is named, or start one of this machine: as many cores as workers, no dashboard."""
        own = {"num_cpus": self._workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        try:
            with environment_of_children(SAFE_PATH), _elsewhere():
                self._ray.init(
                    address=address or "local", log_to_driver=False, logging_level="error", **({} if address else own)
                )
        except (self._errors.RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = address or "of this machine"
            raise SetupError(
                f"the Ray cluster {where} cannot be used ({error}); see the setting ray_address"
            ) from error


@contextmanager
def _elsewhere() -> Generator[None]:
    """Leave the current folder for a while: Ray puts the one in which it is started on every worker's import path."""
    here = os.getcwd()
    os.chdir(Path(__file__).parents[2])  # where this package is found anyway
    try:
        yield
    finally:
        os.chdir(here)


def _done(function: Callable[[Any], Any], item: Any, folder: str) -> Any:
    """Do the work in the folder of who wants it, where that is there: names of files may be relative to it."""
    with suppress(OSError):
        os.chdir(folder)
    return function(item)


HERE: Final = Spread()
"""This process; it starts nothing, and needs no end."""
