import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CorpusError
from agent.sources.documents import (
    PASSAGE_CHARS,
    RECORD_CHARS,
    Document,
    document_files,
    read_documents,
    split_markdown,
    split_text,
)


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_each_json_line_is_a_document_and_unknown_fields_are_left_out(tmp_path: Path):
    path = write(
        tmp_path / "c.jsonl",
        {"id": 7, "title": "Dune", "text": "A novel.", "url": "https://x.org/d", "date": "1965-08", "genre": "sf"},
        "",
        {"id": "b", "text": "No title."},
    )
    assert list(read_documents([path])) == [
        Document(id="7", title="Dune", text="A novel.", url="https://x.org/d", date="1965-08"),
        Document(id="b", text="No title."),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "this is no JSON"),
        ("[1]", "this is no JSON object"),
        ({"id": "a", "title": "x"}, "the field 'text' is missing"),
        ({"title": "x", "text": "y"}, "the field 'id' is missing"),
        ({"id": "a", "text": "  "}, "the field 'text' cannot be used: is empty"),
        ({"id": "a", "text": ["x"]}, "the field 'text' cannot be used: "),
        ({"id": "a", "text": "x", "date": "March 2"}, "'March 2' is no ISO date like 2026-03-02"),
        ({"id": "first", "text": "x"}, "the id 'first' stands twice"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path, line: object, why: str):
    path = write(tmp_path / "c.jsonl", {"id": "first", "text": "fine"}, line)
    with pytest.raises(CorpusError) as caught:
        list(read_documents([path]))
    assert f"{path}, line 2: " in str(caught.value)
    assert why in str(caught.value)


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "b.jsonl").write_bytes(b'{"id": "a", "text": "\xff"}')
    with pytest.raises(CorpusError, match=r"a\.txt cannot be read as UTF-8"):
        list(read_documents([tmp_path / "a.txt"]))
    with pytest.raises(CorpusError, match=r"b\.jsonl, line 1: this is no JSON"):
        list(read_documents([tmp_path / "b.jsonl"]))


def test_a_folder_is_searched_through_without_what_is_hidden_or_strange(tmp_path: Path):
    for name in ("b.md", "a.txt", "sub/c.jsonl", ".git/d.md", "e.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    write(tmp_path / "questions.jsonl", {"id": "1", "question": "Who?", "answers": ["x"]})
    assert [p.name for p in document_files([tmp_path])] == ["a.txt", "b.md", "c.jsonl"]


@pytest.mark.parametrize(("name", "why"), [("gone", "no file or folder"), ("a.pdf", "give JSON lines"), ("", "no doc")])
def test_what_cannot_be_documents_is_said(tmp_path: Path, name: str, why: str):
    (tmp_path / "a.pdf").touch()
    with pytest.raises(CorpusError, match=why):
        document_files([tmp_path / name])


def test_an_empty_file_has_no_documents(tmp_path: Path):
    with pytest.raises(CorpusError, match="there are no documents in"):
        list(read_documents([write(tmp_path / "c.jsonl", "")]))


def test_two_files_with_the_same_name_stay_apart(tmp_path: Path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("the same", encoding="utf-8")
    ids = [d.id for d in read_documents([tmp_path])]
    assert len(set(ids)) == 2
    assert ids[0].endswith("x/a.txt#0-8")


def test_the_bytes_that_were_read_are_told(tmp_path: Path):
    path = write(tmp_path / "c.jsonl", *({"id": i, "text": "é"} for i in range(5)))
    ticks: list[int] = []
    list(read_documents([path], tick=ticks.append))
    assert len(ticks) == 5
    assert sum(ticks) == path.stat().st_size


def test_a_long_record_is_cut_and_says_where(tmp_path: Path):
    text = "One sentence. " * (RECORD_CHARS // 10)
    parts = list(read_documents([write(tmp_path / "c.jsonl", {"id": "a", "title": "T", "text": text})]))
    assert len(parts) > 3
    for part in parts:
        name, _, place = part.id.partition("#")
        start, end = map(int, place.split("-"))
        assert (name, part.title, part.text) == ("a", "T", text[start:end])


MARKDOWN = """Before all.

# Guide #

Welcome.

## Setup

Run it:
```sh
# no heading
```
### Linux
Here.
## Use
#hashtag is no heading
"""


def test_markdown_is_cut_at_headings_whose_path_is_the_title(tmp_path: Path):
    (tmp_path / "guide.md").write_text(MARKDOWN, encoding="utf-8")
    found = [(d.title, d.text) for d in read_documents([tmp_path])]
    assert found == [
        ("guide", "Before all."),
        ("Guide", "Welcome."),
        ("Guide › Setup", "Run it:\n```sh\n# no heading\n```"),
        ("Guide › Setup › Linux", "Here."),
        ("Guide › Use", "#hashtag is no heading"),
    ]


markdown_like = st.text(alphabet=st.sampled_from(list("ab#`~ \n\r.\u2028")), max_size=80)


@given(markdown_like)
def test_sections_lie_in_order_and_lose_nothing_but_headings(text: str):
    end = 0
    for _, start, stop in split_markdown(text, "x"):
        lost = text[end:start].splitlines()
        assert len(lost) <= 1
        assert all(line.startswith("#") for line in lost)
        assert start <= stop
        end = stop
    assert end == len(text)


@given(st.lists(st.sampled_from([*"aé.!\n ", "word ", "\n\n"]), max_size=60).map(lambda parts: "".join(parts) * 60))
def test_pieces_are_short_and_lose_nothing_but_space(text: str):
    pieces = split_text(text, 0, len(text))
    assert all(0 < end - start <= PASSAGE_CHARS for start, end in pieces)
    assert all(text[start:end] == text[start:end].strip() for start, end in pieces)
    gaps = zip([0, *(end for _, end in pieces)], [*(start for start, _ in pieces), len(text)], strict=True)
    assert all(not text[end:start].strip() and end <= start for end, start in gaps)


def test_text_is_cut_after_a_paragraph_rather_than_after_a_sentence():
    first = "A sentence. " * 60
    text = first + "\n\n" + "Another one. " * 60
    assert split_text(text, 0, len(text))[0] == (0, len(first.rstrip()))
