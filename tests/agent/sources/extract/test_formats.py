"""Office documents, books and messages, made by libraries and by hand, as text that keeps their structure."""

import datetime as dt
import io
from collections.abc import Callable
from email.message import EmailMessage
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.sources.corpus.finding import PARSED
from agent.sources.extract.document import reader_of
from agent.sources.extract.text import Extracted, ExtractError
from tests.agent.sources.extract.packages import (
    STRICT,
    cell,
    chapter,
    docx_parts,
    epub_parts,
    odf_parts,
    packed,
    pptx_parts,
    relations,
    renamed,
    shape,
    strict,
    words,
    xlsx_parts,
)

MANY = "Ελληνικά 你好 العربية हिन्दी 😀"


def read(kind: str, raw: bytes) -> Extracted:
    return reader_of(kind)(raw)


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word_document() -> bytes:
    document: Any = import_module("docx").Document()
    document.core_properties.title = "Owls of the North"
    document.core_properties.modified = dt.datetime(2024, 5, 3, tzinfo=dt.UTC)
    document.add_heading("Hunting", 1)
    document.add_paragraph("An owl hunts at night.\n# It never rests.")
    document.add_heading("Prey", 2)
    document.add_paragraph("mouse", style="List Bullet")
    document.add_paragraph(MANY, style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Name", "Size"), ("Eagle | owl", "70 cm")), strict=True):
        for each, text in zip(row.cells, texts, strict=True):
            each.text = text
    return saved(document)


def presentation() -> bytes:
    pptx: Any = import_module("pptx")
    deck = pptx.Presentation()
    deck.core_properties.title = "Owls"
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Hunting"
    body = slide.placeholders[1].text_frame
    body.text = "at night"
    below = body.add_paragraph()
    below.text, below.level = MANY, 1
    slide.notes_slide.notes_text_frame.text = "Show the film."
    deck.slides.add_slide(deck.slide_layouts[6])
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "A title alone"
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for row, texts in enumerate((("Name", "Size"), ("Eagle owl", "70 cm"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    return saved(deck)


def workbook() -> bytes:
    book: Any = import_module("openpyxl").Workbook()
    sheet = book.active
    sheet.title = "Owls"
    sheet.append(["Our owls"])
    sheet.append(["Name", "Size", "Seen", "Rare"])
    sheet.append([MANY, 70.5, dt.date(2024, 5, 3), True])
    sheet.append(["Scops owl", 20, dt.datetime(2024, 5, 3, 22, 30), False])
    hidden = book.create_sheet("Hidden")
    hidden.append(["a secret"])
    hidden.sheet_state = "hidden"
    return saved(book)


def test_a_word_document_has_headings_lists_and_tables() -> None:
    assert read("docx", word_document()) == Extracted(
        "# Hunting\n\nAn owl hunts at night.\n\\# It never rests.\n\n## Prey\n\n"
        f"- mouse\n- {MANY}\n\n| Name | Size |\n| --- | --- |\n| Eagle \\| owl | 70 cm |",
        title="Owls of the North",
        date="2024-05-03",
    )


def test_word_keeps_additions_fields_and_notes_and_drops_what_was_deleted() -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>Owls</w:t></w:r></w:p>'
        "<w:p><w:ins><w:r><w:t>An owl </w:t></w:r></w:ins><w:del><w:r><w:delText>never </w:delText></w:r></w:del>"
        '<w:hyperlink r:id="far"><w:r><w:t>hunts</w:t><w:footnoteReference w:id="2"/></w:r></w:hyperlink></w:p>'
        f"<w:sdt><w:sdtContent>{words('In a field.')}</w:sdtContent></w:sdt>"
        '<w:p><w:fldSimple w:instr="x"><w:r><w:t>Figure 1</w:t></w:r></w:fldSimple></w:p>'
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    title = '<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>'
    parts = docx_parts(body) | {
        "word/styles.xml": f"<w:styles {space}>{title}</w:styles>",
        "word/footnotes.xml": f'<w:footnotes {space}><w:footnote w:id="2">{words("Mice.")}</w:footnote></w:footnotes>',
        "word/_rels/document.xml.rels": relations(far="hyperlink https://example.org/", styles="styles styles.xml"),
    }
    assert read("docx", packed(parts)) == Extracted(
        "Owls\n\nAn owl hunts (Mice.)\n\nIn a field.\n\nFigure 1", title="Owls"
    )


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
def test_a_file_of_the_strict_form_is_read_as_the_usual_one(kind: str) -> None:
    usual = {"docx": word_document, "pptx": presentation, "xlsx": workbook}[kind]()
    again = read(kind, strict(usual))
    assert again == read(kind, usual)
    assert MANY in again.text


@pytest.mark.parametrize(
    ("kind", "name"), [("docx", "document.xml"), ("pptx", "presentation.xml"), ("xlsx", "workbook.xml")]
)
def test_the_document_of_a_package_is_the_part_that_its_relations_name(kind: str, name: str) -> None:
    usual = {"docx": word_document, "pptx": presentation, "xlsx": workbook}[kind]()
    other = renamed(usual, name, name.replace(".", "2."))
    assert read(kind, other) == read(kind, usual)
    with pytest.raises(ExtractError, match=f"it is a .{kind} file"):
        read("xlsx" if kind == "docx" else "docx", other)


def test_a_text_about_the_strict_form_keeps_its_words() -> None:
    assert read("docx", packed(docx_parts(words(f"See {STRICT}wordprocessingml/main.")))).text == (
        f"See {STRICT}wordprocessingml/main."
    )


def test_each_slide_is_a_page_that_begins_with_its_title() -> None:
    found = read("pptx", presentation())
    first = f"# Hunting\n\n- at night\n  - {MANY}\n\nNotes: Show the film."
    assert (
        found.text
        == f"{first}\n\n# A title alone\n\nA title alone\n\n# Slide 4\n\n| Name | Size |\n| --- | --- |\n| Eagle owl | 70 cm |"
    )
    assert (found.title, found.page(0), found.page(len(first))) == ("Owls", 1, 1)
    assert found.page(found.text.index("# A title")) == 3, "the second one is empty"


def test_the_words_of_a_diagram_and_of_grouped_shapes_are_read() -> None:
    parts = pptx_parts(f"<p:grpSp>{shape('Grouped')}</p:grpSp>{shape('7', 'sldNum')}")
    words_of_it = (
        '<x xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:p><a:r><a:t>{}</a:t></a:r></a:p></x>'
    )
    parts["ppt/diagrams/data1.xml"] = words_of_it.format("Egg, then owl")
    parts["ppt/slides/_rels/slide0.xml.rels"] = relations(d="diagramData ../diagrams/data1.xml")
    assert read("pptx", packed(parts)).text == "# Slide 1\n\nGrouped\n\n- Egg, then owl"


def test_a_workbook_has_sheets_that_can_be_seen_with_values_as_text() -> None:
    assert read("xlsx", workbook()).text == (
        "# Owls\n\nOur owls\n\n| Name | Size | Seen | Rare |\n| --- | --- | --- | --- |\n"
        f"| {MANY} | 70.5 | 2024-05-03 | TRUE |\n| Scops owl | 20 | 2024-05-03 22:30:00 | FALSE |"
    )


def test_whole_numbers_keep_each_digit_and_others_are_as_excel_shows_them() -> None:
    numbers = ("1234567890123456", "-9007199254740992", "-0", "0.1", "0.30000000000000004", "1e300", "1e22")
    row = "".join(f'<c r="{column}1"><v>{number}</v></c>' for column, number in zip("ABCDEFG", numbers, strict=True))
    text = read("xlsx", packed(xlsx_parts(f'<row r="1">{row}</row>'))).text
    assert "| 1234567890123456 | -9007199254740992 | 0 | 0.1 | 0.3 | 1e+300 | 1e+22 |" in text


def test_a_formula_gives_the_value_that_it_last_had() -> None:
    rows = '<row r="1"><c r="A1"><f>WEBSERVICE("http://127.0.0.1:9/")</f><v>7</v></c><c r="B1"><v>8</v></c></row>'
    assert "| 7 | 8 |" in read("xlsx", packed(xlsx_parts(rows))).text


def test_a_long_table_is_written_in_parts_that_each_show_the_header() -> None:
    rows = "".join(f"{number},owl {number},{'far ' * (number % 7)}\n" for number in range(500))
    parts = read("csv", f"Number,Name,Place\n{rows}".encode()).text.split("\n\n")
    assert len(parts) > 10
    assert all(part.startswith("| Number | Name | Place |\n| --- | --- | --- |\n") for part in parts)
    assert max(map(len, parts)) <= 900
    assert sum(part.count("\n") - 1 for part in parts) == 500


def test_a_row_that_is_long_names_its_columns() -> None:
    raw = b"Name\tText\tEmpty\nowl\t" + b"hoot " * 300 + b"\t\n"
    assert read("tsv", raw).text.startswith("- Name: owl; Text: hoot hoot")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_columns_may_be_apart_by_any_usual_mark(mark: str) -> None:
    raw = f'Name{mark}Größe\n"Eule{mark}n"{mark}3\n'.encode("cp1252")
    shown = mark.strip().replace("|", "\\|") or " "
    assert read("csv", raw).text == f"| Name | Größe |\n| --- | --- |\n| Eule{shown}n | 3 |"


def test_the_chapters_of_a_book_come_in_the_order_of_its_spine() -> None:
    chapters = {
        "a%20b.xhtml": chapter("<p>The end&nbsp;&mdash; really.</p>", "Last"),
        "first.xhtml": chapter(
            f"<h1>Hunting</h1><p>An <i>owl</i><br/>hunts.</p><ol><li>mouse<ul><li>{MANY}</li></ul></li></ol>"
            "<table><tr><th>Name</th><th>Size</th></tr><tr><td><p>owl</p></td><td>3</td></tr></table><script>x</script>"
        ),
    }
    parts = epub_parts(
        chapters,
        spine=["first.xhtml", "a%20b.xhtml"],
        head="<dc:title>Owls</dc:title><dc:date>1997-05-01T00:00:00Z</dc:date>",
    )
    parts["OEBPS/a b.xhtml"] = parts.pop("OEBPS/a%20b.xhtml")
    assert read("epub", packed(parts)) == Extracted(
        f"# Hunting\n\nAn owl\nhunts.\n\n1. mouse\n  - {MANY}\n\n| Name | Size |\n| --- | --- |\n| owl | 3 |\n\n"
        "# Last\n\nThe end — really.",
        title="Owls",
        date="1997-05-01",
    )


def test_rich_text_has_headings_tables_lists_and_every_script() -> None:
    source = (
        r"{\rtf1\ansi\ansicpg1252\uc1{\fonttbl{\f0 Arial;}}{\info{\title Owls of the North}{\author A}"
        r"{\creatim\yr2023\mo1\dy2}{\revtim\yr2024\mo5\dy3\hr1}}{\stylesheet{\s1\outlinelevel0 heading 1;}}"
        r"\pard\s1\outlinelevel0 Hunting\par\pard An {\b owl} hunts: caf\'e9, \u20320?\u22909?, \u-10179?\u-8704?.\par"
        r"\pard{\pntext\'b7\tab}{\listtext \u8226?\tab}mouse\par\trowd Name\cell Size\cell\row\trowd owl\cell 3\cell\row"
        r"\pard\outlinelevel1 Prey\par{\pict\bin4 }}{}}{\*\objdata 00}none\par}"
    )
    found = read("rtf", source.encode("ascii"))
    assert found == Extracted(
        "# Hunting\n\nAn owl hunts: café, 你好, 😀.\n\n- mouse\n\n| Name | Size |\n| --- | --- |\n| owl | 3 |\n\n"
        "## Prey\n\nnone",
        title="Owls of the North",
        date="2024-05-03",
    )


def message(**headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in {"Subject": f"Owls, {MANY}", "From": "Ada <ada@example.org>", **headers}.items():
        made[name] = value
    made["Date"] = "Fri, 03 May 2024 09:00:00 +0200"
    return made


def test_a_message_has_subject_day_people_text_and_names_of_attachments() -> None:
    made = message(To="bo@example.org")
    made.set_content(f"An owl hunts.\n\n# {MANY}\n")
    made.add_alternative("<p>Another text</p>", subtype="html")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Größe.pdf")
    made.add_attachment(message(Subject="Forwarded"))
    assert read("mail", made.as_bytes()) == Extracted(
        "From: Ada <ada@example.org>\nTo: bo@example.org\nDate: Fri, 03 May 2024 09:00:00 +0200\n\n"
        f"An owl hunts.\n\n\\# {MANY}\n\nAttachments: Größe.pdf, message/rfc822",
        title=f"Owls, {MANY}",
        date="2024-05-03",
    )


def test_headers_of_a_message_may_be_written_in_bytes() -> None:
    raw = "Subject: Überblick für\n März\nFrom: Jörg <j@example.org>\n\nAn owl hunts.\n"
    for encoding in ("utf-8", "latin-1"):
        found = read("mail", raw.encode(encoding))
        assert (found.title, found.text) == (
            "Überblick für März",
            "From: Jörg <j@example.org>\n\nAn owl hunts.",
        )


def test_a_message_of_html_alone_is_read_too() -> None:
    made = message()
    made.set_content(
        "<table><tr><td><table><tr><td><h2>Hunting</h2>At night</td></tr></table></td></tr></table>", subtype="html"
    )
    assert read("mail", b"From ada Fri May 3\n" + made.as_bytes()).text.endswith("\n\n## Hunting\n\nAt night")


WHOLE: dict[str, Callable[[], bytes]] = {
    "docx": word_document,
    "pptx": presentation,
    "xlsx": workbook,
    "odt": lambda: packed(odf_parts("text", "<text:p>An owl</text:p>")),
    "odp": lambda: packed(odf_parts("presentation", "<draw:page><text:p>An owl</text:p></draw:page>")),
    "ods": lambda: packed(odf_parts("spreadsheet", "<table:table><table:table-row/></table:table>")),
    "epub": lambda: packed(epub_parts({"a.xhtml": chapter("An owl")})),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_that_is_empty_cut_off_or_of_another_kind_gets_a_sentence_that_says_what_to_do(kind: str) -> None:
    whole = WHOLE[kind]()
    other = next(each for each in WHOLE if each != kind)
    for raw, why in {
        b"": "it is empty",
        whole[: len(whole) // 2]: rf"no readable \.{kind} file .*copy it again, or save it",
        WHOLE[other](): rf"it is a \.{other} file: rename it",
        packed({"a.txt": "An owl"}): "it is a ZIP file that holds no",
        b"%PDF-1.7": r"it is a \.pdf file: rename it",
        b"An owl": rf"it is no \.{kind} file: open it in .* and save it as \.{kind}",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": rf"old binary form .*save it as \.{kind}",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"): "encrypted.*save a copy without",
    }.items():
        with pytest.raises(ExtractError, match=why):
            read(kind, raw)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("docx", packed(docx_parts(words("")))),
        ("pptx", packed(pptx_parts(shape("")))),
        ("xlsx", packed(xlsx_parts(f'<row r="1">{cell("A1", "")}</row>'))),
        (
            "docx",
            packed(docx_parts('<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Owls</w:t></w:r></w:p>')),
        ),
        ("odt", packed(odf_parts("text", ""))),
        ("rtf", b"{\\rtf1 }"),
        ("csv", b"\n"),
        ("tsv", b""),
        ("mail", b""),
    ],
)
def test_a_document_without_text_is_reported(kind: str, raw: bytes) -> None:
    with pytest.raises(ExtractError, match=r"it holds no text|it is empty"):
        read(kind, raw)


SOUND = {
    kind: packed(parts, method=0)
    for kind, parts in {
        "docx": docx_parts(words("An owl hunts.")),
        "pptx": pptx_parts(shape("An owl", "title") + shape("hunts.")),
        "xlsx": xlsx_parts(f'<row r="1">{cell("A1", "An owl")}{cell("B1", "hunts.")}</row>'),
        "odt": odf_parts("text", "<text:list><text:list-item><text:p>An owl</text:p></text:list-item></text:list>"),
        "ods": odf_parts(
            "spreadsheet",
            "<table:table><table:table-row><table:table-cell><text:p>An owl</text:p></table:table-cell></table:table-row></table:table>",
        ),
        "odp": odf_parts("presentation", "<draw:page><text:p>An owl hunts.</text:p></draw:page>"),
        "epub": epub_parts({"a.xhtml": chapter("<h1>An owl</h1><ul><li>hunts.</li></ul>")}),
    }.items()
} | {
    "rtf": rb"{\rtf1\ansi{\fonttbl{\f0\fcharset161 A;}}\f0\pard\outlinelevel0 An owl\par hunts\'e1\u20320?.\cell\row}",
    "mail": b'Subject: =?utf-8?q?An_owl?=\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nhunts.\n--b--\n',
    "csv": b'An,owl\n"hunts",""\n',
    "tsv": b'An\towl\n"hunts"\t""\n',
    "html": b"<h1>An owl</h1><p>It <b>hunts</b>.</p>",
}


def test_every_format_has_a_sound_file_to_damage():
    assert set(SOUND) == PARSED - {"pdf"}, "that of PDF is in test_document.py"


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_text_or_a_sentence(kind: str, data: st.DataObject) -> None:
    raw = SOUND[kind]
    at = data.draw(st.integers(0, len(raw) - 1))
    damage = data.draw(
        st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from([b"<", b"&", b"{", b"\\bin9", b"]]>", b"\0"]))
    )
    try:
        found = read(kind, raw[:at] + damage + raw[at + len(damage) :])
    except ExtractError:
        return
    assert found.text
    assert list(found.pages) == sorted(found.pages)
