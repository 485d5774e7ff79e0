"""Programs that run beside a test. What they say goes to a file, so that none waits for a reader."""

import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, TypeVar

_PAUSE: Final = 0.02
_END_SECONDS: Final = 60
_T = TypeVar("_T")


class Process(Protocol):
    """What the tests need of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...


@dataclass(frozen=True)
class Running:
    process: Process
    log: Path
    """What it says, on both of its outputs."""

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, look: Callable[[], _T | None]) -> _T:
        """Look until there is something; a program that ends before is an error with what it said."""
        while not (found := look()):
            if self.process.poll() is not None:
                raise AssertionError(self.said)
            time.sleep(_PAUSE)
        return found


@contextmanager
def running(
    command: Sequence[str],
    *,
    end: signal.Signals = signal.SIGKILL,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    cwd: Path | None = None,
) -> Generator[Running]:
    """A program, until the context ends.

    Args:
        command: that starts it.
        end: the signal that ends it.
        env: in the place of ours.
        user: in the place of ours.
        cwd: in the place of ours.
    """
    with TemporaryDirectory(prefix="cairn-log-") as folder:
        log = Path(folder) / "log"
        with (
            log.open("wb") as out,
            subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env, user=user, cwd=cwd) as process,
        ):
            try:
                yield Running(process, log)
            finally:
                process.send_signal(end)
                process.wait(_END_SECONDS)
