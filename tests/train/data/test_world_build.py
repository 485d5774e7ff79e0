"""A build on a little world: its grammar writes, a perfect reader filters, and what comes out can be trained on."""

from pathlib import Path
from typing import Any

import pytest

from agent.errors import SetupError
from agent.parallel.spread import HERE, On, Spread
from agent.world import Question, World, load_world
from agent.world.records import Document, Stated
from tests.train.data.made import lines, recipe_for
from train.data.build import build
from train.data.built import read_built
from train.data.by_grammar import Grammar
from train.data.checking import ExactFilters, Which, check_list
from train.data.finish import Finished, finished
from train.data.folder import Folder
from train.data.inputs import WorldInput
from train.data.records import Bundle, Candidate
from train.data.steps import Made, Steps
from train.data.vectors import embedder
from train.evaluation.datasets import read_dataset
from train.world.reader import answer_from
from train.world.shards import is_sound, searched
from train.world.writing import build_world

pytest.importorskip("sklearn")
pytest.importorskip("datasketch")

RAY: Any = pytest.param("ray", marks=[pytest.mark.long, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")])
ON: list[Any] = [pytest.param("local", marks=pytest.mark.slow), RAY]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("worlds") / "world"
    build_world(5, split="train", size=400, questions=0, out=out, name="small")
    return out


def built(world: Path, out: Path, spread: Spread = HERE, **said: Any) -> Finished:
    """Without UMAP: as many dimensions are left as there are."""
    inputs = WorldInput(str(world))
    said = {"writer": "grammar", "embedder": "words", "thin_words": 0, "dimensions": 4096, "group": 30} | said
    return build(inputs, recipe_for(inputs, **said), out, spread=spread)


@pytest.fixture(scope="module")
def diverse(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return built(folder, tmp_path_factory.mktemp("diverse") / "out")


@pytest.fixture(scope="module")
def same(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return built(folder, tmp_path_factory.mktemp("same") / "out", bundles="same")


def test_every_question_is_sound_findable_and_out_of_reach_of_any_one_source(diverse: Finished):
    world = load_world(diverse.folder / "world")
    assert len(world.questions) == diverse.questions >= 10
    for question in world.questions:
        about = world.about({lookup.subject for lookups in question.plan for lookup in lookups})
        assert is_sound(world, question)
        assert searched(world, question) is not None
        assert answer_from(about, question) in question.answers
        assert len({world.document(key).source for key in question.supporting}) > 1
        for source in ("web", "news", "arxiv", "kg"):
            own = [document for document in about if document.source == source]
            assert answer_from(own, question) not in question.answers


def test_the_arm_to_compare_with_needs_several_documents_of_one_source(same: Finished):
    world = load_world(same.folder / "world")
    assert same.questions >= 10
    for question in world.questions:
        assert len(question.supporting) > 1
        assert len({world.document(key).source for key in question.supporting}) == 1
        assert is_sound(world, question)


def test_the_list_and_the_world_ask_the_same_in_the_same_order(diverse: Finished):
    listed = read_dataset(diverse.folder / "questions.jsonl", "cairn").questions
    world = load_world(diverse.folder / "world")
    assert [(q.id, q.question, q.answers) for q in listed] == [(q.id, q.question, q.answers) for q in world.questions]
    rows = lines(diverse.folder / "questions.jsonl")
    assert [len(row["sources"]) for row in rows] == sorted(len(row["sources"]) for row in rows)


def test_another_seed_gives_another_world(folder: Path, diverse: Finished, tmp_path: Path):
    """What the same one gives is in the next test."""
    other = built(folder, tmp_path / "other", seed=8)
    assert lines(other.folder / "questions.jsonl") != lines(diverse.folder / "questions.jsonl")


@pytest.mark.parametrize("on", ON)
def test_a_build_that_others_share_is_the_same_to_the_byte(on: On, folder: Path, diverse: Finished, tmp_path: Path):
    with Spread(workers=2, on=on) as others:
        there = built(folder, tmp_path / "there", others)
    kept = [path.relative_to(there.folder) for path in there.folder.rglob("*") if path.suffix in (".jsonl", ".npy")]
    assert {str(path) for path in kept} > {"unique.jsonl", "alone.jsonl", "found.jsonl", "reduced.npy"}
    for path in kept:
        assert (there.folder / path).read_bytes() == (diverse.folder / path).read_bytes(), path
    assert [(one.name, one.dropped, one.figures) for one in there.steps] == [
        (one.name, one.dropped, one.figures) for one in diverse.steps
    ]


def test_a_worker_that_finds_another_world_says_so(folder: Path):
    which = Which(WorldInput(str(folder)).anywhere, "another", diverse=True)
    with pytest.raises(SetupError, match="give every machine the same one"):
        check_list(which, "alone", [])


def test_a_bundle_of_nothing_that_is_linked_gives_no_question(folder: Path):
    world = load_world(folder)
    silent = [document.id for document in world.documents if not document.states][:3]
    bundle = Bundle(id="b", documents=tuple(silent), sources=("web",), group=0)
    assert not Grammar(world, seed=0).write(bundle, each=9, sources=1)


def test_two_people_of_one_name_are_not_compared():
    """An answer may be a name without its profession, which would name both."""

    def compared(*labels: str) -> list[Question]:
        documents = [
            Document(
                id=f"web-{at}", source="web", title=label, text=f"{label} was born in {1940 + at}.", url="",
                states=(Stated(subject=label, relation="birth_year", values=(str(1940 + at),)),),
            )
            for at, label in enumerate(labels)
        ]  # fmt: skip
        bundle = Bundle(id="b", documents=tuple(one.id for one in documents), sources=("web",), group=0)
        return Grammar(World.of("w", documents), seed=0).write(bundle, each=9, sources=1)

    assert not compared("the farmer Zimben Dritik", "the singer Zimben Dritik")
    (question,) = compared("the farmer Zimben Dritik", "the singer Zimben Orlo")
    assert question.type == "comparison"


def candidate_of(world: World, **changes: object) -> tuple[ExactFilters, Candidate]:
    """A chain of two, as the filters see it."""
    question = next(q for q in world.questions if q.type == "chain2").model_copy(update=changes)
    found = Candidate(
        id="q", question="?", answers=question.answers, type="chain2", bundle="b",
        supporting=question.supporting, sources=("web",), plan=question,
    )  # fmt: skip
    return ExactFilters(world, diverse=True), found


@pytest.fixture(scope="module")
def questioned() -> World:
    from train.world.shards import make_world

    return make_world(3, split="train", people=60, mix={"chain1": 0.2, "chain2": 0.8}, questions=20)


def test_a_question_that_its_documents_do_not_settle_is_dropped(questioned: World):
    filters, found = candidate_of(questioned)
    assert filters.together(found) == ""
    assert "do not give the answer" in filters.together(found.model_copy(update={"supporting": found.supporting[:1]}))


def test_a_question_of_one_document_is_dropped(questioned: World):
    chain: Question = next(q for q in questioned.questions if q.type == "chain1")
    filters, found = candidate_of(questioned)
    easy = found.model_copy(update={"plan": chain, "supporting": chain.supporting})
    assert "one document alone" in filters.alone(easy)


def test_a_build_of_which_nothing_is_left_says_where_it_was_dropped(folder: Path, tmp_path: Path):
    inputs = WorldInput(str(folder))
    steps = Steps(Folder(tmp_path / "out"), lambda step, done, total: None)
    steps.end("alone", Made(5, 0, {"one document alone gives the answer": 5}), began=0)
    with pytest.raises(
        SetupError, match=r"no question is left: in 'alone', 5 were dropped, most often because one doc"
    ):
        finished(steps, recipe_for(inputs), inputs, [], {})


def test_there_is_no_grammar_for_other_documents_and_no_build_of_no_world(folder: Path, tmp_path: Path):
    with pytest.raises(SetupError, match="is no world"):
        WorldInput(str(tmp_path))
    with pytest.raises(SetupError, match="holds no finished build of a little world: make one with cairn data build"):
        read_built(tmp_path)


def test_a_build_gives_its_questions_in_order_and_again_from_the_first(diverse: Finished):
    made = read_built(diverse.folder)
    listed = [row["id"] for row in lines(diverse.folder / "questions.jsonl")]
    assert len(made) == len(listed)
    taken = [q.id for world in made.worlds(2, len(listed)) for q in world.questions]
    assert taken == [*listed[2:], *listed[:2]]


@pytest.mark.slow
def test_a_world_of_several_parts_is_bundled_and_questioned_part_by_part(tmp_path: Path):
    build_world(2, split="train", size=1920, questions=0, out=tmp_path / "wide", name="wide")
    done = built(tmp_path / "wide", tmp_path / "out")
    rows = lines(done.folder / "questions.jsonl")
    parts = [{key.split("-")[1].replace("known", "0") for key in row["supporting"]} for row in rows]
    assert all(len(part) == 1 for part in parts)
    assert {part for one in parts for part in one} == {"0", "1"}
    worlds = list(read_built(done.folder).worlds(0, len(rows)))
    assert [q.id for world in worlds for q in world.questions] == [row["id"] for row in rows]
    for world in worlds:
        assert all(world.document(key) for question in world.questions for key in question.supporting)


def test_words_weigh_what_few_documents_share_more():
    docs = WorldInput("test-v2").documents()[:200]
    (vectors,) = embedder("words", docs)([[doc.whole for doc in docs[:2]]])
    assert vectors.shape == (2, 4096)
    assert vectors.min() >= 0
