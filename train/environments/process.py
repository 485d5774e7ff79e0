"""The process in which an environment's rollouts run, from the side of a trainer. It needs the standard library alone.

A trainer's environment rarely takes Cairn's libraries, so Cairn's Python may be another one than the trainer's.
"""

import asyncio
import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Final

_SECONDS: Final = 10
"""Until a process that should end is stopped."""


class EnvironmentFailed(Exception):
    """The environment cannot be used, or its process ended; the sentence says why."""


class RolloutMasked(Exception):
    """What went wrong was not the policy's doing: such a rollout has no reward, and must not be learned from."""


class EnvironmentProcess:
    """An environment that is ready, in a process of its own."""

    def __init__(self, settings: Mapping[str, Any], *, python: str = "") -> None:
        """Start the process, and wait until it has read its settings.

        Args:
            settings: see docs/environments.md.
            python: of the environment that Cairn is installed in; "": this one.

        Raises:
            EnvironmentFailed: there is no Cairn, or the settings cannot be used.
        """
        self._python = python or sys.executable
        self._replies: dict[int, Future[dict[str, Any]]] = {}
        self._sent = 0
        self._writing, self._waiting = Lock(), Lock()
        self._ended = False
        # -P: a file of the current folder is never imported.
        command = [self._python, "-P", "-m", "train.environments"]
        try:
            said = json.dumps({"settings": dict(settings)}, default=os.fspath)
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        except TypeError as error:
            raise EnvironmentFailed(f"the settings of the environment are no JSON: {error}") from error
        except OSError as error:
            raise EnvironmentFailed(f"{self._python} cannot be started: {error}") from error
        atexit.register(self.close)
        self._reader = Thread(target=self._read, daemon=True)
        self._write(said)
        assert self._process.stdout is not None
        first = self._process.stdout.readline() or json.dumps({"error": self._absent()})
        self._reader.start()
        ready = json.loads(first)
        if "error" in ready:
            self.close()
            raise EnvironmentFailed(ready["error"])
        self.tasks: list[dict[str, Any]] = ready["tasks"]
        """`question` and `answers` of each; its place is its number."""
        self.stops: list[str] = ready["stops"]
        """The texts at which the policy's turn ends."""

    @property
    def alive(self) -> bool:
        """Whether it can take a rollout."""
        return not self._ended

    @property
    def pid(self) -> int:
        return self._process.pid

    async def run(self, task: int, **model: Any) -> dict[str, Any]:
        """Run one rollout; cancelling it cancels it there, too.

        Args:
            task: its number.
            model: `base_url`, `model`, and if they are known `api_key`, `temperature`, `top_p`, `seed`.

        Returns:
            What `train.environments.rollouts.Environment.run` reports of a rollout that has a reward.

        Raises:
            RolloutMasked: it has none.
            EnvironmentFailed: the process ended, or the rollout could not begin.
        """
        reply: Future[dict[str, Any]] = Future()
        with self._waiting:
            if self._ended:
                raise EnvironmentFailed(self._gone())
            self._sent += 1
            number = self._sent
            self._replies[number] = reply
        self._write(json.dumps({"id": number, "run": {"task": task, **model}}))
        try:
            said = await asyncio.wrap_future(reply)
        except asyncio.CancelledError:
            with self._waiting:
                self._replies.pop(number, None)
            self._write(json.dumps({"cancel": number}))
            raise
        if "error" in said:
            raise EnvironmentFailed(said["error"])
        result: dict[str, Any] = said["result"]
        if result["masked"]:
            raise RolloutMasked(f"Cairn masked the rollout: {result['masked']}")
        return result

    def close(self) -> None:
        """End the process and its rollouts. It may be called twice."""
        atexit.unregister(self.close)
        with suppress(OSError), self._writing:
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _write(self, line: str) -> None:
        """Send a request. A process that is gone is reported by `_read`, to everyone who waits."""
        with suppress(OSError, ValueError), self._writing:
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        """Hand each reply to the rollout that waits for it, until the process ends."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                reply = json.loads(line)
                with self._waiting:
                    waiting = self._replies.pop(reply["id"], None)
                if waiting is not None and waiting.set_running_or_notify_cancel():
                    waiting.set_result(reply)
        with self._waiting:
            self._ended = True
            left, self._replies = list(self._replies.values()), {}
        for waiting in left:
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(EnvironmentFailed(self._gone()))

    def _absent(self) -> str:
        return (
            f"Cairn did not start in {self._python}, as printed above; install it there (pip install cairn-search), "
            "or set `python` to the Python of an environment that has it"
        )

    def _gone(self) -> str:
        return f"the process of Cairn's rollouts ({self._python}) has ended; what it printed last says why"


_STARTED: Final[dict[tuple[int, str, str], EnvironmentProcess]] = {}
_STARTING: Final = Lock()


def environment_of(settings: Mapping[str, Any], *, python: str = "") -> EnvironmentProcess:
    """The environment of these settings: started once in each process of a trainer, and again where it has ended.

    Raises:
        EnvironmentFailed: as `EnvironmentProcess`.
    """
    try:
        key = (os.getpid(), python, json.dumps(dict(settings), sort_keys=True, default=os.fspath))
    except TypeError as error:
        raise EnvironmentFailed(f"the settings of the environment are no JSON: {error}") from error
    with _STARTING:
        found = _STARTED.get(key)
        if found is None or not found.alive:
            found = _STARTED[key] = EnvironmentProcess(settings, python=python)
        return found
