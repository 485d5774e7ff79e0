import json
from pathlib import Path

import pytest

from agent.cli import run


def test_build_then_validate_a_small_world(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "w")
    assert run(["world", "build", "--seed", "7", "--out", folder, "--questions", "60", "--json"]) == 0
    card = json.loads(capfd.readouterr().out)
    assert card["questions"] == 60
    status = run(["world", "validate", folder, "--json"])
    printed = json.loads(capfd.readouterr().out)
    assert status == (0 if printed["holds"] else 1)
    sound = {check["name"]: check["holds"] for check in printed["checks"]}
    assert sound["answered by its gold passages"]
    assert sound["not answered without one of them"]
    assert run(["world", "validate", folder]) == status
    assert ("does not hold" in capfd.readouterr().out) is not printed["holds"]


def test_an_unknown_split_is_a_usage_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["world", "build", "--seed", "1", "--out", str(tmp_path / "w"), "--split", "exam"]) == 2
    assert "train, dev, test" in capfd.readouterr().err.replace("\n", " ")


def test_a_world_without_questions_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "w")
    assert run(["world", "build", "--seed", "1", "--out", folder, "--size", "300", "--questions", "0"]) == 0
    assert run(["world", "validate", folder]) == 1
    assert "build it with --questions" in capfd.readouterr().err.replace("\n", " ")


def test_too_many_questions_for_a_small_world_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["world", "build", "--seed", "1", "--out", str(tmp_path / "w"), "--size", "300", "--questions", "9000"])
        == 1
    )
    assert "fewer --questions" in capfd.readouterr().err.replace("\n", " ")


def test_difficulty_is_set_and_shown_in_the_card(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "w")
    chosen = ["--difficulty", "noise=0.9", "--difficulty", "hops=2"]
    assert run(["world", "build", "--seed", "1", "--out", folder, "--questions", "20", *chosen, "--json"]) == 0
    card = json.loads(capfd.readouterr().out)
    assert (card["difficulty"]["noise"], card["difficulty"]["hops"]) == (0.9, 2)
    assert "chain3" not in card["types"]


@pytest.mark.parametrize("setting", ["noise=2", "hops=5", "volume=1", "noise"])
def test_a_difficulty_that_cannot_be_is_a_usage_error(
    setting: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["world", "build", "--seed", "1", "--out", str(tmp_path / "w"), "--difficulty", setting]) == 2
    assert "--difficulty" in capfd.readouterr().err


def test_so_many_questions_of_each_type_are_validated(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["world", "validate", "--each", "5", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["holds"]
    assert min(printed["types"].values()) >= 5


def test_validate_wants_a_world_or_a_number(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["world", "validate"]) == 2
    assert "--each" in capfd.readouterr().err
