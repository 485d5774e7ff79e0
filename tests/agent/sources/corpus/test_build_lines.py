"""What a build leaves out of a file: lines that are no documents, and ids that were there before."""

import json
import re
from pathlib import Path

import pytest

from agent.errors import CorpusError
from agent.sources.corpus.source import CorpusSource, build_index, update_index
from tests.agent.sources.corpus.test_build import data_files, put
from tests.agent.sources.extract.files import make_pdf


def test_where_nothing_can_be_read_the_reasons_are_reported(tmp_path: Path):
    (tmp_path / "d").mkdir()
    put(tmp_path / "d" / "scan.pdf", make_pdf([]))
    with pytest.raises(CorpusError, match=r"there are no documents to index \(scan\.pdf: none of its pages"):
        build_index([tmp_path / "d"], tmp_path / "i")
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (["a", "b", "a"], [], r"one\.jsonl, line 3: the id 'a' occurs twice"),
        (["a", "b"], ["c", "b"], r"two\.jsonl, line 2: the id 'b' occurs twice"),
    ],
)
def test_an_id_that_stands_twice_is_named_with_its_line(tmp_path: Path, first: list[str], second: list[str], why: str):
    (tmp_path / "d").mkdir()
    for name, ids in (("one", first), ("two", second or ["other"])):
        put(tmp_path / "d" / f"{name}.jsonl", "".join(json.dumps({"id": i, "text": "x"}) + "\n" for i in ids))
    with pytest.raises(CorpusError, match=why):
        build_index([tmp_path / "d"], tmp_path / "i", strict=True)
    outcome = update_index([tmp_path / "d"], tmp_path / "i")
    (skip,) = (skip for skip in outcome.skipped if skip.reason == "lines")
    assert re.search(why, f"{skip.name}, {skip.why.removeprefix('1 line was left out; ')}")
    kept = [document.id for document in CorpusSource(tmp_path / "i").documents()]
    assert kept == list(dict.fromkeys([*first, *(second or ["other"])])), "the first of each id stays"


def test_what_gave_way_to_another_file_comes_back_when_that_is_gone(tmp_path: Path):
    docs = tmp_path / "d"
    docs.mkdir()
    long = "One sentence. " * 600
    put(docs / "a.jsonl", json.dumps({"id": "x", "text": "first"}) + "\n")
    put(docs / "b.jsonl", "".join(json.dumps({"id": i, "text": long}) + "\n" for i in ("x", "y", "y")))
    put(docs / "c.md", "# A\nfile's own")
    put(docs / "d.jsonl", json.dumps({"id": "c.md#1", "text": "wants its place"}) + "\n" + '{"id": "z", "text": "z"}')
    update_index([docs], tmp_path / "i")
    again = update_index([docs], tmp_path / "i")
    assert again.kept == 4
    assert {skip.name: skip.why.split(";")[0] for skip in again.skipped} == {
        "b.jsonl": "1 line was left out",
        "d.jsonl": "1 line was left out",
    }
    shown = {d.id: (d.document, d.text[:5]) for d in CorpusSource(tmp_path / "i").documents()}
    assert shown["c.md#1"] == ("c.md", "file'")
    assert shown["x"] == ("x", "first")
    put(docs / "a.jsonl", json.dumps({"id": "w", "text": "another one"}) + "\n")
    put(docs / "c.md", "")
    outcome = update_index([docs], tmp_path / "i")
    assert {skip.name: skip.why for skip in outcome.skipped if skip.reason != "lines"} == {"c.md": "it is empty"}
    build_index([docs], tmp_path / "new")
    assert data_files(tmp_path / "i")["documents.jsonl"] == data_files(tmp_path / "new")["documents.jsonl"]
    assert {"x#1", "y#1", "w", "z", "c.md#1"} <= {d.id for d in CorpusSource(tmp_path / "i").documents()}


def test_lines_that_are_no_documents_are_left_out_and_reported(tmp_path: Path):
    docs = tmp_path / "d"
    docs.mkdir()
    deep = '{"id": "deep", "text": ' + "[" * 200_000
    lines = ['{"id": "a", "text": "a falcon"}', "{", deep, '{"id": "u", "text": "t", "url": "' + "x" * 5000 + '"}']
    put(docs / "a.jsonl", "\n".join([*lines, '{"id": "b", "text": "a heron"}']))
    put(docs / "b.txt", "An owl.")
    outcomes = [update_index([docs], tmp_path / "i") for _ in range(2)]
    for outcome in outcomes:
        assert [(skip.name, skip.reason) for skip in outcome.skipped] == [("a.jsonl", "lines")]
        assert outcome.skipped[0].why.startswith("3 lines were left out; line 2: not valid JSON")
    assert [outcome.kept for outcome in outcomes] == [0, 2]
    assert [d.id for d in CorpusSource(tmp_path / "i").documents()] == ["a", "b", "b.txt#1"]
    with pytest.raises(CorpusError, match=r"a\.jsonl.*line 2: not valid JSON"):
        update_index([docs], tmp_path / "i", strict=True)
    put(docs / "a.jsonl", deep)
    outcome = update_index([docs], tmp_path / "i")
    assert [(skip.name, skip.reason) for skip in outcome.skipped] == [("a.jsonl", "unreadable")]
