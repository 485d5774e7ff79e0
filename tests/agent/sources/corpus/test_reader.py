import os
import signal
import threading
from pathlib import Path
from time import perf_counter

import pytest

from agent.sources.corpus.extract import Extracted, ExtractError
from agent.sources.corpus.reader import FileReader
from tests.agent.sources.corpus.files import make_pdf


def page(folder: Path, name: str = "a.html") -> Path:
    path = folder / name
    path.write_text("<title>Owls</title><p>An owl hunts.</p>", encoding="utf-8")
    return path


def stop(files: FileReader, folder: Path) -> int:
    """Read one file, then stop the worker, as a parser does that goes round in circles; gives its process id."""
    files.read(page(folder), "html")
    worker = files._worker  # pyright: ignore[reportPrivateUsage]
    assert worker is not None
    os.kill(worker.pid, signal.SIGSTOP)
    return worker.pid


def test_files_are_read_by_one_worker_after_the_other(tmp_path: Path):
    (tmp_path / "b.pdf").write_bytes(make_pdf(["One."], ["Two."], title="Numbers"))
    with FileReader() as files:
        assert files.read(page(tmp_path), "html") == Extracted("An owl hunts.", title="Owls")
        assert files.read(tmp_path / "b.pdf", "pdf") == Extracted("One.\n\nTwo.", title="Numbers", pages=(0, 6))


def test_a_file_without_text_costs_nothing_but_itself(tmp_path: Path):
    (tmp_path / "empty.pdf").write_bytes(b"")
    with FileReader() as files:
        for name, why in {"empty.pdf": "no PDF", "gone.pdf": "cannot be opened"}.items():
            with pytest.raises(ExtractError, match=why):
                files.read(tmp_path / name, "pdf")
        assert files.read(page(tmp_path), "html").title == "Owls"


def test_a_parser_that_hangs_is_killed(tmp_path: Path):
    with FileReader(seconds=1.5) as files:
        stop(files, tmp_path)
        started = perf_counter()
        with pytest.raises(ExtractError, match=r"took more than 1\.5 s"):
            files.read(page(tmp_path), "html")
        assert perf_counter() - started < 5, "the worker ends itself only seconds later, should nobody do it"


def test_a_worker_that_died_between_two_files_is_replaced(tmp_path: Path):
    with FileReader() as files:
        files.read(page(tmp_path), "html")
        worker = files._worker  # pyright: ignore[reportPrivateUsage]
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        assert files.read(page(tmp_path), "html").title == "Owls"


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
        worker = files._worker  # pyright: ignore[reportPrivateUsage]
    assert worker is not None
    assert worker.returncode is not None
