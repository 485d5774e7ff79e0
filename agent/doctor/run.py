"""Checks as data, and how they run: all at the same time, each one bounded, none of them able to hold up the end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from agent.errors import AgentError

State = Literal["ok", "warn", "bad", "skip"]
"""It works · it works, but look at it · it does not work · it is not set up, or was not looked at."""
SECONDS: Final = 15.0
"""One check."""
SLOWER: Final = 6

T = TypeVar("T")


@dataclass(frozen=True)
class CheckResult:
    """What a check found."""

    state: State
    says: str
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """A verdict, and about what."""

    name: str
    state: State
    says: str
    fix: str = ""


@dataclass(frozen=True)
class DoctorCheck:
    """One thing to look at. `run` may raise `AgentError`: its sentence is then what is wrong."""

    name: str
    run: Callable[[], Awaitable[CheckResult]]
    slow: bool = False
    """It loads a model: it may take `SLOWER` times as long."""


def ok(says: str) -> CheckResult:
    return CheckResult("ok", says)


def warn(says: str, fix: str) -> CheckResult:
    return CheckResult("warn", says, fix)


def bad(says: str, fix: str = "") -> CheckResult:
    return CheckResult("bad", says, fix)


def skipped(says: str) -> CheckResult:
    return CheckResult("skip", says)


Report = Callable[[Diagnosis], None]


def _silent(_: Diagnosis) -> None:
    """No one watches."""


def diagnose(checks: Sequence[DoctorCheck], *, seconds: float = SECONDS, report: Report = _silent) -> list[Diagnosis]:
    """Run all checks, and wait for nothing that hangs; `report` is called with each finding as its check ends.

    Returns:
        One finding for each check, in their order; a check that takes longer than `seconds` is itself a finding.
    """

    async def run() -> list[Diagnosis]:
        asyncio.get_running_loop().set_default_executor(_Daemons())
        return await examine(checks, seconds=seconds, report=report)

    return asyncio.run(run())


async def examine(
    checks: Sequence[DoctorCheck], *, seconds: float = SECONDS, report: Report = _silent
) -> list[Diagnosis]:
    """The same in a loop that runs already; what hangs in a thread of that loop is its owner's."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_one(check, seconds=seconds, report=report)) for check in checks]
    return [task.result() for task in tasks]


async def _one(check: DoctorCheck, *, seconds: float, report: Report) -> Diagnosis:
    seconds *= SLOWER if check.slow else 1
    try:
        async with asyncio.timeout(seconds):
            verdict = await check.run()
    except TimeoutError:
        verdict = bad(f"no answer in {seconds:g} s", "check whether the machine, disk or address behind it responds")
    except AgentError as error:
        verdict = bad(str(error))
    except Exception as error:  # noqa: BLE001 - a check that breaks must not cost the others
        verdict = bad(f"the check itself failed: {type(error).__name__}: {error}")
    finding = Diagnosis(check.name, verdict.state, verdict.says, verdict.fix)
    report(finding)
    return finding


class _Daemons(ThreadPoolExecutor):
    """A thread for each call that ends with the process: a disk or a resolver that hangs is not waited for."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it belongs to who waits
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing waits for what hangs."""
