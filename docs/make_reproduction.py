"""Writes docs/reproduction_design.md: the design of `cairn reproduce`, as its plan has it."""

import tempfile
from pathlib import Path
from typing import Final

from lab.reproduce.design_page import design_page
from lab.reproduce.study import SHIPPED_RECIPE, read_study

OUT: Final = Path(__file__).parent / "reproduction_design.md"


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        return design_page(read_study(SHIPPED_RECIPE, Path(folder)))


if __name__ == "__main__":
    OUT.write_text(page(), encoding="utf-8")
