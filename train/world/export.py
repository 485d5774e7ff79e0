"""A world for agents that are not ours: its documents as a corpus, without what they state, and as static web pages.

No questions and no answers are written: who measures an agent asks them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from agent.errors import SetupError
from agent.world.records import Document
from agent.world.store import folder_of, load_world, read_card

CORPUS: Final = "corpus.jsonl"
PAGES: Final = "pages"
MOST_PAGES: Final = 100_000
_LISTED: Final = 1_000
"""Links on one page of the index."""
_FIELDS: Final = ("id", "source", "title", "text", "url", "date")
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>{link}</head>
<body>
{body}
</body>
</html>
"""

Show = Callable[[int, int], None]


class ExportedWorld(NamedTuple):
    """What was written."""

    world: str
    documents: int
    pages: int


def export_world(which: str, out: Path, *, pages: bool = False, show: Show | None = None) -> ExportedWorld:
    """Write `corpus.jsonl` and, if wanted, a page for each document with an index of links that leads to all of them.

    Args:
        which: a world's name or folder.
        out: an empty or new folder.
        pages: also write static pages.
        show: called with the number of documents written, and of all.

    Raises:
        SetupError: there is no such world, it has too many documents for pages, or the folder cannot be written.
    """
    name, total, documents = _documents(which)
    if pages and total > MOST_PAGES:
        raise SetupError(
            f"{name} has {total:,} documents, and at most {MOST_PAGES:,} become pages; leave out --pages and serve the "
            f"corpus with cairn serve --retrieval-only --corpus {out / CORPUS}"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SetupError(f"{out} exists and is not empty; name another --out")
    links: list[tuple[str, str]] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with (out / CORPUS).open("w", encoding="utf-8", newline="\n") as corpus:
            for number, document in enumerate(documents, start=1):
                fields = {field: getattr(document, field) for field in _FIELDS}
                corpus.write(json.dumps({k: v for k, v in fields.items() if v}, ensure_ascii=False) + "\n")
                if pages:
                    links.append(_write_page(out / PAGES, document))
                if show:
                    show(number, total)
        if pages:
            _write_index(out / PAGES, name, links)
    except OSError as error:
        raise SetupError(f"the world cannot be written to {out}: {error.strerror or error}") from error
    return ExportedWorld(name, total, len(links))


def _documents(which: str) -> tuple[str, int, Iterable[Document]]:
    """The world's name, how many documents it has, and these one by one; those of a folder are never all held."""
    folder = folder_of(which)
    if not folder.is_dir():
        world = load_world(which)
        return world.name, len(world.documents), world.documents
    card = read_card(folder)
    return card.name, card.documents, _read(folder / "documents.jsonl")


def _read(path: Path) -> Iterator[Document]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Document.model_validate_json(line)


def _write_page(folder: Path, document: Document) -> tuple[str, str]:
    """Write a document's page; gives its place in the folder and its title."""
    place = f"{quote(document.source, safe='')}/{quote(document.id, safe='')}.html"
    title = document.title or document.text
    text = "\n".join(f"<p>{escape(part)}</p>" for part in document.text.splitlines() if part.strip())
    dated = f'<p><time datetime="{escape(document.date)}">{escape(document.date)}</time></p>\n' if document.date else ""
    head = f'<link rel="canonical" href="{escape(document.url)}">' if document.url else ""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    body = f"<h1>{escape(title)}</h1>\n{dated}{text}"
    path.write_text(_PAGE.format(title=escape(title), link=head, body=body), encoding="utf-8", newline="\n")
    return place, title


def _write_index(folder: Path, name: str, links: list[tuple[str, str]]) -> None:
    """`index.html`, and further ones that it leads on to."""
    parts = [links[at : at + _LISTED] for at in range(0, len(links), _LISTED)] or [[]]
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts):
        # A place is quoted already as a file's name; in a link its percent signs are quoted once more.
        entries = [f'<li><a href="{quote(place)}">{escape(title)}</a></li>' for place, title in part]
        entries += [f'<li><a href="{_index_name(number + 1)}">more</a></li>'] if number + 1 < len(parts) else []
        body = f"<h1>{escape(name)}</h1>\n<ul>\n" + "\n".join(entries) + "\n</ul>"
        page = _PAGE.format(title=escape(name), link="", body=body)
        (folder / _index_name(number)).write_text(page, encoding="utf-8", newline="\n")


def _index_name(number: int) -> str:
    return f"index-{number + 1}.html" if number else "index.html"
