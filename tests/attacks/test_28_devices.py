"""Finding 28: a pipe without a writer, or a device that never ends, named where a file belongs."""

import os
from pathlib import Path

import pytest

from tests.attacks.product import Product

COMMANDS = [
    ["index", "build", "{}", "--out", "index"],
    ["index", "batch", "there", "--questions", "{}"],
    ["kg", "build", "{}", "--out", "g.db"],
    ["kg", "lookup", "{}", "x"],
    ["eval", "--questions", "{}", "--out", "run"],
    ["protocol", "check", "{}"],
    ["ask", "Who?", "--protocol", "search-r1", "--prompt-file", "{}"],
    ["ask", "Who?", "--corpus", "{}"],
    ["dataset", "show", "{}"],
]


@pytest.mark.parametrize(
    "arguments",
    # `protocol check` waits for what a pipe may yet say.
    [pytest.param(each, id=" ".join(each[:2]), marks=[pytest.mark.slow] * ("check" in each)) for each in COMMANDS],
)
@pytest.mark.parametrize("kind", ["pipe", "zero", "link"])
def test_a_command_ends_and_says_what_it_was_given(
    product: Product, tmp_path: Path, kind: str, arguments: list[str]
) -> None:
    named = tmp_path / "given.jsonl"
    if kind == "pipe":
        os.mkfifo(named)
    elif kind == "link":
        named.symlink_to("/dev/zero")
    given = "/dev/zero" if kind == "zero" else str(named)
    done = product.run(*(argument.format(given) for argument in arguments), cwd=tmp_path, seconds=30)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert given in done.stderr
