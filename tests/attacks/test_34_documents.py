"""Finding 34: documents of many formats that are made to harm those who open them."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.attacks.documents import OWL, SECRET, Trap, hostile
from tests.attacks.product import Product, hostile_server, respond

HARMLESS = "sound.txt"


@dataclass(frozen=True)
class Built:
    """What came of a build over all of them."""

    why: dict[str, str]
    texts: dict[str, str]
    expected: dict[str, str]
    errors: str
    requests: int
    changed: set[str]
    index: bytes


def _files(folder: Path) -> set[str]:
    return {str(Path(place) / name) for place, _, names in os.walk(folder) for name in names}


@pytest.fixture(scope="module")
def built(installed: Product, tmp_path_factory: pytest.TempPathFactory) -> Generator[Built]:
    """One build for all tests."""
    folder = tmp_path_factory.mktemp("hostile")
    docs, secret = folder / "docs", folder / "secret.txt"
    docs.mkdir()
    secret.write_text(SECRET, encoding="utf-8")
    (docs / HARMLESS).write_text(OWL, encoding="utf-8")
    with hostile_server(lambda request: respond(request, SECRET.encode())) as server:
        files = hostile(Trap(server.url, str(secret)))
        for name, (raw, _) in files.items():
            (docs / name).write_bytes(raw)
        before = _files(folder)
        done = installed.run("index", "build", "docs", "--out", "index", "--json", cwd=folder, seconds=110)
        assert done.returncode == 0, done.stderr
        texts: defaultdict[str, str] = defaultdict(str)
        (records,) = (folder / "index").rglob("documents.jsonl")
        for line in records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            texts[record["document"]] += record["text"] + "\n"
        yield Built(
            why={skip["name"]: skip["why"] for skip in json.loads(done.stdout)["skipped"]},
            texts=texts,
            expected={name: expected for name, (_, expected) in files.items()},
            errors=done.stderr,
            requests=len(server.requests),
            changed={name for name in before ^ _files(folder) if not name.startswith(str(folder / "index"))},
            index=records.read_bytes(),
        )


@pytest.mark.slow
def test_each_of_a_hundred_hostile_documents_gives_a_sentence_or_its_harmless_text(built: Built) -> None:
    found = {name: built.why.get(name) or built.texts[name] for name in built.expected}
    assert len(found) > 100
    wrong = {name: found[name] for name, expected in built.expected.items() if not re.search(expected, found[name])}
    assert wrong == {}
    assert [name for name, each in found.items() if not each or "its parser failed" in each] == []


@pytest.mark.slow
def test_the_build_reaches_no_one_opens_no_other_file_and_goes_on(built: Built) -> None:
    assert built.texts[HARMLESS] == f"{OWL}\n"
    assert built.requests == 0
    assert built.changed == set()
    assert SECRET.encode() not in built.index
    assert b"root:" not in built.index
    assert "Traceback" not in built.errors
