"""Charts of office documents as tables."""

from agent.sources.extract.document import reader_of
from tests.agent.sources.extract.packages import CHARTS, chart, docx_parts, packed, pptx_parts, relations, shape, words

CHART = "Chart: Owls seen\n\n| Category | North | South |\n| --- | --- | --- |\n| 2023 | 7 | 1 |\n| 2024 | 9 |  |"


def test_a_chart_of_a_slide_is_a_table() -> None:
    parts = pptx_parts(shape("Counts", "title")) | {
        "ppt/slides/_rels/slide0.xml.rels": relations(c="chart ../charts/chart1.xml"),
        "ppt/charts/chart1.xml": chart("Owls seen", {"North": {"2023": "7", "2024": "9"}, "South": {"2023": "1"}}),
    }
    assert reader_of("pptx")(packed(parts)).text == f"# Counts\n\n{CHART}"


def test_a_chart_of_a_word_document_is_a_table_behind_its_paragraph() -> None:
    drawn = f'<w:p><w:r><w:drawing><c:chart {CHARTS} r:id="c"/></w:drawing></w:r></w:p>'
    picture = "<w:p><w:r><w:drawing/></w:r></w:p>"
    parts = docx_parts(words("We counted.") + drawn + picture + words("Then we left.")) | {
        "word/_rels/document.xml.rels": relations(c="chart charts/chart1.xml"),
        "word/charts/chart1.xml": chart("Owls seen", {"North": {"2023": "7", "2024": "9"}, "South": {"2023": "1"}}),
    }
    assert reader_of("docx")(packed(parts)).text == f"We counted.\n\n{CHART}\n\nThen we left."
