"""What is saved is there as a whole, or what was there before is."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent.errors import SetupError
from train.common.saving import as_a_whole, replacing


def test_a_file_and_a_folder_take_the_place_of_what_was_there(tmp_path: Path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("old", encoding="utf-8")
    (folder / "deep").mkdir(parents=True)
    with replacing(file) as made:
        made.write_text("new", encoding="utf-8")
        assert file.read_text(encoding="utf-8") == "old"
    with replacing(folder) as made:
        made.mkdir()
        (made / "new").touch()
    assert file.read_text(encoding="utf-8") == "new"
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def broken_off(saving: AbstractContextManager[Path], error: Exception) -> None:
    with saving as made:
        made.write_text("half", encoding="utf-8")
        raise error


def test_what_fails_on_the_way_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("old", encoding="utf-8")
    with pytest.raises(OSError, match="disk is full"):
        broken_off(replacing(file), OSError("disk is full"))
    with pytest.raises(SetupError, match=r"file could not be saved: no room; .* --resume"):
        broken_off(as_a_whole(file), RuntimeError("no room"))
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("file", "old")]


def test_what_a_kill_left_beside_it_is_in_nobodys_way(tmp_path: Path):
    (tmp_path / "file.new").mkdir()
    with replacing(tmp_path / "file") as made:
        made.write_text("new", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
