"""A glossary in one text file as a source for Cairn. It finds the terms that a query names, and searches no texts."""

import re
from pathlib import Path

from agent.errors import SetupError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult


class Glossary:
    """Definitions by term."""

    def __init__(self, entries: dict[str, str]) -> None:
        self._entries = entries

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give the definitions of the terms in the query, longest term first. Filters mean nothing here."""
        words = f" {' '.join(_words(request.query))} "
        found = [term for term in self._entries if f" {' '.join(_words(term))} " in words]
        found.sort(key=len, reverse=True)
        passages = tuple(
            Passage(id=term, source="glossary", title=term, text=self._entries[term], score=len(term), rank=rank)
            for rank, term in enumerate(found[: request.limit], start=1)
        )
        notes = ("a glossary knows no filters",) if request.filters else ()
        return SearchResult(passages, backend="glossary", notes=notes)


def open_glossary(*, file: str) -> Glossary:
    """The plug-in: its keyword arguments are the options of [plugins.glossary] in cairn.toml.

    Args:
        file: text with one "term: definition" a line; empty lines and lines that begin with # are left out.

    Raises:
        SetupError: the file cannot be read, or a line is no definition.
    """
    try:
        lines = Path(file).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the glossary {file} cannot be read: {error}") from error
    entries: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        term, colon, definition = line.partition(":")
        if not (_words(term) and colon and definition.strip()):
            raise SetupError(f"line {number} of {file} is no 'term: definition'; write it so, or put # before it")
        entries[term.strip()] = definition.strip()
    return Glossary(entries)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
