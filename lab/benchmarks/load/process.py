"""A server in a process of its own: its address, its messages over a pipe, its memory and its CPU time."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from agent.errors import AgentError, SetupError
from agent.parallel.processes import spawning

if TYPE_CHECKING:
    import socket

    from server.launch import Serves


Send = Callable[[Any], None]
"""Sends an object to the process that measures."""
Make = Callable[[Send], "tuple[Serves, socket.socket]"]
"""Makes the server in its own process; a function of a module, or a `partial` of one."""

START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 10.0
_MB: Final = 1e6


@dataclass(frozen=True)
class Listening:
    """A server's process, however it was started."""

    address: str
    pid: int

    @property
    def rss_mb(self) -> float | None:
        """Memory that the process has now, in 10^6 bytes; None where the system does not say."""
        fields = _proc(self.pid, "statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / _MB if fields else None

    @property
    def cpu_seconds(self) -> float | None:
        """CPU time of all its threads since it began; None where the system does not say."""
        return self._cpu_seconds("stat")

    @property
    def loop_seconds(self) -> float | None:
        """The same of its first thread alone, which is the event loop's."""
        return self._cpu_seconds(f"task/{self.pid}/stat")

    def _cpu_seconds(self, name: str) -> float | None:
        fields = _proc(self.pid, name).rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else None


@dataclass(frozen=True)
class Running(Listening):
    """One that we made."""

    pipe: Connection
    """The server's messages come here."""


def _proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


@contextmanager
def running(make: Make) -> Generator[Running]:
    """Start a server; leaving ends its process.

    Raises:
        SetupError: it could not be started.
    """
    context = spawning()
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(make, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        yield Running(_address(ours), child.pid or 0, ours)
    finally:
        child.terminate()
        child.join(STOP_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
        ours.close()


def _address(pipe: Connection) -> str:
    if not pipe.poll(START_SECONDS):
        raise SetupError(f"the server did not start within {START_SECONDS:.0f} s")
    try:
        first = pipe.recv()
    except EOFError as error:
        raise SetupError("the server ended before it listened; its error is above") from error
    if isinstance(first, Exception):
        raise SetupError(str(first)) from first
    return first


def _serve(make: Make, pipe: Connection) -> None:
    from server.launch import address_of, run

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that measures; it ends this one
    signal.signal(signal.SIGTERM, _leave)  # uvicorn sends it on when it has ended; a plain death leaks semaphores
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        server, listener = make(pipe.send)
    except (AgentError, OSError) as error:
        pipe.send(SetupError(str(error)))
        return
    pipe.send(address_of(listener))
    run(server, listener)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit()


def _end_with_parent() -> None:
    """Ends the server when its measuring process was killed."""
    if parent := multiprocessing.parent_process():
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
