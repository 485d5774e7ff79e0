"""Slides (.pptx) as Markdown: each slide is a page that begins with its title."""

from collections.abc import Iterator
from typing import Any, Final

from agent.sources.extract.charts import chart_table
from agent.sources.extract.markdown import Markdown
from agent.sources.extract.package import Package, reading
from agent.sources.extract.text import Extracted
from agent.sources.extract.trees import etree, local

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TITLES: Final = frozenset({"title", "ctrTitle"})
_EDGES: Final = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
_NO_PLACEHOLDER: Final = "none"


def pptx_text(raw: bytes) -> Extracted:
    """A presentation: titles, lists, tables, diagrams (SmartArt), charts and speaker notes, in the order of its slides.

    Raises:
        ExtractError: it cannot be read or holds no text.
    """
    out = Markdown()
    with reading(".pptx"):
        package = Package(raw, ".pptx")
        title, date = package.properties()
        slides = package.relations(package.main)
        read = set[str]()
        for number, slide in enumerate(package.xml(package.main).iter(f"{_P}sldId"), start=1):
            out.page()
            name = slides.get(slide.get(_ID, ""), "")
            if name in package and name not in read:
                read.add(name)
                _write_slide(package, name, number, out)
    return out.extracted(title=title, date=date)


def _write_slide(package: Package, name: str, number: int, out: Markdown) -> None:
    slide = package.xml(name)
    etree.strip_elements(slide, _FALLBACK, with_tail=False)  # the same once more, for old programs
    shapes = [(_placeholder(shape), shape) for shape in slide.iter(f"{_P}sp", f"{_A}tbl")]
    title = next((text for kind, shape in shapes if kind in _TITLES and (text := _all_text(shape))), "")
    parts = [part for part in package.relations(name).values() if part in package]
    notes = [
        text
        for part in parts
        if "notesSlides/" in part
        for shape in package.xml(part).iter(f"{_P}sp")
        if _placeholder(shape) == "body" and (text := _all_text(shape))
    ]
    drawn = [text for part in parts if "diagrams/data" in part for _, text in _paragraphs(package.xml(part))]
    below = [
        (kind, shape)
        for kind, shape in shapes
        if kind not in _EDGES and (text := _all_text(shape)) and not (kind in _TITLES and text == title)
    ]
    charts = [found for part in parts if "charts/chart" in part and any(found := chart_table(package.xml(part)))]
    if not (title or notes or below or drawn or charts):
        return
    out.heading(1, title or f"Slide {number}")
    if not (notes or below or drawn or charts):
        out.paragraph(title)
    for kind, shape in below:
        if local(shape) == "tbl":
            out.table([_all_text(cell) for cell in row.iter(f"{_A}tc")] for row in shape.iter(f"{_A}tr"))
        else:
            _write_shape(shape, out, in_list=kind not in (_NO_PLACEHOLDER, "subTitle"))
    for text in drawn:
        out.item(0, text)
    for called, rows in charts:
        out.paragraph(called)
        out.table(rows)
    for text in notes:
        out.paragraph(f"Notes: {text}")


def _placeholder(shape: Any) -> str:
    """What a shape is for: "title", "body" and so on."""
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return _NO_PLACEHOLDER if found is None else found.get("type", "body")


def _write_shape(shape: Any, out: Markdown, *, in_list: bool) -> None:
    for level, text in _paragraphs(shape):
        if in_list:
            out.item(level, text)
        else:
            out.paragraph(text)


def _all_text(element: Any) -> str:
    return " ".join(text for _, text in _paragraphs(element))


def _paragraphs(element: Any) -> Iterator[tuple[int, str]]:
    for paragraph in element.iter(f"{_A}p"):
        level = paragraph.find(f"{_A}pPr")
        parts = [" " if local(part) == "br" else part.text or "" for part in paragraph.iter(f"{_A}t", f"{_A}br")]
        if text := "".join(parts).strip():
            stated = "0" if level is None else level.get("lvl", "0")
            yield int(stated) if stated.isdecimal() else 0, text
