import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from agent.cli import run
from agent.errors import SetupError
from agent.world import World, load_world
from agent.world.records import Document
from train.world import export as module
from train.world.export import export_world


@pytest.fixture(scope="module")
def world() -> World:
    return load_world("test-v1")


def test_the_corpus_holds_every_document_and_nothing_of_what_it_states(tmp_path: Path, world: World):
    written = export_world("test-v1", tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text("utf-8").splitlines()]
    assert written == ("test-v1", len(world.documents), 0)
    assert [(row["id"], row["text"], row["url"]) for row in rows] == [(d.id, d.text, d.url) for d in world.documents]
    assert {key for row in rows for key in row} == {"id", "source", "title", "text", "url", "date"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["corpus.jsonl"]


def test_the_corpus_can_be_indexed_and_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run(["world", "export", "test-v1", "--out", "out", "--json"]) == 0
    assert run(["index", "build", "out/corpus.jsonl", "--out", "index"]) == 0


def test_every_page_is_reached_from_the_index_and_says_what_the_document_says(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "_LISTED", 100)
    assert export_world("test-v1", tmp_path / "out", pages=True).pages == len(world.documents)
    folder = tmp_path / "out" / "pages"
    found: dict[str, str] = {}
    waiting = ["index.html"]
    while waiting:
        for link in re.findall(r'href="([^"]+)"', (folder / waiting.pop()).read_text("utf-8")):
            if link.startswith("index"):
                waiting.append(link)
            else:
                page = (folder / unquote(link)).read_text("utf-8")
                url = re.search(r'canonical" href="([^"]+)"', page)
                assert url
                found[url[1]] = unescape(re.sub(r"<[^>]+>", "\n", page))
    assert found.keys() == {document.url for document in world.documents}
    assert all(part in found[d.url] for d in world.documents for part in (d.title, d.date, *d.text.splitlines()))


def test_what_a_document_says_is_text_and_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nasty = Document(id="a/../b", source="web", title="<script>", text="1 < 2\n& so", url='https://e.org/"x')

    def one(which: str) -> tuple[str, int, list[Document]]:
        return which, 1, [nasty]

    monkeypatch.setattr(module, "_documents", one)
    export_world("nowhere", tmp_path / "out", pages=True)
    (page,) = (tmp_path / "out" / "pages" / "web").iterdir()
    text = page.read_text("utf-8")
    assert "<script>" not in text
    assert "<p>1 &lt; 2</p>\n<p>&amp; so</p>" in text
    assert 'href="https://e.org/&quot;x"' in text
    index = (tmp_path / "out" / "pages" / "index.html").read_text("utf-8")
    (link,) = re.findall(r'href="([^"]+)"', index)
    assert (tmp_path / "out" / "pages" / unquote(link)).is_file()


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("", encoding="utf-8")
    with pytest.raises(SetupError, match="is not empty; name another --out"):
        export_world("test-v1", tmp_path / "full")
    with pytest.raises(SetupError, match="is no world"):
        export_world("nowhere", tmp_path / "out")
    monkeypatch.setattr(module, "MOST_PAGES", 10)
    with pytest.raises(SetupError, match="leave out --pages and serve the corpus"):
        export_world("test-v1", tmp_path / "out", pages=True)
    assert not (tmp_path / "out").exists()
