import asyncio
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.plan import Filter
from agent.sources.base import SearchRequest
from agent.world import Lookup, World, build_world, frozen_lists, load_world
from agent.world.names import SPLITS, split_of, words
from agent.world.reader import answer_from, first_passage_answer
from agent.world.records import Document, Stated
from agent.world.store import folder_of, write_world
from agent.world.v1 import first_card, make_world
from agent.world.v1.relations import LISTINGS as FIRST_LISTINGS
from agent.world.v1.relations import RELATIONS as FIRST_RELATIONS
from agent.world.validate import validate


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(3, split="dev", people=60, questions=80)


@pytest.fixture(scope="module")
def frozen() -> World:
    return load_world("test-v1")


def test_the_same_seed_gives_the_same_world(world: World) -> None:
    again = make_world(3, split="dev", people=60, questions=80)
    assert (again.documents, again.questions) == (world.documents, world.questions)


def test_another_seed_gives_another_world(world: World) -> None:
    assert make_world(4, split="dev", people=60).documents != world.documents


def test_no_word_belongs_to_two_splits() -> None:
    for kind in ("first", "last", "city", "country", "org", "work", "thing"):
        pools = [set(words(kind, split)) for split in SPLITS]
        assert all(pools)
        assert not (pools[0] & pools[1])
        assert not (pools[0] & pools[2])
        assert not (pools[1] & pools[2])


def test_a_world_uses_only_words_of_its_split(world: World) -> None:
    assert {split_of(word) for word in world.invented_words} == {"dev"}


def test_nobody_marries_or_teaches_themselves() -> None:
    world = make_world(1, split="train", people=60)
    for document in world.documents:
        for stated in document.states:
            assert stated.subject not in stated.values


def test_marriage_goes_both_ways() -> None:
    world = make_world(1, split="train", people=60)
    spouse = {s.subject: s.values[0] for d in world.documents for s in d.states if s.relation == "spouse"}
    assert spouse
    assert all(spouse[spouse[one]] == one for one in spouse)


def test_a_page_is_outdated_exactly_where_a_later_report_says_otherwise(world: World) -> None:
    current: dict[tuple[str, str], tuple[str, ...]] = {}
    for document in sorted(world.documents, key=lambda d: d.date):
        for stated in document.states:
            if FIRST_RELATIONS[stated.relation].changes if stated.relation in FIRST_RELATIONS else False:
                current[stated.subject, stated.relation] = stated.values
    seen = 0
    for document in world.documents:
        for stated in document.states:
            if (stated.subject, stated.relation) in current:
                seen += stated.outdated
                assert stated.outdated == (stated.values != current[stated.subject, stated.relation])
    assert seen > 10


def test_every_kind_of_source_holds_documents_and_some_facts_stand_in_one_only(world: World) -> None:
    assert set(Counter(d.source for d in world.documents)) == {"web", "news", "arxiv", "kg"}
    told: dict[str, set[str]] = {}
    for document in world.documents:
        for stated in document.states:
            told.setdefault(stated.relation, set()).add(document.source)
    assert [told[name] for name in ("spouse", "host", "first_author", "director")] == [
        {"kg"},
        {"news"},
        {"arxiv"},
        {"web"},
    ]


def test_the_frozen_list_keeps_every_promise(frozen: World) -> None:
    checks = validate(frozen, "test")
    assert [c.name for c in checks if not c.holds] == []
    assert len(frozen.questions) == 500
    assert len({q.question for q in frozen.questions}) == 500


def test_the_frozen_list_is_what_its_generator_makes(frozen: World, tmp_path: Path) -> None:
    """The hashes are in the package: a change of the generator must not pass for the old list."""
    made = make_world(1, split="test", people=110, questions=500, name="test-v1")
    card = write_world([made], first_card("test-v1", 1, split="test", people=110), tmp_path / "w")
    shipped = load_world(tmp_path / "w")
    assert shipped.questions == frozen.questions
    assert (tmp_path / "w" / "world.json").read_bytes() == (folder_of("test-v1") / "world.json").read_bytes()
    assert card.files == {
        "documents.jsonl": "02e802bf0d8e184c0edfa3050db5bb4689360f52956b47cfba12ababaaa9bb08",
        "triples.tsv": "28e0db377e2c446fed42db590383f0dab70faa6835ef0cb6688e1a33e6e1615a",
        "questions.jsonl": "58288936d26bb99832be2bd62ed874bfac56e172b52dd75534f2cc750287a134",
    }


def test_validation_sees_a_question_whose_answer_is_wrong(world: World) -> None:
    broken = world.questions[0].model_copy(update={"answers": ("Nobody",)})
    checks = validate(World.of("broken", world.documents, (broken, *world.questions[1:])), "dev")
    assert "answered by its gold passages" in [c.name for c in checks if not c.holds]


def test_validation_sees_a_question_that_one_passage_answers(world: World) -> None:
    question = next(q for q in world.questions if q.type == "chain2")
    lookup = question.plan[1][0]
    all_in_one = Document(
        id="web-0",
        source="web",
        title="All",
        text="All",
        url="",
        states=tuple(Stated(subject=x.subject, relation=x.relation, values=x.values) for (x,) in question.plan),
    )
    padded = question.model_copy(update={"supporting": ("web-0", lookup.gold)})
    others = [d for d in world.documents if d.id != "web-0"]
    checks = validate(World.of("easy", [*others, all_in_one], (padded,)), "dev")
    assert "not answered without one of them" in [c.name for c in checks if not c.holds]


def test_validation_sees_names_of_another_split(world: World) -> None:
    assert "words of another split than test" in [c.name for c in validate(world, "test") if not c.holds]


def test_a_perfect_reader_believes_the_report_and_not_the_outdated_page(frozen: World) -> None:
    question = next(q for q in frozen.questions if q.type == "chain1" and q.trap and "news" in q.plan[0][0].sources)
    lookup = question.plan[0][0]
    told = [
        d for d in frozen.documents for s in d.states if (s.subject, s.relation) == (lookup.subject, lookup.relation)
    ]
    assert len(told) > 1
    assert answer_from(told, question) in question.answers


def test_the_first_passage_reader_is_not_blind(frozen: World) -> None:
    ones = [q for q in frozen.questions if q.type == "chain1"]
    assert sum(first_passage_answer(frozen, q) in q.answers for q in ones) / len(ones) > 0.5


def test_filters_of_a_world_source_hold(frozen: World) -> None:
    async def found() -> list[str]:
        passages = await frozen.sources()["news"].search(
            SearchRequest("new mayor elected", limit=5, filters=(Filter(name="after", value="2026-01-01"),))
        )
        return [p.date for p in passages.passages]

    dates = asyncio.run(found())
    assert dates
    assert min(dates) >= "2026-01-01"


def test_the_newest_list_is_what_test_means(frozen: World) -> None:
    assert load_world("test").name == frozen_lists()[-1]


def test_a_folder_that_is_no_world_is_named_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no world"):
        load_world(tmp_path)


def test_a_world_whose_files_were_changed_is_refused(tmp_path: Path) -> None:
    build_world(1, split="train", size=400, questions=5, out=tmp_path / "w")
    with (tmp_path / "w" / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(SetupError, match="was changed"):
        load_world(tmp_path / "w")


def test_a_folder_with_other_things_in_it_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose", encoding="utf-8")
    with pytest.raises(SetupError, match="is no world"):
        build_world(1, split="train", size=400, questions=0, out=tmp_path)


def test_a_world_too_small_for_its_questions_says_so() -> None:
    with pytest.raises(ValueError, match="too small"):
        make_world(1, split="train", people=30, questions=5000)


def test_the_shipped_recipe_goes_on_seeing_the_worlds_that_it_saw() -> None:
    """The first checkpoint can be trained again: the same seed still gives the same training world."""
    world = make_world(1_000_000, split="train", people=110, questions=300)
    lines = [record.model_dump_json() for record in (*world.documents, *world.questions)]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert digest == "32e87ee857c98bdf75b25886c85fcf94e18d8706075aba231d14383dd2221cf7"


def test_what_generator_1_calls_things_is_what_look_ups_call_them(frozen: World) -> None:
    """The oracle's queries are those that the checkpoint learned."""
    for name, relation in FIRST_RELATIONS.items():
        lookup = Lookup(subject="Tarnton", relation=name, values=(), gold="")
        assert (lookup.noun, lookup.sources) == (relation.noun, relation.sources)
        assert lookup.rephrased == relation.rephrased[0].format(s="Tarnton")
    for name, listing in FIRST_LISTINGS.items():
        lookup = Lookup(subject="Tarnton", relation=name, values=(), gold="")
        assert (lookup.noun, lookup.rephrased) == (listing.noun, listing.rephrased.format(s="Tarnton"))
        assert lookup.sources == (listing.source,)
