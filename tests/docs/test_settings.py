"""docs/settings.md holds every setting as the code has it."""

import importlib.util
from types import ModuleType

from agent.settings import CairnSettings
from agent.settings.local_file import HARMLESS
from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "settings.md"


def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_settings", ROOT / "docs" / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == made().page(), "write it again: python docs/make_settings.py"


def test_every_setting_says_what_it_means():
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []
    marked = {row[0].strip("| `") for row in rows if row[2].strip() == "✓"}
    assert marked == {name.removeprefix("budgets.") for name in HARMLESS} | {"budgets"}
    there = {row[0].strip("| `") for row in rows}
    assert CairnSettings.model_fields.keys() - there == {"data"}
