"""Runs one command after another, each in a process of its own that starts with Cairn's modules already imported.

A command spends most of its time on imports. So one Python of the environment under attack imports them, and forks for
each command: folder, environment, arguments and standard streams are those of the command, memory is its own.

This file runs in that environment, and imports nothing but the standard library and what is installed there.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

PRELOADED: Final = (
    "agent.cli",
    "agent.build.agent",
    "agent.sources.corpus.hybrid",
    "agent.sources.corpus.build",
    "agent.sources.kg.build",
    "agent.policies.embedded",
    "train.evaluation.session",
    "server.app",
    "uvicorn",
)
_LONGEST: Final = 200_000  # bytes of a request
_STREAMS: Final = 3


class Command:
    """A command that was started; its methods are those of `subprocess.Popen`. Its context ends it, if it still runs."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.pid: Final = int(status.recv(32))
        self._code: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("cairn", timeout or 0)
            self._code = os.waitstatus_to_exitcode(int(self._status.recv(32)))
            self._status.close()
        return self._code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait()


class Commands:
    """Commands of one environment. Closing it starts no more, and leaves those that run alone."""

    def __init__(
        self, python: Path, environment: Mapping[str, str], log: Path, *, preloaded: Sequence[str] = ()
    ) -> None:
        """Start the process that forks.

        Args:
            log: what it says itself, in an existing folder.
            preloaded: more modules that it imports.
        """
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("wb") as said:
            self._process = subprocess.Popen(
                [str(python), __file__, str(theirs.fileno()), *preloaded],
                env=dict(environment),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
            )

    def start(
        self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, streams: tuple[int, int, int]
    ) -> Command:
        """Run `cairn ARGUMENTS`.

        Args:
            env: the whole environment.
            streams: file descriptors of standard input, output and error.
        """
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mask = os.umask(0)
        os.umask(mask)
        request = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd), "umask": mask}).encode()
        if len(request) > _LONGEST:
            raise ValueError(f"a command of {len(request)} bytes; {_LONGEST} are the most")
        with theirs:
            socket.send_fds(self._requests, [request], [*streams, theirs.fileno()])
        return Command(status)

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


def main() -> None:
    """Fork for each request, until there are no more; in the process of a command, be that command."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = str(Path(sys.executable).parent)  # as for the installed script
    for name in (*PRELOADED, *sys.argv[2:]):
        with suppress(ImportError):
            import_module(name)
    with suppress(AttributeError):
        import_module("agent.cli").make_app()  # imports what declares the commands
    gc.collect()
    gc.freeze()
    request = _forked(requests)
    if request is not None:
        sys.argv = [f"{sys.path[0]}/cairn", *request["arguments"]]
        import_module("agent.cli").main()


def _forked(requests: socket.socket) -> dict[str, Any] | None:
    """The request that this process is for; nothing in the first process, when no more requests come."""
    ended, wake = socket.socketpair()
    ended.setblocking(False)
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(wake.fileno())
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            ended.recv(4096)
            _report(running)
        if requests not in ready:
            continue
        message, handles, _, _ = socket.recv_fds(requests, _LONGEST, _STREAMS + 1)
        if not message:
            return None
        status = socket.socket(fileno=handles.pop())
        if pid := os.fork():
            running[pid] = status
            status.send(str(pid).encode())
            for handle in handles:
                os.close(handle)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in (requests, ended, wake, status, *running.values()):
            other.close()
        return _become(json.loads(message), handles)


def _nothing(_signal: int, _frame: object) -> None:
    """The number of the signal is written to the socket of `set_wakeup_fd`."""


def _report(running: dict[int, socket.socket]) -> None:
    """Send the status of each command that ended to who waits for it."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as waiting, suppress(OSError):
                waiting.send(str(status).encode())


def _become(request: dict[str, Any], handles: Sequence[int]) -> dict[str, Any]:
    for stream, handle in enumerate(handles):
        os.dup2(handle, stream)
        os.close(handle)
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()  # noqa: TID251 - as a process that is started
    os.environ.update(request["env"])  # noqa: TID251
    return request


if __name__ == "__main__":
    main()
