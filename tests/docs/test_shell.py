"""The shell of the pages: its commands exist with their options, and its lines run."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer
from click import Command, Context

from agent.cli import make_app
from tests.docs.blocks import ROOT, blocks, blocks_in
from tests.docs.session import Session
from tests.docs.shell import Line, lines_of
from tests.docs.stand_in import stand_in

LINES = [line for block in blocks("sh") for line in lines_of(block)]
CALLS = [(line, words) for line in LINES for words in line.cairn]
PAGES = sorted({line.block.page for line in LINES if not line.why})
ROOT_COMMAND: Any = typer.main.get_command(make_app())


def parsed(words: list[str]) -> None:
    """Read the words of a command as the command line does; nothing is run and no file is looked for."""
    command, context, rest = ROOT_COMMAND, Context(ROOT_COMMAND, info_name="cairn"), list(words)
    while commands := getattr(command, "commands", None):
        assert rest, f"{words} stops at a group"
        assert rest[0] in commands, f"there is no command {rest[0]!r}"
        command = commands[rest.pop(0)]
        context = Context(command, parent=context)
    given, left, order = parser_of(command, context).parse_args(args=rest)
    assert not left, f"{words}: {left} is too much"
    lacking = [parameter.name for parameter in order if parameter.required and not given.get(parameter.name or "")]
    assert not lacking, f"{words} lacks {lacking}"


def parser_of(command: Command, context: Context) -> Any:
    return command.make_parser(context)


@pytest.mark.parametrize(("line", "words"), CALLS, ids=[line.name for line, _ in CALLS])
def test_a_command_is_there_with_its_options(line: Line, words: list[str]):
    parsed(words)


@pytest.mark.parametrize("wrong", ["ask", "ask x y", "asks x", "ask x --no-such", "index", "ask x --protocol"])
def test_a_command_that_is_not_there_is_seen(wrong: str):
    with pytest.raises(Exception, match=r"lacks|too much|no command|No such option|stops|requires an argument"):
        parsed(wrong.split())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run_one_after_the_other(page: str, tmp_path: Path, cache: Path):
    with stand_in() as models, Session(tmp_path, models, cache) as session:
        for line in LINES:
            if line.block.page == page and not line.why:
                session.run(line)


def test_the_number_of_run_blocks_is_printed_and_why_the_others_are_not_run(capsys: pytest.CaptureFixture[str]):
    only_checked = Counter(line.why for line in LINES if line.why)
    ran = [line for line in LINES if not line.why]
    less = sum(line.shorter != line.text for line in ran)
    with capsys.disabled():
        sys.stdout.write(
            f"\nshell: {len(LINES)} lines; {len(ran)} run, {less} of them shortened; the others checked:\n"
        )
        sys.stdout.writelines(f"  {number:3} {why}\n" for why, number in only_checked.most_common())
    assert len(ran) > 80


def test_lines_are_read_as_a_shell_reads_them():
    text = "```sh\n# a comment\nA=1 cairn ask 'x # y' \\\n  --json | jq .  # why\ncat > f <<'END'\ncairn no\nEND\nclaude mcp add cairn -- cairn mcp\n```\n"
    (block,) = blocks_in("page.md", text)
    lines = list(lines_of(block))
    assert [line.number for line in lines] == [3, 5, 8]
    assert [line.cairn for line in lines] == [[["ask", "x # y", "--json"]], [], [["mcp"]]]
    assert [bool(line.why) for line in lines] == [False, False, True]
    assert (ROOT / "README.md").exists()
