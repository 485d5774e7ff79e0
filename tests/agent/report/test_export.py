"""A report as a file: other libraries open it, strangers' text stays text, and no character vanishes in silence."""

import io
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pypdf
import pytest
from docx import Document
from docx.oxml.ns import qn
from fontTools.fontBuilder import FontBuilder  # pyright: ignore[reportMissingTypeStubs]
from fontTools.pens.t2CharStringPen import T2CharStringPen  # pyright: ignore[reportMissingTypeStubs]
from fontTools.pens.ttGlyphPen import TTGlyphPen  # pyright: ignore[reportMissingTypeStubs]
from fontTools.ttLib import TTCollection, TTFont  # pyright: ignore[reportMissingTypeStubs]

from agent.errors import SetupError
from agent.report import Report, ReportBudget
from agent.report.export import FORMATS, Format, export, format_of
from agent.report.export.pdf import as_pdf
from agent.report.report import (
    Contradiction,
    ReportSentence,
    ReportSource,
    ReportUsage,
    Section,
    SourcePassage,
    Unverified,
)
from agent.sanitize.text import shown_line

HOSTILE: Final = '<script>alert(1)</script> [x](javascript:alert(1)) *bold* `code` | # | "quoted" & \x1b[31m\x00 \ud800'
ADDRESS: Final = "https://example.org/a?b=1&c=%3Cd%3E"
PASSAGE: Final = SourcePassage(id="a#1", title="A page", text="Some text.")


def sentence(text: str, kind: str = "quote", sources: tuple[int, ...] = (1,)) -> ReportSentence:
    return ReportSentence.model_validate(
        {"text": text, "kind": kind, "sources": sources, "check": "verbatim", "quotes": ()}
    )


def source(number: int, title: str, url: str = "") -> ReportSource:
    return ReportSource(
        number=number, source="web", title=title, url=url, date="2026-01-02" if url else "", passages=(PASSAGE,)
    )


def report(*sentences: ReportSentence, title: str = "A title", **changes: Any) -> Report:
    spoken = Section(heading="A heading", question="?", state="researched", sentences=sentences)
    silent = Section(heading="Another heading", question="?", state="left_out", why="the time has ended")
    fields: dict[str, Any] = {
        "id": "r1",
        "title": title,
        "question": "q",
        "state": "cut",
        "created": datetime(2026, 11, 27, tzinfo=UTC),
        "outline_by": "sources",
        "sections": (spoken, silent),
        "sources": (source(1, "A page", ADDRESS), source(2, "Another page")),
        "contradictions": (
            Contradiction(section="A heading", says="It was 1935.", says_sources=(), against="It was 1931.",
                against_sources=(2,)),
        ),
        "unverified": (Unverified(section="A heading", text="It kept a circus."),),
        "budget": ReportBudget(),
        "used": ReportUsage(seconds=12.0, searches=3, tokens=100, usd=0.5),
        "policy": "small-v1",
    }  # fmt: skip
    return Report(**fields | changes)


def text_of(made: Report, format: Format) -> str:
    """What a reader of the file sees."""
    data = export(made, format).data
    match format:
        case "docx":
            return "\n".join(paragraph.text for paragraph in Document(io.BytesIO(data)).paragraphs)
        case "pdf":
            return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)
        case "html":
            parser = _Reader()
            parser.feed(data.decode())
            return "".join(parser.text)
        case _:
            return data.decode()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def flat(text: str) -> str:
    return " ".join(text.replace("\\", "").split())


@pytest.mark.parametrize("format", ["md", "html", "docx", "pdf"])
def test_every_part_of_a_report_is_in_the_file(format: Format):
    said = flat(
        text_of(report(sentence("First it was said."), sentence("Then it was claimed.", "claim", (1, 2))), format)
    )
    for part in (
        "A title",
        "A heading",
        "“First it was said.” [1]",
        "Then it was claimed. [1][2]",
        "the model claimed “It was 1935.”",
        "“It was 1931.” [2]",
        "It kept a circus.",
        "Another heading: the time has ended",
        "[1] A page · web · 2026-01-02",
        ADDRESS,
        "12 of 300 seconds",
        "3 of 48 searches",
        "100 of 24,000 tokens",
        "$0.500",
        "small-v1",
        "The report is cut short.",
    ):
        assert part in said, part


@pytest.mark.parametrize("format", ["md", "html", "docx", "pdf"])
def test_a_report_of_quotes_says_so_once(format: Format):
    said = flat(text_of(report(sentence("First it was said."), sentence("Then it was said again.")), format))
    assert said.count("Every sentence of this report is quoted from the source that it cites.") == 1
    assert "“First" not in said


@pytest.mark.parametrize("format", FORMATS)
def test_what_strangers_wrote_stays_text(format: Format):
    hostile = report(sentence(HOSTILE), title=HOSTILE, sources=(source(1, HOSTILE, ADDRESS),))
    data = export(hostile, format).data
    if format != "json":
        assert "alert(1)" in text_of(hostile, format)
    if format == "html":
        reader = _Reader()
        reader.feed(data.decode())
        assert {tag for tag, _ in reader.tags} <= {
            "html", "head", "meta", "link", "title", "style", "body", "main", "h1", "h2", "p", "em", "sup", "a", "ol",
            "ul", "li",
        }  # fmt: skip
        assert all(re.match(r"https?://|#source-\d+$", a["href"] or "") for tag, a in reader.tags if tag == "a")
        assert "default-src 'none'" in data.decode()
        assert "script-src" not in data.decode()
    if format == "md":
        assert "<script" not in data.decode().replace("\\<", "")
        assert "\\[x\\]" in data.decode()


def test_links_of_a_docx_are_those_of_its_sources_alone():
    document: Any = Document(io.BytesIO(export(report(sentence(HOSTILE)), "docx").data))
    external = [rel.target_ref for rel in document.part.rels.values() if rel.is_external]
    assert external == [ADDRESS]


def test_links_of_a_pdf_are_those_of_its_sources_alone():
    pages = pypdf.PdfReader(io.BytesIO(export(report(sentence(HOSTILE)), "pdf").data)).pages
    notes: list[Any] = [note.get_object() for page in pages for note in page.get("/Annots", [])]
    assert {note["/A"]["/URI"] for note in notes if "/URI" in note.get("/A", {})} == {ADDRESS}


@pytest.mark.parametrize("format", ["md", "html", "docx", "pdf"])
@pytest.mark.parametrize("text", ["Она родилась в Триесте.", "Γεννήθηκε στην Τεργέστη.", "Łódź, čeština, İstanbul."])
def test_text_outside_latin_1_is_written(format: Format, text: str):
    assert text in flat(text_of(report(sentence(text, "claim")), format))


def test_arabic_and_hebrew_do_not_break_a_pdf():
    assert "Trieste" in text_of(report(sentence("Trieste مرحبا بالعالم שלום", "claim")), "pdf")


def test_a_character_that_no_font_has_is_a_box_and_the_file_says_how_many(tmp_path: Path):
    made = as_pdf(report(sentence("日本語の文です。", "claim")), folders=(tmp_path,))
    said = flat("\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(made)).pages))
    assert "▯▯▯" in said
    assert "8 characters that no font of this machine has" in said


def test_a_broken_font_of_the_machine_is_not_used(tmp_path: Path):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    assert as_pdf(report(sentence("日本語", "claim")), folders=(tmp_path,)).startswith(b"%PDF")


def font_of_one_day(path: Path, *, outlines: str) -> None:
    """A font that has one character, with outlines of TrueType or of PostScript."""
    builder: Any = FontBuilder(1000, isTTF=outlines == "truetype")
    builder.setupGlyphOrder([".notdef", "day"])
    builder.setupCharacterMap({ord("日"): "day"})
    pen: Any = TTGlyphPen(None) if outlines == "truetype" else T2CharStringPen(1000, None)
    for move, *points in (("moveTo", (100, 0)), ("lineTo", (100, 700)), ("lineTo", (900, 700)), ("closePath",)):
        getattr(pen, move)(*points)
    if outlines == "truetype":
        builder.setupGlyf(dict.fromkeys((".notdef", "day"), pen.glyph()))
    else:
        shapes = dict.fromkeys((".notdef", "day"), pen.getCharString())
        builder.setupCFF("OneDay", {"FullName": "One Day"}, shapes, {})
    builder.setupHorizontalMetrics({".notdef": (1000, 100), "day": (1000, 100)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "One Day", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.mark.parametrize("name", ["day.ttf", "day.otf", "Day.TTC"])
def test_a_font_of_the_machine_is_used_for_what_the_shipped_one_lacks(tmp_path: Path, name: str):
    single = tmp_path / name if name != "Day.TTC" else tmp_path / "single"
    font_of_one_day(single, outlines="postscript" if name.endswith("otf") else "truetype")
    if single.name == "single":
        collection: Any = TTCollection()
        collection.fonts = [TTFont(single), TTFont(single)]
        collection.save(tmp_path / name)
    made = as_pdf(report(sentence("日 is a day.", "claim")), folders=(tmp_path,))
    assert "日 is a day." in flat(pypdf.PdfReader(io.BytesIO(made)).pages[0].extract_text())


@pytest.mark.parametrize("format", ["md", "html", "docx"])
@pytest.mark.parametrize(
    "text",
    ["او می\u200cخواهد برود.", "क्\u200dष is a letter.", "She is a 👩\u200d💻 now.", "New: \U0001fae8 \U00031350."],
)
def test_what_joins_letters_and_what_is_newer_than_python_stays(format: Format, text: str):
    assert text in flat(text_of(report(sentence(text, "claim"), title=text), format))


def test_what_only_turns_or_hides_goes():
    assert shown_line("a\u202eb\u2066c\u200bd\U000e0041e\ufffff\n g\x00h") == "abcde f g h"


def test_a_paragraph_of_a_docx_goes_the_way_of_its_first_letter():
    made = report(sentence("ولدت لينا أور في تريستي.", "claim"), title="לינה אור")
    document: Any = Document(io.BytesIO(export(made, "docx").data))
    turned = {p.text for p in document.paragraphs if p._p.pPr is not None and p._p.pPr.find(qn("w:bidi")) is not None}
    assert len(turned) == 2
    assert "לינה אור" in turned
    assert [
        run.font.rtl
        for p in document.paragraphs
        if p.text in turned
        for run in p.runs
        if run.text.strip() and "[" not in run.text
    ] == [True, True]


def test_a_line_of_a_markdown_list_begins_no_other_list():
    silent = Section(heading="1. Introduction", question="?", state="left_out", why="the time has ended")
    assert "- 1\\. Introduction: the time" in export(report(sections=(silent,)), "md").data.decode()


def test_a_file_without_a_known_ending_is_refused_with_those_that_there_are():
    assert format_of(Path("a/B.HTM")) == "html"
    with pytest.raises(SetupError, match=r"\.md, \.html, \.docx, \.pdf, \.json"):
        format_of(Path("report.odt"))


def test_without_what_writes_pdf_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.report.export.pdf.find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(SetupError, match=r"fpdf2 uharfbuzz"):
        export(report(), "pdf")


def test_markdown_and_html_load_neither_docx_nor_pdf():
    code = (
        "import sys, agent.report.export as e; "
        "print([m for m in ('docx', 'fpdf', 'fontTools', 'lxml') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
