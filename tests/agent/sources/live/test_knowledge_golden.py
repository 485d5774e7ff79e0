"""What the backends make of every recorded answer. `python -m tests.agent.sources.live.test_knowledge_golden` writes it again."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from agent.sources.base import SearchResult
from agent.sources.live.mediawiki import read_pages
from agent.sources.live.wikibase_api import read_rows
from tests.agent.sources.live.apiserver import Reply, json_reply
from tests.agent.sources.live.knowledge import FIXTURES, FakeWikidata, answered, arxiv, fixture, recorded, wikidata

FOLDERS: Final = ("arxiv", "mediawiki", "wikidata")
ATTILA: Final = "wikidata/wbsearchentities_attila.json"
NAMES: Final = {
    "P580": "start time", "P459": "determination method or standard", "P805": "statement is subject of", "P31": "instance of",
    "P123": "publisher", "P50": "author", "P110": "illustrator", "Q14406742": "comic book series",
}  # fmt: skip
"""Some of what Wikidata calls these; the others are shown by their ids."""


def passages(hits: SearchResult) -> list[dict[str, Any]]:
    return [passage.model_dump(exclude_defaults=True, exclude={"score"}) for passage in hits.passages]


def parsed(name: str) -> object:
    """What is made of one fixture, over real HTTP where there are passages to make."""
    folder, _, file = name.partition("/")
    if folder == "arxiv":
        return passages(answered(arxiv, Reply(fixture(name)), "x", limit=100)[0])
    if folder == "mediawiki":
        return [
            [
                f"{passage.rank} {passage.title} {passage.url}"
                for passage in read_pages(pair["response"], base="https://en.wikipedia.org", lang="en")
            ]
            for pair in recorded(name)
        ]
    if "sparql" in file:
        world = FakeWikidata(sparql=json_reply(recorded(name)))
        hits, _ = answered(wikidata, world, "SELECT ?x WHERE { ?x ?y ?z }", limit=100)
        return {
            "rows": [{n: asdict(t) for n, t in row.items()} for row in read_rows(recorded(name))],
            "passages": passages(hits),
        }
    if name == ATTILA:
        world = FakeWikidata(search={"attila the hun": recorded(name)["search"]}, claims={})
        return passages(answered(wikidata, world, "Attila the Hun", limit=100)[0])
    entities = recorded(name).get("entities") or {"Q1": recorded(name)}
    world = FakeWikidata(claims=entities, names=NAMES)
    return passages(answered(wikidata, world, " ".join(entities), limit=100)[0])


def fixtures() -> Iterator[str]:
    for folder in FOLDERS:
        yield from (
            f"{folder}/{path.name}"
            for path in sorted((FIXTURES / folder).iterdir())
            if path.name != "PROVENANCE.json" and ".golden." not in path.name
        )


def golden(name: str) -> Path:
    return FIXTURES / f"{name}.golden.json"


@pytest.mark.parametrize("name", list(fixtures()))
def test_every_recorded_answer_gives_the_golden_passages(name: str):
    assert parsed(name) == json.loads(golden(name).read_text(encoding="utf-8"))


def test_there_is_a_fixture_for_every_golden_file_and_its_provenance_is_there():
    for folder in FOLDERS:
        described = {
            entry["file"] for entry in json.loads((FIXTURES / folder / "PROVENANCE.json").read_text("utf-8"))["files"]
        }
        assert {name.partition("/")[2] for name in fixtures() if name.startswith(folder)} == described
        assert {
            path.name.removesuffix(".golden.json") for path in (FIXTURES / folder).glob("*.golden.json")
        } == described


if __name__ == "__main__":
    for each in fixtures():
        golden(each).write_text(json.dumps(parsed(each), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
