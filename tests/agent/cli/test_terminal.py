"""The boundary to the terminal: text is harmless there, and Rich's own colours stay."""

import io
import json
import logging
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.cli.console import SafeConsole, guard_logs, print_json, print_text
from agent.sanitize.text import printable, printable_json

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202egnp.exe"
OBEYED = {"Cc", "Cf", "Cs", "Co"}


def obeyed(text: str) -> set[str]:
    return {c for c in text if c not in "\n\t" and category(c) in OBEYED}


@given(st.text(st.characters()))
def test_text_keeps_all_that_a_terminal_only_shows(text: str):
    assert not obeyed(printable(text))
    assert printable(text) == "".join(c for c in text if c not in obeyed(text))


@settings(max_examples=40)
@given(st.recursive(st.text(st.characters()), lambda x: st.dictionaries(st.text(), x)))
def test_json_says_the_same_and_steers_nothing(value: object):
    text = json.dumps(value, ensure_ascii=False)
    assert not obeyed(printable_json(text))
    assert json.loads(printable_json(text)) == value


@pytest.mark.parametrize("kind", ["text", "markup", "panel", "table"])
def test_a_terminal_gets_our_colours_and_no_strangers(kind: str):
    made, plain = io.StringIO(), io.StringIO()
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL)
    pieces = {"text": Text(EVIL, style="red"), "markup": EVIL, "panel": Panel(EVIL, title=EVIL), "table": table}
    SafeConsole(file=made, force_terminal=True, color_system="standard").print(pieces[kind], style="red")
    SafeConsole(file=plain, force_terminal=False).print(pieces[kind])
    assert "\x1b[31m" in made.getvalue()
    for part in ("\x1b]0;", "\x1b[2J", "\x9b", "\x07", "\u202e"):
        assert part not in made.getvalue()
    assert not obeyed(plain.getvalue())


def test_what_is_printed_without_rich_steers_nothing(capsys: pytest.CaptureFixture[str]):
    print_json({"a": EVIL})
    assert json.loads(capsys.readouterr().out) == {"a": EVIL}
    print_text(EVIL)
    assert not obeyed(capsys.readouterr().out)


def test_a_log_line_where_no_one_set_up_logs_steers_nothing():
    guard_logs()
    assert logging.lastResort is not None
    record = logging.LogRecord("agent", logging.WARNING, "", 0, "the cache: %s", (EVIL,), None)
    assert not obeyed(logging.lastResort.format(record))
