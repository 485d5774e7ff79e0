"""What a benchmark prints and writes."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from lab.report import ReportTable, print_report, write_report

TABLE = ReportTable(("", "EM"), [("ours", ".5"), ("theirs", "")], title="a world", caption="met")


def test_one_table_is_rows_for_a_terminal_and_markdown_for_a_page():
    rich = TABLE.rich()
    assert ([column.header for column in rich.columns], rich.row_count) == (["", "EM"], 2)
    assert (rich.title, rich.caption) == ("a world", "met")
    assert TABLE.markdown() == "| | EM |\n|---|---|\n| ours | .5 |\n| theirs | |"


@pytest.mark.parametrize("as_json", [True, False])
def test_figures_are_printed_as_one_object_or_as_tables(as_json: bool, capsys: pytest.CaptureFixture[str]):
    print_report([TABLE], {"em": 0.5}, as_json=as_json)
    printed = capsys.readouterr().out
    assert ("theirs" in printed) is not as_json
    assert not as_json or json.loads(printed) == {"em": 0.5}


def test_a_report_is_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "docs" / "bench" / "it.md"
    write_report(path, "# It\n")
    assert path.read_text(encoding="utf-8") == "# It\n"
    assert f"written: {path}" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "docs").write_text("in the way", encoding="utf-8")
    write_report(tmp_path / "docs" / "it.md", "# It\n")
    assert "it.md cannot be written: " in capsys.readouterr().err


def test_a_report_with_figures_says_when_and_of_which_code(tmp_path: Path):
    write_report(tmp_path / "it.md", "# It\n\nText.\n", code=("agent/plan/plan.py", "agent/loop/loop.py"))
    heading, _, mark, *rest = (tmp_path / "it.md").read_text(encoding="utf-8").splitlines()
    assert (heading, rest) == ("# It", ["", "Text."])
    today = rf"\*Measured {date.today().isoformat()} at ([0-9a-f]{{7,}}\+?|version \S+); code: agent/plan/plan.py agent/loop/loop.py\*"
    assert re.fullmatch(today, mark)
