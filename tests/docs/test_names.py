"""What the pages point at is there: links and anchors, files, tests, and names in the code."""

import ast
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import LANGUAGES, PAGES, ROOT, all_blocks

FOLDERS = "agent|server|train|web|tests|docs|examples"
_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]*)\)")
_FENCED = re.compile(r"^([`~]{3,}).*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(rf"(?<![\w/.~-])((?:{FOLDERS})/[\w./*-]*\w[\w*]*(?:/|\b))")
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
_ROW = re.compile(r"^\|[^|]*\| (?P<where>\[[^|]*\.py[^|]*) \| (?P<names>[^|]*) \|$", re.MULTILINE)
MADE = ("docs/bench", "web/node_modules")
"""What only a command makes, or a build."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return _FENCED.sub("", read(page))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of its headings, as the site and code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return frozenset(_anchor(title) for title in titles)


def _anchor(title: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", title)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def lost_links(page: Path, root: Path = ROOT) -> Iterator[str]:
    """What leads nowhere, or out of the repository."""
    for target in _LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if (
            not there.exists()
            or not there.is_relative_to(root)
            or (anchor and there.suffix == ".md" and anchor not in anchors(there))
        ):
            yield target


def lost_files(text: str) -> Iterator[str]:
    for name in _FILE.findall(text):
        if not any(ROOT.glob(name.rstrip("/"))) and not name.startswith(MADE):
            yield name


def lost_tests(text: str) -> Iterator[str]:
    for path, name in _TEST.findall(text):
        if not (ROOT / path).exists() or name not in defined(ROOT / path):
            yield f"{path}::{name}"


@cache
def defined(path: Path) -> frozenset[str]:
    """Names that a file defines; those inside of a class with it, too."""
    found: set[str] = set()

    def walk(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.update({node.name, before + node.name})
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(target.id for target in targets if isinstance(target, ast.Name))

    walk(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return frozenset(found)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_links_to_is_there(page: Path):
    assert list(lost_links(page)) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "log.md"], ids=name_of)
def test_files_that_a_page_names_are_there(page: Path):
    """The log describes what was; everywhere else a name is one that there is."""
    assert list(lost_files(read(page))) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_that_a_page_names_are_there(page: Path):
    assert list(lost_tests(read(page))) == []


def test_the_names_on_the_way_of_a_question_are_in_their_files():
    page = read(ROOT / "docs" / "flow.md")
    rows = [(row["where"], re.findall(r"`([\w.]+)`", row["names"])) for row in _ROW.finditer(page)]
    assert len(rows) > 35
    for where, names in rows:
        there = frozenset[str]().union(*(defined(ROOT / path) for path in re.findall(r"\]\(\.\./([^)]+)\)", where)))
        assert set(names) <= there, where


def test_every_block_names_its_language():
    assert [block.name for block in all_blocks() if block.language not in LANGUAGES] == []


def test_what_is_not_there_is_seen(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](no.md) [b](#one) [c](#two) [d](page.md#one) [e](page.md#two) [f](..) [g](https://example.org/no)\n",
        encoding="utf-8",
    )
    assert list(lost_links(page, tmp_path)) == ["no.md", "#two", "page.md#two", ".."]
    assert list(lost_files("`agent/no.py`, agent/plan/plan.py, docs/*.md")) == ["agent/no.py"]
    assert list(lost_tests("tests/test_style.py::test_no and tests/test_style.py::too_long")) == [
        "tests/test_style.py::test_no"
    ]
