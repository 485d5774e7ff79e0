import os
import signal
import threading
from pathlib import Path
from time import perf_counter, sleep

import pytest

from agent.sources.extract.pool import FileReader
from agent.sources.extract.text import Extracted, ExtractError
from tests.agent.sources.extract.files import make_pdf


def page(folder: Path, name: str = "a.html") -> Path:
    path = folder / name
    path.write_text("<title>Owls</title><p>An owl hunts.</p>", encoding="utf-8")
    return path


def pid_of(files: FileReader) -> int:
    """The process id of its only worker."""
    (pid,) = files._pool.pids  # pyright: ignore[reportPrivateUsage]
    return pid


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stop(files: FileReader, folder: Path) -> int:
    """Read one file, then stop the worker, as a parser does that goes round in circles; gives its process id."""
    files.read(page(folder), "html")
    os.kill(pid_of(files), signal.SIGSTOP)
    return pid_of(files)


def test_files_are_read_by_one_worker_after_the_other(tmp_path: Path):
    (tmp_path / "b.pdf").write_bytes(make_pdf(["One."], ["Two."], title="Numbers"))
    with FileReader() as files:
        assert files.read(page(tmp_path), "html") == Extracted("An owl hunts.", title="Owls")
        assert files.read(tmp_path / "b.pdf", "pdf") == Extracted("One.\n\nTwo.", title="Numbers", pages=(0, 6))


def test_a_file_without_text_costs_nothing_but_itself(tmp_path: Path):
    (tmp_path / "empty.pdf").write_bytes(b"")
    with FileReader() as files:
        for name, why in {"empty.pdf": "not a readable PDF", "gone.pdf": "cannot be opened"}.items():
            with pytest.raises(ExtractError, match=why):
                files.read(tmp_path / name, "pdf")
        assert files.read(page(tmp_path), "html").title == "Owls"


def test_a_file_that_changes_before_its_turn_is_read_again(tmp_path: Path):
    first, second, third = (page(tmp_path, f"{name}.html") for name in "abc")
    with FileReader([(first, "html"), (second, "html"), (third, "html")], workers=1) as files:
        files.read(first, "html")
        wait_for = files._ahead[-1].text  # pyright: ignore[reportPrivateUsage]
        wait_for.result()
        third.write_text("<title>Owls</title><p>An owl sleeps.</p>", encoding="utf-8")
        assert files.read(third, "html").text == "An owl sleeps.", "the second one was not wanted"
        assert not files._ahead  # pyright: ignore[reportPrivateUsage]


def test_a_parser_that_hangs_is_killed(tmp_path: Path):
    with FileReader(seconds=1.5) as files:
        stop(files, tmp_path)
        started = perf_counter()
        with pytest.raises(ExtractError, match=r"took more than 1\.5 s"):
            files.read(page(tmp_path), "html")
        assert perf_counter() - started < 5, "the worker ends itself only seconds later, should no one do it"


def test_a_document_that_needs_too_much_time_or_memory_gets_a_sentence(tmp_path: Path):
    (tmp_path / "slow.rtf").write_bytes(b"{\\rtf1{\\fonttbl" + b"{\\f0 \\fcharset1" * 200)
    with FileReader(workers=1, seconds=2) as files:
        with pytest.raises(ExtractError, match="took more than 2 s: save it in smaller parts"):
            files.read(tmp_path / "slow.rtf", "rtf")
        assert files.read(page(tmp_path), "html").title == "Owls"
    with (
        FileReader(workers=1, megabytes=400) as files,
        pytest.raises(ExtractError, match="more than 400 MB of memory: save it in smaller parts"),
    ):
        files.read(tmp_path / "slow.rtf", "rtf")


def test_a_worker_that_died_between_two_files_is_replaced(tmp_path: Path):
    with FileReader() as files:
        files.read(page(tmp_path), "html")
        (worker,) = files._pool._all  # pyright: ignore[reportPrivateUsage]
        os.kill(worker.process.pid, signal.SIGKILL)
        while worker.process.returncode is None:
            sleep(0.001)  # a process that ends sets no event
        assert files.read(page(tmp_path), "html").title == "Owls"
        assert pid_of(files) != worker.process.pid


def test_a_parser_that_takes_its_worker_down_costs_its_own_file_only(tmp_path: Path):
    with FileReader() as files:
        worker = stop(files, tmp_path)
        crash = threading.Timer(0.1, os.kill, (worker, signal.SIGKILL))
        crash.start()
        with pytest.raises(ExtractError, match=r"its reader died \(status -9\)"):
            files.read(page(tmp_path, "b.html"), "html")
        crash.join()
        assert files.read(page(tmp_path), "html").title == "Owls"


def test_no_worker_outlives_its_reader(tmp_path: Path):
    with FileReader() as files:
        files.read(page(tmp_path), "html")
        pid = pid_of(files)
    assert not is_alive(pid)


def pages(folder: Path, count: int) -> list[tuple[Path, str]]:
    for number in range(count):
        (folder / f"{number}.html").write_text(f"<title>{number}</title><p>Page {number}.</p>", encoding="utf-8")
    return [(folder / f"{number}.html", "html") for number in range(count)]


def test_files_come_in_the_order_in_which_they_are_planned(tmp_path: Path):
    files = pages(tmp_path, 12)
    with FileReader(files, workers=3) as reader:
        assert [reader.read(*file).title for file in files] == [str(number) for number in range(12)]


def test_a_file_that_cannot_be_read_holds_up_no_other(tmp_path: Path):
    files = pages(tmp_path, 4)
    files.insert(1, (tmp_path / "gone.pdf", "pdf"))
    with FileReader(files, workers=2) as reader:
        assert reader.read(*files[0]).title == "0"
        with pytest.raises(ExtractError, match="cannot be opened"):
            reader.read(*files[1])
        assert [reader.read(*file).title for file in files[2:]] == ["1", "2", "3"]


def test_a_file_that_was_not_planned_is_read_too(tmp_path: Path):
    files = pages(tmp_path, 3)
    with FileReader(files[1:], workers=1) as reader:
        assert [reader.read(*file).title for file in files] == ["0", "1", "2"]


def test_closing_waits_for_no_file_that_hangs(tmp_path: Path):
    """Pipes without a writer, opening one of which never ends."""
    files = pages(tmp_path, 1)
    for number in range(6):
        os.mkfifo(tmp_path / f"hang{number}.html")
        files.append((tmp_path / f"hang{number}.html", "html"))
    with FileReader(files, workers=2) as reader:
        assert reader.read(*files[0]).title == "0"
        started = perf_counter()
    assert perf_counter() - started < 20, "one of them alone may take a minute"
