import os
from pathlib import Path
from time import perf_counter

import pytest

from agent.sources.corpus.extract import ExtractError
from agent.sources.corpus.read_ahead import ReadAhead


def pages(folder: Path, count: int) -> list[tuple[Path, str]]:
    for number in range(count):
        (folder / f"{number}.html").write_text(f"<title>{number}</title><p>Page {number}.</p>", encoding="utf-8")
    return [(folder / f"{number}.html", "html") for number in range(count)]


def test_files_come_in_the_order_in_which_they_are_asked_for(tmp_path: Path):
    files = pages(tmp_path, 12)
    with ReadAhead(files, workers=3) as reader:
        assert [reader.read(*file).title for file in files] == [str(number) for number in range(12)]


def test_a_file_that_cannot_be_read_holds_up_no_other(tmp_path: Path):
    files = pages(tmp_path, 4)
    files.insert(1, (tmp_path / "gone.pdf", "pdf"))
    with ReadAhead(files, workers=2) as reader:
        assert reader.read(*files[0]).title == "0"
        with pytest.raises(ExtractError, match="cannot be opened"):
            reader.read(*files[1])
        assert [reader.read(*file).title for file in files[2:]] == ["1", "2", "3"]


def test_closing_waits_for_no_file_that_hangs(tmp_path: Path):
    """Pipes that nobody writes to stand for them: opening one never ends."""
    files = pages(tmp_path, 1)
    for number in range(6):
        os.mkfifo(tmp_path / f"hang{number}.html")
        files.append((tmp_path / f"hang{number}.html", "html"))
    with ReadAhead(files, workers=2) as reader:
        assert reader.read(*files[0]).title == "0"
        started = perf_counter()
    assert perf_counter() - started < 20, "one of them alone may take a minute"
