"""Where commands write."""

from pathlib import Path

import pytest

from agent.cli.console import write_report


def test_a_report_is_kept_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "docs" / "bench" / "it.md"
    write_report(path, "# It\n")
    assert path.read_text(encoding="utf-8") == "# It\n"
    assert f"written: {path}" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "docs").write_text("in the way", encoding="utf-8")
    write_report(tmp_path / "docs" / "it.md", "# It\n")
    assert "it.md cannot be written: " in capsys.readouterr().err
