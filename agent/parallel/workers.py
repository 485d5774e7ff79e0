"""Processes of this machine that do one thing after another, each with a line of its own to the one that started it.

A worker that dies takes with it what it was doing, and nothing of the others; one whose starter dies ends at once.
It does not choose what is done, nor in which order results are wanted: `spread` does.
"""

import atexit
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from agent.errors import AgentError
from agent.parallel.processes import spawning
from agent.settings import default_environment

_ENDING_SECONDS: Final = 10.0
"""For what a worker keeps to be closed."""
_held: Final = ExitStack()


class WorkerLost(AgentError):
    """A worker ended in the middle of its work, for example for want of memory."""


def lost(workers: int) -> WorkerLost:
    return WorkerLost(f"a worker process died; if memory is short, use fewer than {workers} help")


def at_end(close: Callable[[], object]) -> None:
    """Have something closed when this worker ends by itself; one that is stopped closes nothing."""
    _held.callback(close)


class ProcessWorkers:
    """Up to a number of processes, each started when all others are busy, and kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="cairn-worker")
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._closed = False
        atexit.register(self.close)

    def submit(self, function: Callable[[Any], Any], item: Any) -> Future[Any]:
        """Begin; what the function raises is raised by the result, and `WorkerLost` where its worker died."""
        return self._threads.submit(self._do, function, item)

    def close(self) -> None:
        """End the workers. What they are doing is given up: who is busy is killed; the others close what they keep."""
        atexit.unregister(self.close)
        with self._lock:
            self._closed = True
            for worker in self._busy:
                worker.process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._idle:
            worker.line.close()
        for worker in self._idle:
            worker.process.join(_ENDING_SECONDS)
            worker.process.kill()
            worker.process.join()

    def _do(self, function: Callable[[Any], Any], item: Any) -> Any:
        task = pickle.dumps((function, item))
        with self._lock:
            if self._closed:
                raise lost(self._most)
            worker = self._idle.pop() if self._idle else _Worker()
            self._busy.add(worker)
        try:
            given = worker.ask(task)
        except (EOFError, OSError) as error:
            with self._lock:
                self._busy.remove(worker)
            worker.process.kill()
            worker.process.join()
            raise lost(self._most) from error
        with self._lock:
            self._busy.remove(worker)
            self._idle.append(worker)
        result, error = pickle.loads(given)
        if error is not None:
            raise error
        return result


class _Worker:
    """A fresh Python: a fork would copy threads in the middle of their work."""

    def __init__(self) -> None:
        fresh = spawning()
        self.line, theirs = fresh.Pipe()
        self.process = fresh.Process(target=_work, args=(theirs,))
        self.process.start()
        theirs.close()

    def ask(self, task: bytes) -> bytes:
        """Raises EOFError or OSError where the process is gone."""
        self.line.send_bytes(task)
        return self.line.recv_bytes()


def _work(line: "Connection[bytes, bytes]") -> None:
    """What a worker does until the other end of its line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that started them decides
    default_environment({"OMP_NUM_THREADS": "1"})  # as Ray does: libraries that take all cores would take turns
    threading.Thread(target=_end_with_the_starter, daemon=True).start()
    with _held:
        while True:
            try:
                task = line.recv_bytes()
            except EOFError:
                return
            line.send_bytes(_answer(task))


def _end_with_the_starter() -> None:
    starter = multiprocessing.parent_process()
    assert starter is not None
    wait([starter.sentinel])
    os._exit(1)


def _answer(task: bytes) -> bytes:
    """A result and no error, or no result and the error."""
    try:
        function, item = pickle.loads(task)
        return pickle.dumps((function(item), None))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits for the result
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        return _pickled(error)


def _pickled(error: Exception) -> bytes:
    """An error as it can be sent; of one that cannot, what it said."""
    try:
        pickled = pickle.dumps((None, error))
        pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - errors of libraries raise anything when they are copied
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
    return pickled
