"""What lab adds to `cairn`, as the command finds it."""

import pytest

from agent.cli import run


@pytest.mark.parametrize("words", [["train", "plan"], ["train", "reader"], ["bench", "sft"], ["reproduce"]])
def test_each_command_of_lab_is_found(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert run([*words, "--help"]) == 0
    assert "Usage: cairn " + " ".join(words) in " ".join(capsys.readouterr().out.split())
