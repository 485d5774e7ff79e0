"""Worlds as folders: built in parts, hashed, with a card; frozen lists stay what they are; validation sees faults."""

import json
import tracemalloc
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.world import World
from agent.world.difficulty import Difficulty
from agent.world.records import Document, Question
from agent.world.store import folder_of, read_card
from train.world.shards import make_world
from train.world.validate import TYPES, WorldCheck, WorldTally, check_folder, survey, validate
from train.world.writing import build_world


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(3, split="dev", questions=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("worlds") / "large"
    build_world(5, split="train", size=2400, questions=100, out=out)
    return out


def silent(done: int, total: int) -> None:
    assert done <= total


def failed(checks: list[WorldCheck]) -> list[str]:
    return [check.name for check in checks if not check.holds]


def changed(world: World, kind: str, **update: object) -> World:
    """The world with one question of this type changed."""
    place = next(n for n, question in enumerate(world.questions) if question.type == kind)
    questions = list(world.questions)
    questions[place] = questions[place].model_copy(update=update)
    return World(world.name, world.documents, tuple(questions), world.indexes)


def test_the_first_frozen_list_keeps_every_promise_but_that_of_a_mix() -> None:
    checks, types = check_folder("test-v1", silent)
    assert failed(checks) == []
    assert not [check for check in checks if check.name.startswith("type ")]
    assert sum(types.values()) == 500


def test_the_second_frozen_list_keeps_every_promise() -> None:
    checks, types = check_folder("test-v2", silent)
    assert failed(checks) == []
    assert set(types) == set(TYPES)
    assert sum(types.values()) == 800


def test_the_second_frozen_list_is_what_its_generator_makes(tmp_path: Path) -> None:
    """The hashes are in the package: a change of the generator must not pass for the old list."""
    difficulty = Difficulty(noise=0.5, paraphrase=0.6, exclusivity=0.8, staleness=0.6, contradiction=0.2, namesakes=0.3)
    card = build_world(
        2, split="test", size=1600, questions=800, out=tmp_path / "test-v2", name="test-v2", difficulty=difficulty
    )
    assert card == read_card(folder_of("test-v2"))
    assert card.files == {
        "documents.jsonl": "7076bcdfb4ee55ed07769c3476c4761df1e9a4e1dbdff387bc096cce02da7dd2",
        "triples.tsv": "6c31b762aa68f7dbd8e16d8e4a195218609bcb331b6ccbaaa83946832e6b13ba",
        "questions.jsonl": "427e84155607f5b231566717fccfd093cbf155334c3668a65a430c6ce4339d03",
    }
    readme = (tmp_path / "test-v2" / "README.md").read_text(encoding="utf-8")
    assert readme == (folder_of("test-v2") / "README.md").read_text(encoding="utf-8")


def test_a_large_world_is_valid(folder: Path) -> None:
    checks, _ = check_folder(str(folder), silent)
    assert failed(checks) == []


@pytest.mark.slow
def test_writing_a_large_world_holds_one_shard_at_a_time(tmp_path: Path) -> None:
    def peak(size: int) -> int:
        tracemalloc.start()
        build_world(1, split="train", size=size, questions=0, out=tmp_path / str(size))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1200)
    assert peak(4800) < 2 * peak(1200)


def test_the_card_shows_difficulty_counts_examples_baselines_and_hashes(folder: Path) -> None:
    text, card = (
        (folder / "README.md").read_text(encoding="utf-8"),
        json.loads((folder / "world.json").read_text("utf-8")),
    )
    wanted = ("staleness | 0.5", "generator 2", card["files"]["documents.jsonl"], "| chain4 |", "## Baselines")
    assert [each for each in wanted if each not in text] == []
    assert sum(card["types"].values()) == card["questions"]
    assert sum(card["sources"].values()) == card["documents"]


def test_progress_is_reported_in_documents(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []

    def show(done: int, total: int) -> None:
        reported.append((done, total))

    card = build_world(1, split="train", size=3000, questions=0, out=tmp_path / "w", show=show)
    assert reported[-1][0] == card.documents
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


def test_many_worlds_are_surveyed_until_there_are_enough_of_each_type() -> None:
    checks, types = survey(25, 40, "test", silent)
    assert failed(checks) == []
    assert set(types) == set(TYPES)
    assert min(types.values()) >= 25


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_thousand_questions_of_each_type_are_sound() -> None:
    checks, types = survey(1000, 0, "test", silent)
    assert failed(checks) == []
    assert min(types.values()) >= 1000


def test_a_made_world_is_valid(world: World) -> None:
    assert failed(validate(world, "dev", Difficulty())) == []


def test_validation_sees_a_wrong_answer(world: World) -> None:
    assert "answered by its gold passages" in failed(
        validate(changed(world, "time", answers=("Unknown",)), "dev", Difficulty())
    )


def test_validation_sees_a_passage_that_is_not_needed(world: World) -> None:
    chain = next(q for q in world.questions if q.type == "chain2")
    extra = next(d.id for d in world.documents if d.id not in chain.supporting)
    broken = changed(world, "chain2", supporting=(*chain.supporting, extra))
    assert "not answered without one of them" in failed(validate(broken, "dev", Difficulty()))


def test_validation_sees_an_answer_to_a_question_that_has_none(world: World) -> None:
    chain = next(q for q in world.questions if q.type == "chain1")
    broken = changed(world, "unanswerable", plan=chain.plan)
    assert "without an answer: nothing about its subjects gives one" in failed(validate(broken, "dev", Difficulty()))


def test_validation_sees_an_answer_where_none_is_marked(world: World) -> None:
    broken = changed(world, "unanswerable", unanswerable=False)
    assert "has no answer exactly where it says so" in failed(validate(broken, "dev", Difficulty()))


def test_validation_sees_a_statement_that_the_text_does_not_make(world: World) -> None:
    question = next(q for q in world.questions if q.type == "chain1")

    def silenced(document: Document) -> Document:
        return document.model_copy(update={"text": "Nothing."}) if document.id in question.supporting else document

    broken = World.of(world.name, map(silenced, world.documents), world.questions)
    assert "what a gold passage states is in its text" in failed(validate(broken, "dev", Difficulty()))


def test_validation_sees_a_gold_passage_that_no_search_finds(world: World) -> None:
    chain = next(q for q in world.questions if q.type == "chain1")
    lookup = chain.plan[0][0].model_copy(update={"subject": "Unknown Person"})
    broken = changed(world, "chain1", plan=((lookup,),))
    assert "gold passages found by the gold plan" in failed(validate(broken, "dev", Difficulty()))


def test_validation_sees_a_mix_that_was_not_promised(world: World) -> None:
    assert "type known" in failed(validate(world, "dev", Difficulty(well_known=0.4)))


def test_validation_sees_names_of_training_worlds(world: World) -> None:
    trained = make_world(0, split="train", questions=60)
    assert "words of training worlds" in failed(validate(trained, "test", Difficulty()))


def test_well_known_questions_are_counted_apart_in_the_baselines(world: World) -> None:
    tally = WorldTally("dev")
    known: tuple[Question, ...] = tuple(q for q in world.questions if q.well_known)
    tally.add(World(world.name, world.documents, known, world.indexes))
    shares = {check.name: check.value for check in tally.checks(mixed=False)}
    assert known
    assert shares["first passage, perfectly read"] == 0


def test_a_world_without_questions_cannot_be_validated(tmp_path: Path) -> None:
    build_world(1, split="train", size=300, questions=0, out=tmp_path / "w")
    with pytest.raises(SetupError, match="--questions"):
        check_folder(str(tmp_path / "w"), silent)


def test_validation_sees_names_of_another_split(world: World) -> None:
    assert "words of another split than test" in failed(validate(world, "test", Difficulty()))


def test_a_folder_with_other_things_in_it_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose", encoding="utf-8")
    with pytest.raises(SetupError, match="is no world"):
        build_world(1, split="train", size=400, questions=0, out=tmp_path)


def test_a_world_too_small_for_its_questions_says_so() -> None:
    with pytest.raises(ValueError, match="too small"):
        make_world(1, split="train", people=30, questions=5000)
