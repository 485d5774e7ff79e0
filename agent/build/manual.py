"""Cairn's own manual as documents to search: what is searched before anything is configured."""

from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.sources.corpus.source import CACHE, CorpusSource, cached_index

_HERE: Final = Path(__file__).parents[1]
FOLDERS: Final = (_HERE / "manual", _HERE.parent / "docs")
"""In an installed package, and in a checkout."""
LEFT_OUT: Final = frozenset(("benchmarks", "log", "long", "reproduction", "reproduction_design"))
"""Pages of figures and experiments: they do not explain how to use Cairn."""


def manual_pages() -> list[Path]:
    """The manual's pages.

    Raises:
        SetupError: the package lacks them.
    """
    folder = next((folder for folder in FOLDERS if (folder / "quickstart.md").is_file()), None)
    if folder is None:
        raise SetupError(
            "this installation lacks Cairn's manual, which is searched where nothing is configured; "
            "name documents with --corpus DIR, or install Cairn again"
        )
    return sorted(page for page in folder.glob("*.md") if page.stem not in LEFT_OUT)


def open_manual(cache: Path = CACHE) -> CorpusSource:
    """The manual as a source; its index is made in the cache the first time.

    Raises:
        SetupError: the package lacks it, or the cache cannot be used.
    """
    return CorpusSource(cached_index(manual_pages(), cache=cache))
