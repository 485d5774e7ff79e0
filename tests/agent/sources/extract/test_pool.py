"""The processes that extract: bounded, killed when a page hangs them, replaced, and gone when all is closed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from agent.sources.extract.ending import end
from agent.sources.extract.page import MAX_TEXT_CHARS
from agent.sources.extract.pool import ExtractPool
from agent.sources.extract.text import ExtractError
from agent.sources.extract.worker import LENGTH
from tests.agent.sources.extract.pages import ARTICLE, STORY, nested, pdf

PAGE = ARTICLE.encode()
_FRAME = """import struct, sys, time
out = sys.stdout.buffer
def say(b):
    out.write(struct.pack('>I', len(b)) + b)
    out.flush()
"""


def program(body: str) -> Sequence[str]:
    """A worker of our own that speaks the protocol as `body` has it."""
    return (sys.executable, "-S", "-c", _FRAME + body)


HANGS = program("say(b'{}')\ntime.sleep(600)\n")
DIES = program("say(b'{}')\nsys.exit(3)\n")
FLOODS = program("say(b'{}')\nout.write(b'\\xff' * 5_000_000)\nout.flush()\ntime.sleep(600)\n")
LIES = program("say(b'{}')\nsay(b'[1, 2]')\ntime.sleep(600)\n")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - a process that starts or ends sets no event
        await asyncio.sleep(0.001)


def run(use: Callable[[ExtractPool], Awaitable[None]], workers: Callable[[], ExtractPool] = ExtractPool) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            made = workers()
            try:
                await use(made)
            finally:
                pids = made.pids
                await made.aclose()
            assert not [pid for pid in pids if is_alive(pid)]

    asyncio.run(bounded())


def test_a_process_starts_with_the_first_page_and_serves_the_next_ones():
    async def use(workers: ExtractPool) -> None:
        assert not workers.pids
        first = await workers.page(PAGE, kind="html")
        pids = workers.pids
        assert STORY[0] in first.text
        assert await workers.page(PAGE, kind="html") == first
        assert STORY[1] in (await workers.page(pdf(*STORY), kind="pdf")).text
        assert (await workers.page("Größe".encode(), kind="text")).text == "Größe"
        assert workers.pids == pids
        assert len(pids) == 1

    run(use)


def test_never_more_processes_than_allowed():
    async def use(workers: ExtractPool) -> None:
        found = await asyncio.gather(*(workers.page(PAGE, kind="html") for _ in range(6)))
        assert len({page.text for page in found}) == 1
        assert len(workers.pids) == 2

    run(use, lambda: ExtractPool(count=2))


def test_markup_that_stalls_every_parser_ends_in_bounded_time_and_the_loop_never_waits():
    async def use(workers: ExtractPool) -> None:
        await workers.page(PAGE, kind="html")
        before = workers.pids
        worst = 0.0

        async def heartbeat() -> None:
            nonlocal worst
            while True:
                start = time.perf_counter()
                await asyncio.sleep(0.01)
                worst = max(worst, time.perf_counter() - start)

        heart = asyncio.create_task(heartbeat())
        start = time.perf_counter()
        with pytest.raises(ExtractError, match="took more than"):
            await workers.page(nested(40_000), kind="html")
        took = time.perf_counter() - start
        heart.cancel()
        assert took < 6.0  # the parsers would need 20 s each
        assert worst < 0.4  # of 0.01: a busy machine wakes late, a loop that parses for seconds does not wake at all
        assert not is_alive(before[0])
        assert STORY[0] in (await workers.page(PAGE, kind="html")).text
        assert workers.pids != before

    run(use, lambda: ExtractPool(count=1, seconds=0.5))


def test_a_worker_that_hangs_is_killed():
    async def use(workers: ExtractPool) -> None:
        task = asyncio.create_task(workers.page(PAGE, kind="pdf"))
        await until(lambda: bool(workers.pids))
        pid = workers.pids[0]
        assert is_alive(pid)
        with pytest.raises(ExtractError, match=r"took more than 0\.2 s"):
            await task
        assert not is_alive(pid)
        assert not workers.pids

    run(use, lambda: ExtractPool(seconds=0.2, command=HANGS))


@pytest.mark.parametrize(
    ("command", "why"),
    [(DIES, r"its reader died \(status 3\)"), (FLOODS, "gave no valid answer"), (LIES, "gave no valid answer")],
    ids=["dies", "floods", "lies"],
)
def test_a_worker_that_a_page_has_broken_is_killed_and_says_nothing(command: Sequence[str], why: str):
    async def use(workers: ExtractPool) -> None:
        with pytest.raises(ExtractError, match=why):
            await workers.page(PAGE, kind="html")
        assert not workers.pids

    run(use, lambda: ExtractPool(seconds=5, command=command))


def test_an_answer_of_other_fields_and_kinds_is_read_as_far_as_it_goes():
    async def use(workers: ExtractPool) -> None:
        found = await workers.page(PAGE, kind="html")
        assert (found.text, found.title, found.date) == ("5", "[]", "")

    run(use, lambda: ExtractPool(command=program('say(b\'{}\')\nsay(b\'{"text": 5, "title": [], "x": 1}\')\n')))


def test_all_can_be_closed_while_a_page_is_being_read():
    async def use(workers: ExtractPool) -> None:
        task = asyncio.create_task(workers.page(PAGE, kind="html"))
        await until(lambda: bool(workers.pids))
        pid = workers.pids[0]
        await workers.aclose()
        assert not is_alive(pid)
        with pytest.raises(ExtractError):
            await task
        assert not workers.pids

    run(use, lambda: ExtractPool(seconds=30, command=HANGS))


def test_a_worker_that_goes_on_writing_after_its_answer_is_ended_too():
    async def use(workers: ExtractPool) -> None:
        assert (await workers.page(PAGE, kind="html")).text == "5"
        await asyncio.sleep(0.5)  # nothing reads the rest, until asyncio reads no further either
        async with asyncio.timeout(20):
            await workers.aclose()

    answers_and_floods = "say(b'{}')\nsay(b'{\"text\": 5}')\nout.write(b'x' * 50_000_000)\nout.flush()\n"
    run(use, lambda: ExtractPool(command=program(answers_and_floods)))


def test_who_is_cancelled_while_a_process_ends_still_waits_for_its_end():
    async def main() -> None:
        process = await asyncio.create_subprocess_exec(*HANGS, stdin=asyncio.subprocess.PIPE, stdout=subprocess.PIPE)
        ending = asyncio.create_task(end(process))
        await asyncio.sleep(0)  # it has begun to wait
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert process.returncode == -signal.SIGKILL

    asyncio.run(main())


def test_a_page_without_text_is_read_once():
    async def use(workers: ExtractPool) -> None:
        with pytest.raises(ExtractError, match="no readable text"):
            await workers.page(b"<html></html>", kind="html")

    # A second page would be one more than this worker answers.
    run(use, lambda: ExtractPool(command=program("say(b'{}')\nsay(b'{\"text\": \"\"}')\ntime.sleep(600)\n"), seconds=5))


def test_a_program_that_cannot_be_started_is_a_page_that_cannot_be_read():
    async def use(workers: ExtractPool) -> None:
        with pytest.raises(ExtractError, match="no process"):
            await workers.page(PAGE, kind="html")

    run(use, lambda: ExtractPool(command=("/no/such/program",)))


def test_a_worker_that_died_between_two_pages_costs_no_page():
    async def use(workers: ExtractPool) -> None:
        await workers.page(PAGE, kind="html")
        pid = workers.pids[0]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_alive(pid))
        assert STORY[0] in (await workers.page(PAGE, kind="html")).text
        assert workers.pids != [pid]

    run(use, lambda: ExtractPool(count=1))


def test_a_caller_that_gives_up_in_the_middle_leaves_no_process_behind():
    async def use(workers: ExtractPool) -> None:
        task = asyncio.create_task(workers.page(PAGE, kind="html"))
        await until(lambda: bool(workers.pids))
        pid = workers.pids[0]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_alive(pid)
        with pytest.raises(ExtractError):  # and its place is free again
            await workers.page(PAGE, kind="html")

    run(use, lambda: ExtractPool(count=1, seconds=0.2, command=HANGS))


def test_a_long_text_of_characters_that_need_many_bytes_comes_through_whole():
    async def use(workers: ExtractPool) -> None:
        text = "🌊" * MAX_TEXT_CHARS
        assert (await workers.page(text.encode(), kind="text")).text == text

    run(use)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited where the system can")
def test_a_page_that_needs_too_much_memory_ends_its_worker_and_nothing_else():
    async def use(workers: ExtractPool) -> None:
        await workers.page(b"short", kind="text")
        pid = workers.pids[0]
        with pytest.raises(ExtractError):
            await workers.page("🌊".encode() * 15_000_000, kind="text")
        assert not is_alive(pid)
        assert (await workers.page(b"short", kind="text")).text == "short"

    run(use, lambda: ExtractPool(count=1, megabytes=160, seconds=10))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_worker_knows_no_key_of_its_parent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_TAVILY_KEY", "tvly-secret")

    async def use(workers: ExtractPool) -> None:
        await workers.page(PAGE, kind="html")
        environment = await asyncio.to_thread(Path(f"/proc/{workers.pids[0]}/environ").read_bytes)
        assert [entry.partition(b"=")[0] for entry in environment.split(b"\0") if entry] == [b"PYTHONPATH"]

    run(use)


def test_a_worker_is_not_led_astray_by_the_folder_it_is_started_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry or os.getcwd() for entry in sys.path if Path(entry) != tmp_path])

    async def use(workers: ExtractPool) -> None:
        assert STORY[0] in (await workers.page(PAGE, kind="html")).text

    run(use)


def test_ctrl_c_is_for_the_process_that_started_it():
    async def use(workers: ExtractPool) -> None:
        await workers.page(PAGE, kind="html")
        os.kill(workers.pids[0], signal.SIGINT)
        before = workers.pids
        await workers.page(PAGE, kind="html")
        assert workers.pids == before

    run(use)


def test_after_closing_nothing_is_read():
    async def use(workers: ExtractPool) -> None:
        await workers.page(PAGE, kind="html")
        await workers.aclose()
        await workers.aclose()
        with pytest.raises(ExtractError, match="closed"):
            await workers.page(PAGE, kind="html")

    run(use)


def start_alone() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "agent.sources.extract.worker", "1024"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_worker_ends_when_its_parent_is_gone():
    with start_alone() as worker:
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs alarm signals")
def test_a_worker_that_hangs_ends_by_itself_where_no_one_is_left_to_kill_it():
    head = b'{"kind": "html", "charset": "", "url": "", "how": "fast", "seconds": 0}'
    body = nested(60_000)
    with start_alone() as worker:
        assert worker.stdin is not None
        worker.stdin.write(LENGTH.pack(len(head)) + head + LENGTH.pack(len(body)) + body)
        worker.stdin.close()
        assert worker.wait(30) == -signal.SIGALRM
