"""What is wrong with a recipe is a sentence that names the place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.errors import SetupError
from lab.reader import recipe as reader
from train.common.recipe import read_recipe
from train.common.recipe_files import kind_of, read_model

ROOT = Path(__file__).parents[3]


class Small(BaseModel):
    start: str = ""
    steps: int


def test_a_start_takes_the_place_of_the_files_own(tmp_path: Path):
    path = tmp_path / "small.toml"
    path.write_text('start = "a"\nsteps = 3\n', encoding="utf-8")
    assert read_model(path, Small) == Small(start="a", steps=3)
    assert read_model(path, Small, start="b") == Small(start="b", steps=3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"steps = ", r"the scale .*wrong\.toml cannot be read: Invalid value"),
        (b"\xff\xfe", r"the scale .*wrong\.toml cannot be read: .*utf-8"),
        (b'steps = "many"', r"the scale .*wrong\.toml cannot be used: steps: Input should be a valid integer"),
    ],
)
def test_what_cannot_be_read_or_used_is_a_sentence(tmp_path: Path, text: bytes, why: str):
    path = tmp_path / "wrong.toml"
    path.write_bytes(text)
    with pytest.raises(SetupError, match=why):
        read_model(path, Small, what="scale")


def test_a_missing_recipe_is_a_sentence(tmp_path: Path):
    with pytest.raises(SetupError, match=r"the recipe .*gone\.toml cannot be read: .*No such file"):
        kind_of(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("name", "read"), [("train/recipes/tiny_weak", read_recipe), ("lab/recipes/reader", reader.read_recipe)]
)
def test_recipes_name_the_key_that_they_do_not_know(tmp_path: Path, name: str, read: Callable[[Path], object]):
    path = tmp_path / "wrong.toml"
    path.write_text("speed = 3\n" + (ROOT / f"{name}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(SetupError, match=r"the recipe .*\.toml cannot be used: speed: Extra inputs") as raised:
        read(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "kind"), [('kind = "reader"', "'reader'"), ("", "''")])
def test_a_recipe_of_another_kind_is_told_by_its_kind_alone(tmp_path: Path, text: str, kind: str):
    path = tmp_path / "other.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError, match=rf"other\.toml is of kind {kind}; here one of kind 'sft' is needed"):
        read_recipe(path)
