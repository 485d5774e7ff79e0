"""A report as PDF, with fpdf2. Text of any script: what the shipped font lacks is taken from fonts of this machine.

A character that none of them has is shown as a box, and the file says how many there are: nothing vanishes.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.files.foreign import read_file
from agent.report.export.blocks import Block, Cite, Heading, Link, ListItem, Span, Text, TextBlock, blocks_of
from agent.report.report import Report
from agent.sanitize.text import shown_line

if TYPE_CHECKING:
    from fpdf import FPDF

FONT: Final = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
FOLDERS: Final = tuple(
    Path(folder).expanduser()
    for folder in (
        "~/.local/share/fonts",
        "~/.fonts",
        "/usr/local/share/fonts",
        "/usr/share/fonts",
        "~/Library/Fonts",
        "/Library/Fonts",
        "/System/Library/Fonts",
        "C:/Windows/Fonts",
    )
)
_ENDINGS: Final = frozenset({".ttf", ".otf", ".ttc", ".otc"})
"""Of a collection, as most Chinese, Japanese and Korean fonts are, the first font is used."""
_BOX: Final = "\u25af"
_SIZES: Final = {1: 20.0, 2: 14.0}
_TEXT: Final = 10.5
_NOTE: Final = 9.0
_MOST_FONTS: Final = 400
"""Fonts of the machine that are looked at."""
_MOST_BYTES: Final = 40 * 1024 * 1024
_FALLBACKS: Final = 4
_FAMILY: Final = "cairn"
_INVISIBLE: Final = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff")


def as_pdf(report: Report, *, folders: Sequence[Path] = FOLDERS) -> bytes:
    """The file.

    Args:
        report: what is written.
        folders: where fonts are looked for, in case the shipped one lacks a character.

    Raises:
        SetupError: the package that writes PDF is not installed.
    """
    require_pdf()
    from fpdf import FPDF

    logging.getLogger("fontTools").setLevel(logging.ERROR)
    logging.getLogger("fpdf").setLevel(logging.ERROR)
    blocks = list(blocks_of(report))
    missing = {c for block in blocks for c in _characters(block)} - _in_font(FONT) - _INVISIBLE
    pdf = FPDF(format="A4")
    pdf.set_margin(20)
    pdf.set_auto_page_break(True, 20)
    pdf.set_creation_date(report.created)
    pdf.set_title(shown_line(report.title)[:250])
    pdf.set_creator("Cairn")
    pdf.set_lang("en")
    pdf.add_font(_FAMILY, fname=FONT)
    missing -= _add_fallbacks(pdf, missing, folders)
    pdf.set_text_shaping(True)
    pdf.add_page()
    writer = _Writer(pdf, missing, {s.number for s in report.sources})
    for block in blocks:
        writer.add(block)
    if writer.boxes:
        writer.add(TextBlock((Text(_boxes(writer.boxes), em=True),)))
    return bytes(pdf.output())


def require_pdf() -> None:
    """Refuse to write PDF without what writes it.

    Raises:
        SetupError: it is not installed.
    """
    if any(find_spec(name) is None for name in ("fpdf", "uharfbuzz")):
        raise SetupError("PDF needs two more packages: pip install fpdf2 uharfbuzz; or write .docx or .html")


def _boxes(count: int) -> str:
    return (
        f"{_BOX}: {count:,} characters that no font of this machine has. Install a font for them (Noto has one for "
        "each script) and export again, or export as HTML or DOCX, which hold them."
    )


class _Writer:
    """Writes block after block."""

    def __init__(self, pdf: "FPDF", missing: Collection[str], sources: Collection[int]) -> None:
        self._pdf: Any = pdf  # its methods are typed in part
        self._missing = missing
        self._links = {number: self._pdf.add_link() for number in sources}
        self.boxes = 0

    def add(self, block: Block) -> None:
        pdf = self._pdf
        match block:
            case Heading():
                pdf.ln(2 if block.level == 1 else 6)
                self._size(_SIZES[block.level])
                with pdf.local_context(text_mode="FILL_STROKE", line_width=0.15 if block.level > 1 else 0.25):
                    pdf.multi_cell(
                        0, _SIZES[block.level] * 0.5, self._shown(block.text), align="L", new_x="LMARGIN", new_y="NEXT"
                    )
                pdf.ln(2)
            case ListItem():
                self._size(_TEXT)
                if block.number:
                    pdf.set_link(self._links[block.number], page=pdf.page, y=pdf.get_y())
                self._spans((Text(f"[{block.number}] " if block.number else "• "), *block.spans))
                pdf.ln(6.5)
            case TextBlock():
                note = all(isinstance(span, Text) and span.em for span in block.spans)
                self._size(_NOTE if note else _TEXT)
                self._spans(block.spans)
                pdf.ln(8)

    def _spans(self, spans: Sequence[Span]) -> None:
        pdf = self._pdf
        height = pdf.font_size * 1.5
        for span in spans:
            match span:
                case Text():
                    pdf.set_text_color(90 if span.em else 0)
                    pdf.write(height, self._shown(span.text))
                case Cite():
                    pdf.set_text_color(11, 87, 208)
                    pdf.write(height, f"[{span.number}]", link=self._links.get(span.number, ""))
                case Link():
                    pdf.set_text_color(11, 87, 208)
                    pdf.write(height, self._shown(span.url), link=span.url)
        pdf.set_text_color(0)

    def _size(self, size: float) -> None:
        self._pdf.set_font(_FAMILY, size=size)

    def _shown(self, text: str) -> str:
        """The text with boxes for what no font has."""
        lost = sum(c in self._missing for c in text)
        self.boxes += lost
        return "".join(_BOX if c in self._missing else c for c in text) if lost else text


def _characters(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield from block.text
        return
    for span in block.spans:
        match span:
            case Text():
                yield from span.text
            case Link():
                yield from span.url
            case _:
                pass


def _add_fallbacks(pdf: "FPDF", missing: Collection[str], folders: Sequence[Path]) -> set[str]:
    """Add the fonts of this machine that have most of what is missing; gives what they have."""
    found: set[str] = set()
    if not missing:
        return found
    there = [(path, _in_font(path) & set(missing)) for path in _fonts(folders)]
    names: list[str] = []
    while len(names) < _FALLBACKS and there:
        path, has = max(there, key=lambda one: (len(one[1] - found), -len(one[0].name), one[0].name))
        if not has - found:
            break
        there.remove((path, has))
        try:
            pdf.add_font(f"fallback{len(names)}", fname=path)
        except Exception:  # noqa: BLE001 - a font of the machine may be broken in any way; then it is not used
            continue
        names.append(f"fallback{len(names)}")
        found |= has
    pdf.set_fallback_fonts(names, exact_match=False)
    return found


def _fonts(folders: Sequence[Path]) -> list[Path]:
    """Fonts of the machine, regular ones first."""
    found = (path for folder in folders if folder.is_dir() for path in sorted(folder.rglob("*")))
    fonts = (path for path in found if path.suffix.lower() in _ENDINGS and path.is_file())
    files = [path for path in fonts if path.stat().st_size <= _MOST_BYTES]
    return sorted(files, key=lambda path: ("Regular" not in path.name, path.name))[:_MOST_FONTS]


def _in_font(path: Path) -> set[str]:
    """The characters that a font has; none of one that cannot be read."""
    from fontTools.ttLib import TTFont  # pyright: ignore[reportMissingTypeStubs]

    try:
        font = TTFont(BytesIO(read_file(path, most=_MOST_BYTES)), fontNumber=0, lazy=True)
        return {chr(code) for code in font.getBestCmap() or {}}
    except Exception:  # noqa: BLE001 - a font of the machine may be broken in any way; then it is not used
        return set()
