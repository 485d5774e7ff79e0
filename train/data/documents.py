"""The documents of a build, from JSON lines of several sources or from a little world, without those that are thin."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from agent.errors import CorpusError, SetupError
from agent.sources.corpus.documents import DocumentLine, line_problem, numbered_lines
from agent.world import World
from train.data.records import Doc

Named = tuple[str, Path]
"""The name of a source ("" where the lines say it), and the file."""


class _Row(DocumentLine):
    source: str = ""


def read_documents(files: Sequence[Named]) -> list[Doc]:
    """The documents of all files.

    Raises:
        CorpusError: a file cannot be read or is empty, a line is no document or does not say its source, or an id
            occurs twice.
    """
    docs: dict[str, Doc] = {}
    for source, path in files:
        before = len(docs)
        for number, line in numbered_lines(path):
            if content := line.removeprefix(b"\xef\xbb\xbf").strip():
                doc = _doc(content, source, where=f"{path}, line {number}")
                if doc.id in docs:
                    raise CorpusError(f"{path}, line {number}: the id {doc.id!r} occurs twice; give each its own")
                docs[doc.id] = doc
        if len(docs) == before:
            raise CorpusError(f"no documents in {path}; put one JSON object on each line")
    return list(docs.values())


def _doc(line: bytes, source: str, *, where: str) -> Doc:
    try:
        row = _Row.model_validate_json(line)
    except ValidationError as error:
        fix = 'each line must be one object like {"id": "…", "title": "…", "text": "…", "source": "…"}'
        raise CorpusError(f"{where}: {line_problem(error)}; {fix}") from error
    if not (source or row.source):
        raise CorpusError(f"{where}: it does not say its source: write --docs NAME=FILE, or a field `source`")
    return Doc(id=row.id, source=source or row.source, title=row.title, text=row.text, url=row.url, date=row.date)


def world_documents(world: World) -> list[Doc]:
    """The documents of a little world, with the part of it that they are in."""
    return [
        Doc(id=d.id, source=d.source, title=d.title, text=d.text, url=d.url, date=d.date, part=part_of(d.id))
        for d in world.documents
    ]


def part_of(document: str) -> int:
    """The number in the middle of a document's id; what is known everywhere is in the first part."""
    middle = document.split("-")[1]
    return int(middle) if middle.isdigit() else 0


def without_thin(docs: Iterable[Doc], words: int) -> tuple[list[Doc], dict[str, int]]:
    """The documents that have enough words, and why the others were dropped."""
    kept: list[Doc] = []
    dropped: Counter[str] = Counter()
    for doc in docs:
        if len(doc.text.split()) < words:
            dropped[f"fewer than {words} words"] += 1
        else:
            kept.append(doc)
    return kept, dict(dropped)


def check_sources(docs: Sequence[Doc], *, diverse: bool, after: str) -> None:
    """Refuse what no bundle can be made of.

    Args:
        docs: that are left.
        diverse: whether bundles need several sources.
        after: what the documents went through, in words.

    Raises:
        SetupError: there are fewer than two documents, or all are of one source.
    """
    if len(docs) < 2:
        raise SetupError(
            f"{after} {len(docs)} document{'s are' if not docs else ' is'} left, and a bundle needs at least two: "
            "give more --docs, or a smaller --thin-words"
        )
    names = sorted({doc.source for doc in docs})
    if diverse and len(names) == 1:
        raise SetupError(
            f"{after} all {len(docs)} documents are of the source {names[0]!r}, and a bundle needs two sources: add "
            "--docs OTHER=FILE with documents of another one, or write --bundles same for questions over one source"
        )
