"""Books (.epub) as Markdown: the chapters in the order of the spine, as text. Nothing in them runs."""

import posixpath
from collections.abc import Iterator
from typing import Any, Final

from agent.sources.extract.markdown import Markdown
from agent.sources.extract.markup import parse_html, title_of, write_html
from agent.sources.extract.package import Package, first_day, reading, real_title
from agent.sources.extract.text import Extracted, ExtractError, decode, one_line
from agent.sources.extract.trees import local

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_PAGES: Final = frozenset({"application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document"})
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def epub_text(raw: bytes) -> Extracted:
    """A book: its chapters, with their headings, and its title and date.

    Raises:
        ExtractError: it cannot be read, is protected or holds no text.
    """
    out = Markdown()
    with reading(".epub"):
        package = Package(raw, ".epub")
        place = next(root for root in package.xml(_CONTAINER).iter("{*}rootfile")).get("full-path", "")
        book = package.xml(place)
        stated = {name: next(book.iter(f"{{*}}{name}"), None) for name in ("title", "date")}
        title, date = (one_line("".join(each.itertext())) if each is not None else "" for each in stated.values())
        chapters = list(_chapters(package, book, posixpath.dirname(place)))
        locked = _locked(package)
        if chapters and locked.issuperset(chapters):
            raise ExtractError("it is protected against copying (DRM): get a copy without that")
        for name in chapters:
            if name not in locked:
                _write_chapter(package.read(name), title, out)
        if not chapters:
            raise ExtractError("none of the chapters that it lists is there: copy it again, or get another copy")
    year = date[:4] if len(date) == 4 and date.isdecimal() else ""
    return out.extracted(title=real_title(title), date=first_day(date) or year)


def _chapters(package: Package, book: Any, folder: str) -> Iterator[str]:
    """Names of the parts that the spine lists, each once."""
    places = {
        item.get("id", ""): item.get("href", "")
        for item in book.iter("{*}item")
        if item.get("media-type", "").lower() in _PAGES
    }
    seen = set[str]()
    for reference in book.iter("{*}itemref"):
        href = places.get(reference.get("idref", ""), "")
        if not href or "://" in href:
            continue
        name = package.resolved(folder, href)
        if name in package and name not in seen:
            seen.add(name)
            yield name


def _locked(package: Package) -> set[str]:
    """Names of the parts that are encrypted: of free books only fonts are."""
    if _ENCRYPTION not in package:
        return set()
    return {package.resolved("", each.get("URI", "")) for each in package.xml(_ENCRYPTION).iter("{*}CipherReference")}


def _write_chapter(raw: bytes, book: str, out: Markdown) -> None:
    root = parse_html(decode(raw).replace("\0", ""), xml=True)
    if root is None:
        return
    title = one_line(title_of(root))
    body = next(root.iter("{*}body"), root)
    headed = any(local(each).lower() in _HEADINGS for each in body.iter())
    if title and title != book and not headed:
        out.heading(1, title)
    write_html(root, out)
