"""An index beside other things: the user's own files in its folder, files that could not be read, addresses with paths."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.errors import CorpusError
from agent.plan import Filter
from agent.sources.base import SearchRequest
from agent.sources.corpus import gathering
from agent.sources.corpus.finding import SourceFile
from agent.sources.corpus.source import CorpusSource, build_index, update_index
from agent.sources.corpus.split import split_markdown
from agent.sources.extract.text import ReadingFailed


def notes(folder: Path, text: str = "Lina Orr was born in Trieste.") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text(text, encoding="utf-8")
    return folder


def test_a_build_removes_no_file_of_the_user_s(tmp_path: Path):
    out = tmp_path / "index"
    build_index([notes(tmp_path / "notes")], out)
    own = [out / "data-2024.csv", out / "documents.jsonl", out / "data-raw" / "x.txt"]
    own[2].parent.mkdir()
    for path in own:
        path.write_text("mine", encoding="utf-8")
    notes(tmp_path / "notes", "Lina Orr died in Bergen.")
    update_index([tmp_path / "notes"], out)
    assert [path.read_text(encoding="utf-8") for path in own] == ["mine"] * 3
    assert len([path for path in out.iterdir() if path.name.startswith("data-")]) == 3, "the older index is gone"


@pytest.mark.parametrize("card", ['{"version": "1.2.0", "name": "site"}', '{"version": 3}', "no JSON", "[1]"])
def test_a_folder_with_another_program_s_card_is_no_index(tmp_path: Path, card: str):
    site = notes(tmp_path / "site")
    (site / "index.json").write_text(card, encoding="utf-8")
    (site / "data-2023.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(CorpusError, match="has other files in it"):
        build_index([notes(tmp_path / "notes")], site)
    assert (site / "index.json").read_text(encoding="utf-8") == card
    found = CorpusSource.open(site, cache=tmp_path / "cache").find("Lina Orr", limit=1)
    assert found[0].text.startswith("Lina Orr"), "its documents are searched"


def test_a_file_that_could_not_be_read_for_a_moment_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, out = notes(tmp_path / "notes"), tmp_path / "index"
    (folder / "b.md").write_text("Ada Tross lives in Bergen.", encoding="utf-8")
    read = gathering.read_file
    errors: list[Exception] = [PermissionError(13, "Permission denied"), ReadingFailed("its reader died")]

    def refused(file: SourceFile, *rest: Any, **options: Any) -> Iterator[Any]:
        if file.name == "b.md":
            raise errors.pop()
        return read(file, *rest, **options)

    monkeypatch.setattr(gathering, "read_file", refused)
    for _ in range(2):
        assert [skip.name for skip in update_index([folder], out).skipped] == ["b.md"]
    monkeypatch.setattr(gathering, "read_file", read)
    assert not update_index([folder], out).skipped
    assert CorpusSource.open(out).find("Ada Tross", limit=1)[0].text.startswith("Ada Tross")


@pytest.mark.parametrize(
    ("name", "site", "shown"),
    [
        ("site", "example.org", True),
        ("site", "example.org/blog", True),
        ("site", "https://example.org", True),
        ("site", ".org", True),
        ("site", "example.org/shop", False),
        ("not", "example.org/blog", False),
        ("not", "example.org/shop", True),
    ],
)
def test_sites_mean_the_same_in_documents_as_on_the_web(tmp_path: Path, name: str, site: str, shown: bool):
    line = {"id": "1", "text": "Lina Orr", "url": "https://example.org/blog/post", "title": None, "date": None}
    (tmp_path / "d.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    build_index([tmp_path / "d.jsonl"], tmp_path / "index")
    source = CorpusSource.open(tmp_path / "index")
    request = SearchRequest("Lina Orr", 1, filters=(Filter(name=name, value=site),))
    assert bool(source.find(request.query, limit=1, filters=request.filters)) is shown


def test_headings_keep_their_signs_and_code_inside_of_a_line_opens_no_fence():
    text = "# C#\n\n```pip install cairn```\n\n## F# ##\n\nText.\n"
    assert [title for title, *_ in split_markdown(text, "x")] == ["x", "C#", "C# › F#"]
