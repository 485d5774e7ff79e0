"""OpenDocument: texts, slides and sheets, made by a library and by hand, as text that keeps their structure."""

import datetime as dt
import io
from importlib import import_module
from typing import Any

from agent.sources.extract.opendocument import odp_text, ods_text, odt_text
from tests.agent.sources.extract.packages import odf_parts, packed

GREEK = "Ελληνικά 😀"


def test_a_text_of_open_document_has_headings_lists_notes_and_tables() -> None:
    odfdo: Any = import_module("odfdo")
    document = odfdo.Document("text")
    document.meta.title = "Owls of the North"
    document.meta.date = dt.datetime(2024, 5, 3)
    document.body.clear()
    document.body.append(odfdo.Header(1, "Hunting"))
    paragraph = odfdo.Paragraph("An owl hunts at night.")
    paragraph.insert_note(after="owl", note_id="n", citation="1", body="Or a bat.")
    document.body.append(paragraph)
    document.body.append(odfdo.List(["mouse", GREEK]))
    table = odfdo.Table("Sizes")
    table.append_row(odfdo.Row())
    table.set_values([["Name", "Size"], ["Eagle owl", "70 cm"]])
    document.body.append(table)
    out = io.BytesIO()
    document.save(out)
    found = odt_text(out.getvalue())
    assert found.text == (
        f"# Hunting\n\nAn owl (Or a bat.) hunts at night.\n\n- mouse\n- {GREEK}\n\n"
        "| Name | Size |\n| --- | --- |\n| Eagle owl | 70 cm |"
    )
    assert (found.title, found.date) == ("Owls of the North", "2024-05-03")


def test_slides_and_sheets_of_open_document_are_read_alike() -> None:
    frame = '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    slide = f"<draw:page>{frame.format('outline', 'at night')}{frame.format('title', 'Hunting')}</draw:page>"
    found = odp_text(packed(odf_parts("presentation", "<draw:page/>" + slide)))
    assert (found.text, found.pages) == ("# Hunting\n\nat night", (0, 0))
    row = (
        "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"/><table:table-cell><text:p>{}</text:p></table:table-cell>'
        '<table:table-cell table:number-columns-repeated="16380"/></table:table-row>'
    )
    blank = (
        '<table:table-row table:number-rows-repeated="1048574"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    rows = f'<table:table table:name="Owls">{row.format("Name", "Size")}{row.format("owl", 3)}{blank}</table:table>'
    sheet = ods_text(packed(odf_parts("spreadsheet", rows)))
    assert sheet.text == "# Owls\n\n| Name |  |  | Size |\n| --- | --- | --- | --- |\n| owl |  |  | 3 |"


def test_sheets_of_open_document_that_are_not_shown_and_comments_are_left_out() -> None:
    styles = (
        '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
        '<style:style style:name="s" style:family="table"><style:table-properties table:display="true"/></style:style>'
    )
    cell = "<table:table-row><table:table-cell>{}<text:p>{}</text:p></table:table-cell></table:table-row>"
    comment = "<office:annotation><text:p>a secret</text:p></office:annotation>"
    sheets = (
        f'<table:table table:name="Hidden" table:style-name="h">{cell.format("", "a secret")}</table:table>'
        f'<table:table table:name="Owls" table:style-name="s">{cell.format(comment, "owl")}</table:table>'
    )
    assert ods_text(packed(odf_parts("spreadsheet", sheets, styles))).text == "# Owls\n\nowl"


def test_words_of_a_box_stand_apart_and_a_note_in_a_cell_is_read_once() -> None:
    box = "<draw:frame><draw:text-box><text:p>An owl</text:p><text:p>hunts</text:p></draw:text-box></draw:frame>"
    note = "<text:note><text:note-body><text:p>or a bat</text:p></text:note-body></text:note>"
    table = (
        "<table:table><table:table-row><table:table-cell>"
        f"<text:p>owl{note}</text:p></table:table-cell></table:table-row></table:table>"
    )
    found = odt_text(packed(odf_parts("text", f"<text:p>Look:{box}at night.</text:p>{table}")))
    assert " ".join(found.text.split()) == "Look: An owl hunts at night. owl (or a bat)"
