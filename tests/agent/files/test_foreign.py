import os
import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agent.files import foreign as foreign_files
from agent.files.foreign import has_holes, open_file, read_file, read_text


def why(path: Path, *, follow: bool = True, pipe: bool = False, most: int = 100) -> str:
    with pytest.raises(OSError, match=re.escape(str(path))) as caught:
        read_file(path, most=most, follow=follow, pipe=pipe)
    return caught.value.strerror or ""


def test_a_regular_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert read_file(tmp_path / "a", most=100) == b"x" * 100
    assert read_text(tmp_path / "a", most=100) == "x" * 100
    assert why(tmp_path / "a", most=99) == "it is larger than 99 bytes"


def test_what_is_no_file_is_named_and_nothing_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert why(tmp_path) == "it is a folder"
    assert why(tmp_path / "pipe").startswith("it is a pipe")
    assert why(Path("/dev/zero")) == "it is a device, not a file"
    assert why(tmp_path / "gone") == "No such file or directory"
    with pytest.raises(OSError, match="its name cannot be used"):
        read_file(Path("a\0b"), most=1)


def test_a_link_is_followed_only_where_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert read_file(tmp_path / "link", most=1) == b"x"
    assert "symbolic link" in why(tmp_path / "link", follow=False)
    with pytest.raises(OSError, match="symbolic link"):
        open_file(tmp_path / "link", follow=False)


def test_a_pipe_that_gives_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_files, "PIPE_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    assert why(tmp_path / "pipe", pipe=True) == "the pipe sent nothing for 0.1 s"


def test_a_pipe_is_read_on_request_to_its_end_or_its_bound() -> None:
    for content, most in ((b"y" * 200_000, 1 << 20), (b"y" * 200_000, 100_000)):
        reading, writing = os.pipe()
        writer = threading.Thread(target=write_all, args=(writing, content))
        writer.start()
        given = Path(f"/dev/fd/{reading}")
        if len(content) <= most:
            assert read_file(given, most=most, pipe=True) == content
        else:
            assert why(given, pipe=True, most=most) == "it is larger than 100,000 bytes"
        os.close(reading)
        writer.join()


def write_all(handle: int, content: bytes) -> None:
    with suppress(BrokenPipeError):
        while content:
            content = content[os.write(handle, content) :]
    os.close(handle)


def test_a_file_that_claims_more_than_was_written_has_holes(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"x" * 100_000)
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)
    with open_file(tmp_path / "whole") as whole, open_file(tmp_path / "holes") as holes:
        assert not has_holes(whole)
        assert has_holes(holes)
