"""500 good documents and 50 files that mean harm in one folder: every good one is found, every bad one is named."""

import json
import os
import socket
from pathlib import Path

from agent.settings import load_settings
from agent.sources.corpus.source import CorpusSource, update_index
from tests.agent.sources.extract.files import make_pdf

REAL = load_settings().data / "docs_redocred1000" / "documents.jsonl"
GOOD = 500
HIGH = b"<p>caf\xe9 \xff"
LONG = "<" + " " * 28_000


def good_documents() -> list[dict[str, str]]:
    """Real ones where the data is, else made up; each with a word that no other has."""
    if REAL.is_file():
        rows = [json.loads(line) for line in REAL.read_text("utf-8").splitlines()[:GOOD]]
        found = [{"id": row["id"], "title": row["title"], "text": row["text"]} for row in rows]
    else:
        found = [{"id": f"d{n}", "title": f"Town {n}", "text": f"Town {n} lies on a river." * 9} for n in range(GOOD)]
    assert len(found) == GOOD
    return [row | {"text": f"{row['text']} Its mark is zq{number}x."} for number, row in enumerate(found)]


def write_good(folder: Path) -> dict[str, str]:
    """A third as JSON lines, the others as text and as Markdown; gives the word of each with its passage's beginning."""
    rows = good_documents()
    (folder / "many.jsonl").write_text("\n".join(map(json.dumps, rows[: GOOD // 3])), encoding="utf-8")
    for row in rows[GOOD // 3 :]:
        name = folder / f"{row['id']}.{'md' if len(row['text']) % 2 else 'txt'}"
        name.write_text(f"{row['title']}\n\n{row['text']}", encoding="utf-8")
    whole = {f"zq{number}x": row["id"] for number, row in enumerate(rows)}
    assert len(whole) == GOOD
    return whole


def hostile_files() -> dict[str, bytes]:
    """By name. None of them holds a document."""
    page = make_pdf(["One page."])
    fields = {name: json.dumps({"id": "x", "text": "t", name: LONG}).encode() for name in ("id", "title", "url")}
    lines = {
        **{f"field-{name}": line for name, line in fields.items()},
        "date": b'{"id": "x", "text": [], "date": "' + b"9" * 100_000 + b'"}',
        "deep": b"[" * 200_000,
        "deep-field": b'{"id": "x", "text": ' + b"[" * 200_000,
        "objects": b'{"a":' * 100_000,
        "digits": b'{"id": ' + b"9" * 200_000 + b', "text": "x"}',
        "line": b'{"id": "x", "text": "' + b"a" * (17 << 20),
        "surrogate": b'{"id": "\\ud800", "text": "x"}',
        "bytes": b'{"id": "x", "text": "\xff\xfe"}',
        "list": b"[1, 2]",
        "empty-id": b'{"id": " ", "text": "x"}',
        "no-text": b'{"id": "x"}',
        "half": b'{"id": "x", "te',
        "zeros": b"\0" * 10_000,
        "newlines": b"\n" * 10_000,
        "nothing": b"",
    }
    texts = {f"{name}.txt": content for name, content in {"elf": b"\x7fELF\0\0\1" * 99, "blank": b" \n" * 999}.items()}
    texts |= {"utf16.txt": b"\xff\xfe" + b"\0" * 999, "zip.md": b"PK\3\4" + b"\0" * 500, "empty.md": b""}
    pages = {
        "tags": b"<p><a" * 100_000,
        "comment": b"<!--" + b"-" * 500_000,
        "script": b"<script>" + b"x" * 100_000,
        "zero": b"<p>\0\0\0\0" * 1000,
        "none": b"",
        "nested": b"<div>" * 100_000,
        "entities": b"<html><body>" + b"&nbsp;" * 10_000,
    }
    pdfs = {
        "broken": page[:300],
        "empty": b"",
        "scan": make_pdf([]),
        "loop": page.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
        "angle": b"%PDF-1.7\n1 0 obj\n" + b"<<" * 100_000,
        "count": page.replace(b"/Count 1", b"/Count 999999999").replace(b"/Type /Page ", b"/Type /Nope "),
        "text": b"not a PDF at all" * 99,
    }
    return {
        **{f"bad-{name}.jsonl": content for name, content in lines.items()},
        **{f"bad-{name}": content for name, content in texts.items()},
        **{f"bad-{name}.html": content for name, content in pages.items()},
        **{f"bad-{name}.pdf": content for name, content in pdfs.items()},
    }


def write_hostile(folder: Path, outside: Path) -> set[str]:
    """Write them all; gives their names."""
    names = set(hostile_files())
    for name, content in hostile_files().items():
        (folder / name).write_bytes(content)
    secret = outside / "key.txt"
    secret.write_text("wqsecret of the user's own", encoding="utf-8")
    links = {"bad-link.txt": secret, "bad-folder": outside, "bad-zero.md": Path("/dev/zero"), "bad-loop": folder}
    links |= {"bad-dangling.txt": outside / "gone", "bad-self.md": folder / "bad-self.md"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    for name in ("bad-pipe.html", "bad-pipe.jsonl", "bad-pipe.txt", "bad-pipe.pdf"):
        os.mkfifo(folder / name)
        names.add(name)
    for name in ("bad-sparse.jsonl", "bad-sparse.txt"):
        with (folder / name).open("wb") as file:
            file.truncate(1 << 42)
        names.add(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "bad-s.md"))
    names |= {"bad-s.md", *links}
    return names


def test_all_good_documents_are_found_and_all_bad_files_named(tmp_path: Path) -> None:
    folder, outside = tmp_path / "d", tmp_path / "o"
    folder.mkdir()
    outside.mkdir()
    marks = write_good(folder)
    bad = write_hostile(folder, outside)
    assert len(bad) == 50
    outcome = update_index([folder], tmp_path / "index")
    named = {skip.name: skip.why for skip in outcome.skipped}
    assert named.keys() == bad, "each of them, and nothing else"
    assert all(named.values())
    index = CorpusSource(tmp_path / "index")
    lost = [mark for mark, id in marks.items() if not found(index, mark).startswith(id)]
    assert lost == []
    assert found(index, "wqsecret") == ""
    again = update_index([folder], tmp_path / "index")
    assert {skip.name: skip.why for skip in again.skipped} == named, "a second build names them, too"


def found(index: CorpusSource, mark: str) -> str:
    """The id of the one passage that has this word."""
    passages = index.find(mark, limit=3)
    assert len(passages) <= 1
    return passages[0].id if passages else ""
