import json
from pathlib import Path

import pytest

from agent.errors import SetupError
from tests.train.disk import full_disk
from train.common.lines import add_lines, keep_lines


def steps_of(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_of_later_steps_and_one_that_was_cut_off_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert keep_lines(path, after=3) == []
    add_lines(path, ['{"step": 1, "text": "a\u2028b"}', '{"step": 2}', '{"step": 10}'])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"step": 11, "lo')
    assert keep_lines(path, after=2) == ['{"step": 1, "text": "a\u2028b"}', '{"step": 2}']
    add_lines(path, ['{"step": 3}'])
    assert path.read_text(encoding="utf-8").endswith('\n{"step": 2}\n{"step": 3}\n')


def test_where_nothing_is_removed_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    add_lines(path, ['{"step": 1}'])
    before = path.stat()
    keep_lines(path, after=1)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("line", ["no JSON", '{"tokens": 3}', ""])
def test_other_lines_are_a_sentence(tmp_path: Path, line: str) -> None:
    (tmp_path / "lines.jsonl").write_text(f'{{"step": 1}}\n{line}\n', encoding="utf-8")
    with pytest.raises(SetupError, match=r"lines.jsonl, line 2 cannot be read: .*; remove the file"):
        keep_lines(tmp_path / "lines.jsonl", after=1)


def test_what_cannot_be_read_or_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read"):
        keep_lines(tmp_path, after=1)
    with pytest.raises(SetupError, match=r"cannot be written: .*go on with --resume"):
        add_lines(tmp_path, ["{}"])
    with pytest.raises(SetupError, match=r"File too large.*what was saved before is whole"), full_disk(100):
        add_lines(tmp_path / "lines.jsonl", ["x" * 200])
