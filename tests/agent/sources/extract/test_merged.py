"""Cells of tables that reach over several rows."""

from importlib import import_module
from typing import Any

from tests.agent.sources.extract.packages import chapter, epub_parts, packed
from tests.agent.sources.extract.test_formats import read, saved

LONG = " ".join(["A cell that is too long to be said again."] * 3)


def test_merged_cells_of_a_word_document_are_said_in_each_of_their_rows() -> None:
    document: Any = import_module("docx").Document()
    table = document.add_table(rows=3, cols=2)
    for row, texts in zip(table.rows, (("Country", "Gold"), ("Norway", "14"), ("", "16")), strict=True):
        for each, text in zip(row.cells, texts, strict=True):
            each.text = text
    table.cell(1, 0).merge(table.cell(2, 0)).text = "Norway"
    assert read("docx", saved(document)).text.endswith("| Norway | 14 |\n| Norway | 16 |")


def test_a_cell_that_reaches_over_rows_is_said_in_each_of_them_where_it_is_short() -> None:
    page = (
        "<table><tr><th>Country</th><th>Year</th><th>Gold</th></tr>"
        "<tr><td rowspan='2'>Norway</td><td>2018</td><td>14</td></tr><tr><td>2022</td><td>16</td></tr>"
        f"<tr><td>Sweden</td><td rowspan='2'>{LONG}</td><td rowspan='2'>7</td></tr><tr><td>Finland</td></tr></table>"
    )
    table = read("epub", packed(epub_parts({"one.xhtml": chapter(page)}, spine=["one.xhtml"]))).text
    assert table.splitlines()[2:] == [
        "| Norway | 2018 | 14 |",
        "| Norway | 2022 | 16 |",
        f"| Sweden | {LONG} | 7 |",
        "| Finland |  | 7 |",
    ]
