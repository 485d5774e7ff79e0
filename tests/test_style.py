"""The caps that keep the code readable, and the few rules that no linter has."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
PACKAGES = ("agent", "server", "train")
FILES = sorted(path for folder in (*PACKAGES, "tests") for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        yield f"{path.name} has {lines} lines; split it by noun"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{path.name}:{node.lineno} {node.name} has {length} lines"


def environment_reads(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
            yield f"{path.name}:{node.lineno} reads the environment; only settings.py does"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_stay_short(path: Path):
    assert not list(too_long(path))


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[len(ROOT.parts)] in PACKAGES], ids=name_of)
def test_a_module_with_code_says_what_it_is(path: Path):
    module = ast.parse(path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(module)
    assert docstring or not module.body, "open the module with one to five lines: what it is, and what it is not"
    if docstring:
        opening = docstring.split("\n\n")[0]
        assert len(opening.splitlines()) <= 5, "the docstring's opening is too long"


@pytest.mark.parametrize("path", [p for p in FILES if p.name != "settings.py"], ids=name_of)
def test_only_the_settings_read_the_environment(path: Path):
    assert not list(environment_reads(path))


def test_the_caps_see_what_is_too_long(tmp_path: Path):
    bad = tmp_path / "bad.py"
    bad.write_text("import os\ndef f():\n" + "    pass\n" * MAX_FILE_LINES + "    os.environ\n", encoding="utf-8")
    assert len(list(too_long(bad))) == 2
    assert list(environment_reads(bad))
