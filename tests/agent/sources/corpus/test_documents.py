import codecs
import json
from pathlib import Path

import pytest

from agent.errors import CorpusError
from agent.sources.corpus.documents import RECORD_CHARS, StoredPassage, read_file
from agent.sources.corpus.finding import find_files
from agent.sources.extract.pool import FileReader
from agent.sources.extract.text import ExtractError
from tests.agent.sources.extract.files import make_pdf
from tests.agent.sources.extract.packages import cell, docx_parts, packed, pptx_parts, shape, words, xlsx_parts


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def read_all(*paths: Path) -> list[StoredPassage]:
    with FileReader() as reader:
        return [document for file in find_files(paths).files for document in read_file(file, reader)]


def test_each_json_line_is_a_document_and_unknown_fields_are_left_out(tmp_path: Path):
    path = write(
        tmp_path / "c.jsonl",
        {"id": 7, "title": "Dune", "text": "A novel.", "url": "https://x.org/d", "date": "1965-08", "page": "iv"},
        "",
        {"id": "b", "text": "No title."},
    )
    assert read_all(path) == [
        StoredPassage(
            id="7", title="Dune", text="A novel.", url="https://x.org/d", date="1965-08", document="7", start=0, end=8
        ),
        StoredPassage(id="b", text="No title.", document="b", start=0, end=9),
    ]


@pytest.mark.parametrize(("section", "title"), [("Plot", "Dune › Plot"), ("", "Dune"), (None, "Dune"), ([4], "Dune")])
def test_the_section_of_a_json_line_is_part_of_its_title(tmp_path: Path, section: object, title: str):
    path = write(tmp_path / "c.jsonl", {"id": "7", "title": "Dune", "section": section, "text": "A novel."})
    assert [(part.title, part.section) for part in read_all(path)] == [(title, "")]


@pytest.mark.parametrize(
    ("stated", "date"),
    [
        ("2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z"),
        ("March 3, 2026", "2026-03-03"),
        ("2026/03/02", "2026-03-02"),
        (2026, "2026"),
        ("03/04/2026", ""),
        ("March 2", ""),
        ("yesterday", ""),
        (1714521600, ""),
        (["2026"], ""),
        (10**400, ""),
        ("9" * 100_000, ""),
        ("2026, in the first days of the month of March", ""),
    ],
)
def test_a_date_that_cannot_be_read_costs_no_document(tmp_path: Path, stated: object, date: str):
    path = write(tmp_path / "c.jsonl", {"id": "7", "text": "A novel.", "date": stated})
    assert [part.date for part in read_all(path)] == [date]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ({"id": "a", "title": "x"}, "the field 'text' is missing"),
        ({"title": "x", "text": "y"}, "the field 'id' is missing"),
        ({"id": "a", "text": "  "}, "the field 'text' cannot be used: is empty"),
        ({"id": "a", "text": ["x"]}, "the field 'text' cannot be used: "),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path, line: object, why: str):
    path = write(tmp_path / "c.jsonl", {"id": "first", "text": "fine"}, line)
    with pytest.raises(CorpusError) as caught:
        read_all(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert why in str(caught.value)


def test_json_lines_of_bytes_that_are_no_text_are_an_error(tmp_path: Path):
    (tmp_path / "b.jsonl").write_bytes(b'{"id": "a", "text": "\xff"}')
    with pytest.raises(CorpusError, match=r"b\.jsonl, line 1: not valid JSON"):
        read_all(tmp_path / "b.jsonl")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Café\r\nnoir".encode(), "Café\nnoir"),
        (codecs.BOM_UTF8 + "Café".encode(), "Café"),
        ("Café".encode("utf-16"), "Café"),
        (
            "Der Käse schmeckt den Gästen, die ihn mögen.".encode("cp1252"),
            "Der Käse schmeckt den Gästen, die ihn mögen.",
        ),
    ],
)
def test_a_text_is_read_in_the_charset_that_it_was_written_in(tmp_path: Path, raw: bytes, text: str):
    (tmp_path / "a.txt").write_bytes(raw)
    assert [d.text for d in read_all(tmp_path)] == [text]


def test_a_file_of_bytes_that_are_no_text_is_refused(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\x7fELF\x00\x00\x01")
    with pytest.raises(ExtractError, match="not text"):
        read_all(tmp_path)


def test_a_folder_is_searched_through_and_what_is_passed_over_is_reported(tmp_path: Path):
    for name in ("b.md", "a.txt", "sub/c.jsonl", ".git/d.md", "e.png", "index/documents.jsonl", "z.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    write(tmp_path / "questions.jsonl", {"id": "1", "question": "Who?", "answers": ["x"]})
    found = find_files([tmp_path], leave_out=tmp_path / "index")
    assert [file.name for file in found.files] == ["a.txt", "b.md", "sub/c.jsonl", "z.pdf"]
    assert [(skip.name, skip.reason, skip.why) for skip in found.skipped] == [
        ("e.png", "kind", ".png"),
        ("questions.jsonl", "questions", "it is a list of questions"),
    ]


@pytest.mark.parametrize(("name", "why"), [("gone", "no file or folder"), ("a.png", "give JSON lines"), ("", "no doc")])
def test_what_cannot_be_documents_is_said(tmp_path: Path, name: str, why: str):
    (tmp_path / "a.png").touch()
    with pytest.raises(CorpusError, match=why):
        find_files([tmp_path / name])


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path):
    write(tmp_path / "a.txt", "once")
    assert [d.id for d in read_all(tmp_path / "a.txt", tmp_path, tmp_path / "a.txt")] == ["a.txt#1"]


def test_an_id_is_the_path_below_the_folder_and_does_not_hang_on_other_files(tmp_path: Path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "a.txt", "the same")
    assert [d.id for d in read_all(tmp_path)] == ["x/a.txt#1", "y/a.txt#1"]
    assert [d.id for d in read_all(tmp_path / "x")] == ["a.txt#1"]
    ids = [d.id for d in read_all(tmp_path / "x", tmp_path / "y")]
    assert ids == [f"{tmp_path.as_posix()}/{folder}/a.txt#1" for folder in ("x", "y")]


def test_the_bytes_of_json_lines_that_were_read_are_reported(tmp_path: Path):
    path = write(tmp_path / "c.jsonl", *({"id": i, "text": "é"} for i in range(5)))
    ticks: list[int] = []
    (file,) = find_files([path]).files
    with FileReader() as reader:
        assert len(list(read_file(file, reader, tick=ticks.append))) == 5
    assert len(ticks) == 5
    assert sum(ticks) == path.stat().st_size


def test_a_long_record_is_cut_and_each_part_says_where_it_stands(tmp_path: Path):
    text = "One sentence. " * (RECORD_CHARS // 10)
    parts = read_all(write(tmp_path / "c.jsonl", {"id": "a", "title": "T", "text": text, "date": "2026"}))
    assert len(parts) > 3
    assert [part.id for part in parts] == [f"a#{number}" for number in range(1, len(parts) + 1)]
    for part in parts:
        assert (part.document, part.title, part.date, part.text) == ("a", "T", "2026", text[part.start : part.end])


def test_markdown_has_its_headings_as_titles(tmp_path: Path):
    (tmp_path / "guide.md").write_text("Before all.\n# Guide\nWelcome.\n## Setup\nRun it.\n", encoding="utf-8")
    found = [(d.id, d.title, d.text, d.start) for d in read_all(tmp_path)]
    assert found == [
        ("guide.md#1", "guide", "Before all.", 0),
        ("guide.md#2", "Guide", "Welcome.", 20),
        ("guide.md#3", "Guide › Setup", "Run it.", 38),
    ]


PAGE = """<!doctype html><html><head><title>Aurora Falls - Film Wiki</title>
<meta property="article:published_time" content="2026-03-02T10:00:00Z">
<link rel="canonical" href="https://films.example/aurora"></head>
<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav><article><h1>Aurora Falls</h1>
<p>Aurora Falls is a film of 2025, which was directed by Lina Orr and shown first in Trieste.</p>
<h2>Plot</h2><p>Two sisters look for a waterfall &amp; find a café.</p></article>
<script>var secret = 1;</script></body></html>"""


def test_the_front_matter_of_markdown_gives_title_and_date_and_is_no_passage(tmp_path: Path):
    (tmp_path / "a.md").write_text(
        '---\ntitle: "Owls: guide #1"  # of ours\ntags:\n  - birds\ndate: 2025-02-03\n---\n\n## Prey\n\nMice.\n',
        encoding="utf-8",
    )
    (part,) = read_all(tmp_path)
    assert (part.title, part.date, part.text) == ("Owls: guide #1 › Prey", "2025-02-03", "Mice.")
    (tmp_path / "a.md").write_text("---\nNo key here.\n---\n\nMice.\n", encoding="utf-8")
    assert any("No key here." in part.title + part.text for part in read_all(tmp_path))


def test_a_page_has_title_headings_date_and_address(tmp_path: Path):
    (tmp_path / "aurora.html").write_text(PAGE, encoding="utf-8")
    first, second = read_all(tmp_path)
    assert (first.title, first.date, first.url) == (
        "Aurora Falls",
        "2026-03-02",
        "https://films.example/aurora",
    )
    assert first.text == "Aurora Falls is a film of 2025, which was directed by Lina Orr and shown first in Trieste."
    assert (second.id, second.title) == ("aurora.html#2", "Aurora Falls › Plot")
    assert second.text == "Two sisters look for a waterfall & find a café."


def test_a_pdf_has_pages_and_the_title_of_its_metadata(tmp_path: Path):
    pages = (["A film that was di-", "rected by Lina Orr."], ["The sea (blue)."] * 99, ["The end."])
    (tmp_path / "b.pdf").write_bytes(make_pdf(*pages, title="Films of 2025"))
    (tmp_path / "c.pdf").write_bytes(make_pdf(["No title."], title="untitled"))
    *parts, other = read_all(tmp_path)
    assert parts[0].text.startswith("A film that was directed by Lina Orr.")
    assert {part.title for part in parts} == {"Films of 2025"}
    assert parts[0].page == 1
    assert [(part.start < part.end, len(part.text)) for part in parts] == [(True, p.end - p.start) for p in parts]
    assert any(part.page in (2, 3) for part in parts)
    assert (other.title, other.page) == ("c", 1)


def test_a_passage_over_several_pages_of_a_pdf_says_where_each_begins(tmp_path: Path):
    (tmp_path / "film.pdf").write_bytes(make_pdf(["The film is long."], [], ["Lina Orr directed it."]))
    (passage,) = read_all(tmp_path)
    assert passage.page == 1
    begins = passage.page_breaks[-1]
    assert (passage.text[begins:], len(passage.page_breaks)) == ("Lina Orr directed it.", 2)


def test_a_word_document_is_cut_at_its_headings_and_slides_have_numbers(tmp_path: Path):
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    body = heading.format(1, "Hunting") + words("At night.") + heading.format(2, "Prey") + words("Mice.")
    (tmp_path / "owls.docx").write_bytes(packed(docx_parts(body)))
    slides = [shape("Hunting", "title") + shape("At night.", "body"), shape("Prey", "title")]
    (tmp_path / "talk.pptx").write_bytes(packed(pptx_parts(*slides)))
    assert [(part.id, part.title, part.text, part.page) for part in read_all(tmp_path)] == [
        ("owls.docx#1", "owls › Hunting", "At night.", 0),
        ("owls.docx#2", "owls › Hunting › Prey", "Mice.", 0),
        ("talk.pptx#1", "talk › Hunting", "- At night.", 1),
        ("talk.pptx#2", "talk › Prey", "Prey", 2),
    ]


def test_every_passage_of_a_sheet_shows_the_header(tmp_path: Path):
    rows = "".join(
        f'<row r="{n + 3}">{cell(f"A{n + 3}", f"owl {n}")}{cell(f"B{n + 3}", "far " * (n % 9))}</row>'
        for n in range(99)
    )
    top = f'<row r="1">{cell("A1", "All the owls that we have seen in a year, " * 5)}</row><row r="2">{cell("A2", "Name")}{cell("B2", "Place")}</row>'
    (tmp_path / "list.xlsx").write_bytes(packed(xlsx_parts(top + rows)))
    first, *parts = read_all(tmp_path)
    assert first.text.startswith("All the owls")
    assert len(parts) > 3
    assert {part.text.partition("\n")[0] for part in parts} == {"| Name | Place |"}
    assert {part.title for part in parts} == {"list › Owls"}


@pytest.mark.parametrize(("name", "form"), {"a.doc": ".docx", "b.XLS": ".xlsx", "c.ppsm": ".pptx"}.items())
def test_a_document_in_another_form_is_named_with_the_form_to_save_it_in(tmp_path: Path, name: str, form: str):
    (tmp_path / name).write_bytes(b"x")
    (tmp_path / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    (skipped,) = find_files([tmp_path]).skipped
    assert (skipped.name, skipped.reason) == (name, "unreadable")
    assert skipped.why.endswith(f"are not read: save it as {form}")
    with pytest.raises(CorpusError, match=rf"cannot be read as documents: .* save it as \{form}"):
        find_files([tmp_path / name])
