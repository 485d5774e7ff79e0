"""Finding 27: a protocol file's patterns and templates could take for ever, or all memory."""

from pathlib import Path

import pytest

from tests.attacks.product import Product

PROTOCOL = """
name = "mine"
plan = "query"
{line}

[tags]
thought = "think"
search = "search"
information = "information"
answer = "answer"
"""
TEXT = "<think>a</think>" * 40 + "<search>b</search><information>\nc\n</information><answer>d</answer>"


def checked(product: Product, folder: Path, line: str) -> tuple[int, str]:
    (folder / "mine.toml").write_text(PROTOCOL.format(line=line), encoding="utf-8")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    done = product.run("protocol", "check", "text.txt", "--protocol", "mine.toml", cwd=folder, seconds=30)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "pattern", ["^((thought )*)*merge $", "^((thought )+)+merge $", "((thought |(thought )*))*merge "]
)
def test_a_pattern_takes_no_longer_than_it_is_long(product: Product, tmp_path: Path, pattern: str) -> None:
    status, said = checked(product, tmp_path, f"well_formed = '{pattern}'")
    assert status == 1
    assert "do not come as the protocol wants them" in said


def test_a_pattern_beyond_roles_is_refused(product: Product, tmp_path: Path) -> None:
    status, said = checked(product, tmp_path, "well_formed = '^(.*)*$'")
    assert status in (1, 2)
    assert "cannot be read; write names" in said


@pytest.mark.parametrize("template", ["{node:>99999999999}", "{opening.__class__}", "{closing!r}"])
@pytest.mark.parametrize("key", ["force", "failed"])
def test_a_template_says_names_alone(product: Product, tmp_path: Path, key: str, template: str) -> None:
    status, said = checked(product, tmp_path, f"{key} = '{template}'")
    assert status in (1, 2)
    assert f"{key} holds" in said or f"{key} says how" in said


@pytest.mark.parametrize("file", ["mine.toml", "cairn.toml"])
def test_a_file_that_never_ends_is_refused(product: Product, tmp_path: Path, file: str) -> None:
    (tmp_path / file).symlink_to("/dev/zero")
    done = product.run("ask", "x", *(("--protocol", file) if file == "mine.toml" else ()), cwd=tmp_path, seconds=30)
    assert done.returncode == 1
    assert "is not a regular file" in done.stderr
