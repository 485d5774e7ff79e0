"""Every table of figures in the docs, the README and the cards says when it was measured, and of which code."""

import importlib.util
import sys
from types import ModuleType

import pytest

from tests.docs.blocks import ROOT

TABLE = "| a | b | c |\n|---|---|---|\n| x | 0.91 | 3 |\n| y | **1,024** (3–5) | 7 ms |\n| z | 12 % | 0.5 |\n"
MARK = "*Measured 2026-11-24 at 1a2b3c4; code: agent/plan/plan.py*\n\n"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module


figures = loaded()
PAGES = {path.relative_to(ROOT).as_posix(): path for path in figures.pages()}


@pytest.mark.parametrize("page", PAGES)
def test_each_table_of_figures_says_when_it_was_measured(page: str):
    assert figures.unmarked(PAGES[page].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_what_was_measured_is_there_and_its_commit_is_of_this_branch(page: str):
    found = figures.marks(PAGES[page].read_text(encoding="utf-8"), page)
    assert [why for mark in found if (why := figures.wrong(mark))] == []


def test_the_readme_and_both_cards_are_among_the_pages():
    cards = {f"agent/checkpoints/{name}/README.md" for name in ("small-v1", "tiny-v2")}
    assert PAGES.keys() >= {"README.md", "docs/benchmarks.md", "docs/bench/kg.md", *cards}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (TABLE, [1]),
        (f"# It\n\n{TABLE}\n{MARK}{TABLE}", [3]),
        (MARK + TABLE, []),
        (f"{MARK}{TABLE}\nMore.\n\n{TABLE}", []),
        (f"<!-- not measured -->\n\n{TABLE}", []),
        (f"```text\n{TABLE}```\n", []),
        ("| setting | default |\n|---|---|\n| port | 8000 |\n", []),
    ],
)
def test_a_table_of_numbers_wants_a_mark_above_it(text: str, lines: list[int]):
    assert figures.unmarked(text) == lines


def test_a_mark_names_date_commit_and_code():
    (mark,) = figures.marks(
        "# It\n\n*Measured 2026-11-24 at 1a2b3c4+; code: agent/plan/plan.py agent/sources/kg*\n", "it.md"
    )
    assert (mark.line, mark.date, mark.commit) == (3, "2026-11-24", "1a2b3c4")
    assert mark.code == ("agent/plan/plan.py", "agent/sources/kg")


def test_a_mark_of_code_that_is_gone_or_of_no_commit_is_wrong():
    mark = figures.Mark("it.md", 1, "2026-11-24", "0000000", ("agent/plan/plan.py",))
    assert (
        figures.wrong(figures.Mark("it.md", 1, "2026-11-24", "0000000", ("agent/gone.py",)))
        == "agent/gone.py is not there"
    )
    if figures.git("rev-parse", "--is-shallow-repository") == "false":
        assert figures.wrong(mark) == "0000000 is no commit of this branch"


def test_code_that_changed_since_makes_a_figure_old():
    if figures.git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("a shallow clone knows too little")
    first, last = (figures.git("log", "-1", "--format=%h", *more, "--", "pyproject.toml") for more in (["HEAD~40"], []))
    assert figures.changes(figures.Mark("it.md", 1, "", last, ("pyproject.toml",))) == 0
    if first != last:
        assert figures.changes(figures.Mark("it.md", 1, "", first, ("pyproject.toml",))) >= 1
