"""What the README shows is there: its commands and their options, its Python, its settings."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from agent.cli import make_app
from agent.settings import load_settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def shown_commands() -> Iterator[list[str]]:
    """The words after `cairn` of every command line in the README."""
    for line in "\n".join(blocks("sh")).splitlines():
        for part in re.split(r"\s[|&]+\s", line):
            words = shlex.split(part, comments=True)
            at = next((n for n, word in enumerate(words) if word in {"cairn", ".venv/bin/cairn"}), None)
            if at is not None and "docker" not in words[:at]:
                yield words[at + 1 :]


@pytest.mark.parametrize("words", list(shown_commands()), ids=" ".join)
def test_a_command_of_the_readme_is_there_with_its_options(words: list[str]):
    command: Any = typer.main.get_command(make_app())
    rest = list(words)
    while commands := getattr(command, "commands", None):
        assert rest, f"{words} stops at a group"
        assert rest[0] in commands, f"there is no command {rest[0]!r}"
        command = commands[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert not {word for word in rest if word.startswith("--")} - known


@pytest.mark.parametrize("text", blocks("python"))
def test_the_python_of_the_readme_is_python(text: str):
    assert ast.parse(text).body


@pytest.mark.parametrize("text", blocks("toml"))
def test_the_settings_of_the_readme_are_accepted(text: str, tmp_path: Path):
    path = tmp_path / "cairn.toml"
    path.write_text(text, encoding="utf-8")
    assert load_settings(path).model_fields_set >= tomllib.loads(text).keys()


def test_what_the_readme_links_to_is_there():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), f"{target} is linked and not there"
