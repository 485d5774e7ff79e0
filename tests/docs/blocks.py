"""The fenced blocks of the documentation, each with where it stands. Nothing is run here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
LANGUAGES: Final = ("sh", "python", "toml", "json", "js", "yaml", "text")
"""Those that a block may name. Each block names one: what says nothing could hold anything."""
_BLOCK: Final = re.compile(
    r"^(?:<!-- checked only: (?P<why>[^>]+?) -->\n)?(?P<fence>[`~]{3,})(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=fence)[ ]*$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    """From the repository's root."""
    line: int
    """Of its first line of text, from 1."""
    language: str
    text: str
    why: str
    """Why it is only checked, where a comment before it says so."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_in(page: str, text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(page, line, found["language"], found["text"], found["why"] or "")


def all_blocks() -> list[Block]:
    """In the order of the pages."""
    return [
        block
        for page in PAGES
        for block in blocks_in(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
    ]


def blocks(language: str) -> list[Block]:
    return [block for block in all_blocks() if block.language == language]
