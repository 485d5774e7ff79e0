"""Worlds are read from folders: the frozen lists of the package, and what `cairn world build` wrote."""

import asyncio
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.plan import Filter
from agent.sources.base import SearchRequest
from agent.world import World, frozen_lists, load_world
from agent.world.names import SPLITS, split_of, words
from agent.world.relations import LISTINGS, RELATIONS
from agent.world.store import folder_of, read_card, read_shards, world_names
from train.world.writing import build_world


@pytest.fixture(scope="module")
def frozen() -> World:
    return load_world("test-v1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("worlds") / "large"
    build_world(5, split="train", size=2000, questions=100, out=out)
    return out


def test_frozen_lists_are_small_and_the_newest_is_what_test_means() -> None:
    assert frozen_lists() == ["test-v1", "test-v2"]
    assert world_names() == ["test", "test-v1", "test-v2", "dev-v2"]
    assert folder_of("test") == folder_of("test-v2")
    assert load_world("test").name == "test-v2"
    assert sum(path.stat().st_size for path in folder_of("test").iterdir()) < 2_000_000


@pytest.mark.parametrize(("name", "questions"), [("test-v1", 500), ("test-v2", 800), ("dev-v2", 200)])
def test_a_list_of_the_package_is_read_by_its_name(name: str, questions: int) -> None:
    world = load_world(name)
    assert world.name == name
    assert len({question.question for question in world.questions if not question.history}) > 0.9 * questions
    assert len(world.questions) == questions
    assert {split_of(word) for word in world.invented_words} == {name.partition("-")[0]}


def test_the_first_list_stays_what_it_was(frozen: World) -> None:
    """Its generator is gone; its files are not changed, and all that its questions look up is known."""
    assert read_card(folder_of("test-v1")).files == {
        "documents.jsonl": "02e802bf0d8e184c0edfa3050db5bb4689360f52956b47cfba12ababaaa9bb08",
        "triples.tsv": "28e0db377e2c446fed42db590383f0dab70faa6835ef0cb6688e1a33e6e1615a",
        "questions.jsonl": "58288936d26bb99832be2bd62ed874bfac56e172b52dd75534f2cc750287a134",
    }
    lookups = [lookup for question in frozen.questions for stage in question.plan for lookup in stage]
    assert {lookup.relation for lookup in lookups} <= {*RELATIONS, *LISTINGS}
    assert all(frozen.document(lookup.gold) for lookup in lookups)


def test_no_word_belongs_to_two_splits() -> None:
    for kind in ("first", "last", "city", "country", "org", "work", "thing"):
        pools = [set(words(kind, split)) for split in SPLITS]
        assert all(pools)
        assert not (pools[0] & pools[1])
        assert not (pools[0] & pools[2])
        assert not (pools[1] & pools[2])


def test_filters_of_a_world_source_hold(frozen: World) -> None:
    async def found() -> list[str]:
        found = await frozen.sources()["news"].search(
            SearchRequest("new mayor elected", limit=5, filters=(Filter(name="after", value="2026-01-01"),))
        )
        return [p.date for p in found.passages]

    dates = asyncio.run(found())
    assert dates
    assert min(dates) >= "2026-01-01"


def test_a_world_of_many_shards_loads_as_one(folder: Path) -> None:
    card, world = read_card(folder), load_world(folder)
    assert card.shards > 1
    assert (len(world.documents), len(world.questions)) == (card.documents, 100)
    assert len({d.id for d in world.documents}) == card.documents
    assert len({q.id for q in world.questions}) == 100


def test_a_large_world_is_read_shard_by_shard_with_its_questions(folder: Path) -> None:
    shards = list(read_shards(folder))
    assert sum(len(shard.questions) for shard in shards) == 100
    for shard in shards:
        ids = {document.id for document in shard.documents}
        assert all(key in ids for question in shard.questions for key in question.supporting)


def test_a_card_that_calls_its_difficulty_knobs_is_read(folder: Path) -> None:
    card = read_card(folder)
    before = card.as_json().replace('"difficulty"', '"knobs"')
    assert '"knobs"' in before
    assert type(card).model_validate_json(before) == card


def test_a_world_too_large_for_memory_says_how_to_search_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.world.store.MOST_HELD", 1000)
    with pytest.raises(SetupError, match="cairn index build"):
        load_world(folder)


@pytest.mark.parametrize("gone", ["dev", "dev-v1"])
def test_a_folder_that_is_no_world_is_named_with_what_there_is(
    gone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SetupError, match="is no world"):
        load_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match="name a folder, or one of test, test-v1, test-v2, dev-v2"):
        load_world(gone)


def test_a_world_whose_files_were_changed_is_refused(tmp_path: Path) -> None:
    build_world(1, split="train", size=400, questions=5, out=tmp_path / "w")
    with (tmp_path / "w" / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(SetupError, match="was changed"):
        load_world(tmp_path / "w")
