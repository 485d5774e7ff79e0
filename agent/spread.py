"""One function over many items: in this process, in worker processes of this machine, or on a Ray cluster.

What comes back comes in the items' order, whoever was faster, and few items are ahead of the one that is wanted next.
It knows nothing of what is done. Functions are of a module; what is dear to load they keep themselves, once a process.
"""

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeVar

from agent.errors import AgentError, SetupError
from agent.settings import CairnSettings, default_environment

T = TypeVar("T")
R = TypeVar("R")

On = Literal["local", "ray"]

_AHEAD: Final = 2
"""Items for each worker that are on their way, or done before they are wanted."""
_STORE_BYTES: Final = 256 * 1024 * 1024
"""Shared memory of a Ray that is started here; what does not fit goes to the disk."""
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class WorkerLost(AgentError):
    """A worker ended in the middle of its work, for example for want of memory."""


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

    def submit(self, function: Callable[[Any], Any], item: Any) -> Callable[[], Any]:
        """Begin; gives what waits for the result, and raises what the function raised."""
        ...

    def close(self) -> None: ...


class Spread:
    """Where work is done. Workers are started when they are first needed, and end with it."""

    def __init__(self, *, workers: int = 1, on: On = "local", address: str = "") -> None:
        """Say where; see `mapped`.

        Raises:
            SetupError: nobody would work.
        """
        if workers < 1:
            raise SetupError(f"{workers} workers can do nothing; there must be at least one")
        self.workers, self.on, self.address = workers, on, address
        self._team: _Team | None = None

    @property
    def here(self) -> bool:
        """Whether everything is done in this process, and nothing is started."""
        return self.on == "local" and self.workers == 1

    def mapped(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `mapped`."""
        return map(function, items) if self.here else self._in_order(function, items)

    def _in_order(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        if self._team is None:
            self._team = _Processes(self.workers) if self.on == "local" else _Ray(self.workers, self.address)
        waiting: deque[Callable[[], Any]] = deque()
        for item in items:
            waiting.append(self._team.submit(function, item))
            if len(waiting) >= _AHEAD * self.workers:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

    def close(self) -> None:
        """End the workers; what is on its way is given up. It may be called twice."""
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


class _Processes:
    """Processes of this machine. Each is a fresh Python: a fork would copy threads in the middle of their work."""

    def __init__(self, workers: int) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_one_core)
        self._workers = workers

    def submit(self, function: Callable[[Any], Any], item: Any) -> Callable[[], Any]:
        try:
            future = self._pool.submit(function, item)
        except BrokenProcessPool as error:
            raise _lost(self._workers) from error

        def wait() -> Any:
            try:
                return future.result()
            except BrokenProcessPool as error:
                raise _lost(self._workers) from error

        return wait

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _one_core() -> None:
    """A worker does its work on one core, as Ray's do: libraries that take all of them would take turns."""
    default_environment({"OMP_NUM_THREADS": "1"})


class _Ray:
    """Tasks of a Ray cluster, one core each. A Ray that somebody else started is used, and left as it is."""

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
        self._tasks: dict[Callable[[Any], Any], Any] = {}
        self._started = not self._ray.is_initialized()
        if self._started:
            self._start(address)

    def submit(self, function: Callable[[Any], Any], item: Any) -> Callable[[], Any]:
        if function not in self._tasks:
            self._tasks[function] = self._ray.remote(function).options(num_cpus=1, max_retries=0)
        promised = self._tasks[function].remote(item)

        def wait() -> Any:
            try:
                return self._ray.get(promised)
            except self._errors.RayTaskError as error:
                raise error.cause from error
            except self._errors.RayError as error:
                raise _lost(self._workers) from error

        return wait

    def close(self) -> None:
        if self._started:
            self._ray.shutdown()

    def _start(self, address: str) -> None:
        """Reach the cluster that is named, or start one of this machine: as many cores as workers, no dashboard."""
        own = {"num_cpus": self._workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        try:
            self._ray.init(
                address=address or "local", log_to_driver=False, logging_level="error", **({} if address else own)
            )
        except (self._errors.RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = address or "of this machine"
            raise SetupError(
                f"the Ray cluster {where} cannot be used ({error}); see the setting ray_address"
            ) from error


def _lost(workers: int) -> WorkerLost:
    return WorkerLost(f"a worker ended in the middle of its work; where memory is short, fewer than {workers} help")
