"""The steps by themselves: what is left out, what is put together, in which order, and what is refused with a fix."""

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CorpusError, SetupError
from agent.sources.questions import GoldQuestion
from tests.train.data.made import recipe_for, write_docs
from tests.train.data.scripted import topics
from train.data.bundles import bundled
from train.data.documents import check_sources, read_documents, without_thin
from train.data.duplicates import shingles, signatures, without_near_duplicates
from train.data.finish import as_question, ordered
from train.data.folder import Array, Folder, Step
from train.data.inputs import Files
from train.data.prompts import read_answer, read_written, write_task
from train.data.recipe import DataRecipe, Kind
from train.data.records import Candidate, Doc, Leaf
from train.data.vectors import unit
from train.evaluation.measure import measure_answer

ROOT = Path(__file__).parents[3]
TEXT = "The council of Trieste voted on a new harbour wall that will keep the old town dry when the sea is high."


def doc(key: str, text: str = TEXT, source: str = "news") -> Doc:
    return Doc(id=key, source=source, text=text)


def quiet(done: int, total: int) -> None:
    """Shows nothing."""


def duplicates_of(docs: Sequence[Doc], similar: float = 0.8) -> dict[str, str]:
    pytest.importorskip("datasketch")
    _, duplicates = without_near_duplicates(docs, similar=similar, size=3, permutations=128, seed=0, show=quiet)
    return {one.id: one.of for one in duplicates}


def test_of_documents_that_say_nearly_the_same_the_first_stays():
    docs = [
        doc("a"),
        doc("b", "Something else entirely stands in this one, word for word."),
        doc("c", f"{TEXT} Indeed."),
    ]
    assert duplicates_of(docs) == {"c": "a"}
    assert duplicates_of(docs[::-1]) == {"a": "c"}


def test_of_many_documents_each_is_compared_as_itself():
    docs = [
        doc(f"d{number}", f"{number} stands here, {number * number} there, and nothing else.") for number in range(600)
    ]
    assert duplicates_of([*docs, doc("again", docs[300].text)]) == {"again": "d300"}


def test_documents_with_words_but_no_runs_in_common_are_no_duplicates():
    assert duplicates_of([doc("a"), doc("b", " ".join(sorted(TEXT.split())))]) == {}


@pytest.mark.parametrize("similar", [0.6, 0.8, 0.95])
def test_nearly_all_are_found_that_are_alike_enough(similar: float):
    docs: list[Doc] = []
    for number in range(100):
        said = [f"w{number}x{place}" for place in range(300)]
        changed = 5 + int((1 - similar) * 2 * number)
        docs += [doc(f"a{number}", " ".join(said)), doc(f"b{number}", " ".join([*said[:-changed], "more"]))]
    pytest.importorskip("datasketch")
    signed = signatures([one.whole for one in docs], size=3, permutations=128, seed=0)
    alike = {f"b{n}": f"a{n}" for n in range(100) if signed[2 * n].jaccard(signed[2 * n + 1]) >= similar}
    found = duplicates_of(docs, similar)
    assert len(alike) > 50
    assert found.items() <= alike.items()
    assert len(found) >= 0.99 * len(alike)


def test_the_bound_decides_what_is_alike():
    half = doc("b", " ".join([*TEXT.split()[:14], "but", "none", "could", "say", "what", "it", "would", "cost"]))
    assert duplicates_of([doc("a"), half], 0.9) == {}
    assert duplicates_of([doc("a"), half], 0.3) == {"b": "a"}
    assert duplicates_of([doc("a"), doc("b"), doc("c", f"{TEXT} Indeed.")], 1.0) == {"b": "a"}


def test_the_figures_of_an_earlier_build_are_read_under_their_previous_name():
    step = {"name": "reading", "of": "documents", "taken": 2, "given": 1, "gives": "documents"}
    assert Step.model_validate(step | {"told": {"of news": 1.0}}).figures == {"of news": 1.0}


def test_a_text_shorter_than_a_run_is_one_run():
    assert shingles("two words", 3) == {"two words"}
    assert shingles("", 3) == {""}
    assert shingles("one two three four", 3) == {"one two three", "two three four"}


def test_thin_documents_are_left_out_and_counted():
    kept, dropped = without_thin([doc("a"), doc("b", "Two words.")], 5)
    assert [one.id for one in kept] == ["a"]
    assert dropped == {"fewer than 5 words": 1}


def test_one_source_only_is_refused_with_what_is_missing():
    docs = [doc("a"), doc("b")]
    with pytest.raises(
        SetupError, match=r"all 2 documents are of the source 'news'.*add --docs OTHER=FILE.*--bundles same"
    ):
        check_sources(docs, diverse=True, after="Now")
    check_sources(docs, diverse=False, after="Now")


def test_too_few_documents_are_refused():
    with pytest.raises(SetupError, match="0 documents are left, and a bundle needs at least two"):
        check_sources([], diverse=True, after="Now")
    with pytest.raises(SetupError, match="1 document is left"):
        check_sources([doc("a")], diverse=True, after="Now")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no documents in"),
        ("\n\n", "no documents in"),
        ("nonsense\n", "line 1: not valid JSON"),
        ('{"id": "a", "title": "T"}\n', "line 1: the field 'text' is missing"),
        ('{"id": "a", "text": "T"}\n', "line 1: it does not say its source: write --docs NAME=FILE"),
        ('{"id": "a", "text": "T", "source": "s"}\n' * 2, "line 2: the id 'a' occurs twice"),
    ],
)
def test_a_corpus_that_cannot_be_used_says_where_and_why(tmp_path: Path, content: str, why: str):
    file = tmp_path / "docs.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=why.replace("'", ".")):
        read_documents([("", file)])


def test_the_name_of_a_file_counts_more_than_what_its_lines_say(tmp_path: Path):
    file = tmp_path / "docs.jsonl"
    file.write_text('{"id": 1, "text": "T", "source": "s", "date": "2025-04-01"}\n', encoding="utf-8")
    assert read_documents([("", file)])[0].source == "s"
    assert read_documents([("web", file)])[0].source == "web"


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"gone.jsonl cannot be read"):
        read_documents([("web", tmp_path / "gone.jsonl")])


# Clusters and bundles


@given(
    rows=st.integers(1, 40),
    most=st.integers(2, 5),
    seed=st.integers(0, 3),
    same=st.booleans(),
)
def test_a_group_is_split_into_clusters_that_hold_each_row_once(rows: int, most: int, seed: int, same: bool):
    pytest.importorskip("sklearn")
    from train.data.clusters import groups, split

    drawn = np.random.default_rng(seed).normal(size=(rows, 4))
    points = np.asarray(drawn * (0 if same else 1), np.float32)
    made = groups(points, size=10)
    assert sorted(row for group in made for row in group) == list(range(rows))
    leaves = [leaf for group in made for leaf in split(group, points, most=most, seed=seed)]
    assert sorted(row for leaf in leaves for row in leaf) == list(range(rows))
    assert max(map(len, leaves)) <= most


def vectors_of(docs: Sequence[Doc], seed: int) -> dict[str, Array]:
    made = unit(np.asarray(np.random.default_rng(seed).normal(size=(len(docs), 3)), np.float32))
    return {one.id: vector for one, vector in zip(docs, made, strict=True)}


def bundles_recipe(**said: object) -> DataRecipe:
    return DataRecipe.model_validate({"name": "test", "documents": {}, "embedder": "test", **said})


@given(
    sources=st.lists(st.sampled_from(["web", "news", "arxiv"]), min_size=1, max_size=30),
    sizes=st.lists(st.integers(1, 4), min_size=30, max_size=30),
    reach=st.floats(-1, 1),
    seed=st.integers(0, 5),
)
def test_bundles_have_two_to_four_documents_of_several_sources_each_in_one_of_them(
    sources: list[str], sizes: list[int], reach: float, seed: int
):
    docs = [doc(f"d{number}", source=source) for number, source in enumerate(sources)]
    leaves: list[Leaf] = []
    left = [one.id for one in docs]
    for size in sizes:
        if left:
            leaves.append(Leaf(group=0, documents=tuple(left[:size])))
            left = left[size:]
    held = {one.id: one for one in docs}
    done = bundled(leaves, held, vectors_of(docs, seed), bundles_recipe(reach=reach))
    taken = [key for bundle in done.bundles for key in bundle.documents]
    assert len(taken) == len(set(taken))
    assert {*taken, *done.dropped} == set(held)
    assert not set(taken) & set(done.dropped)
    for bundle in done.bundles:
        assert 2 <= len(bundle.documents) <= 4
        assert {held[key].source for key in bundle.documents} == set(bundle.sources)
        assert len(bundle.sources) > 1
    diverse = sum(len({held[key].source for key in leaf.documents}) > 1 for leaf in leaves)
    assert sum(not bundle.joined for bundle in done.bundles) == diverse
    if reach >= 1:
        assert all(not bundle.joined for bundle in done.bundles)


def test_a_cluster_of_one_source_takes_in_the_nearest_of_another_one():
    docs = [doc("a"), doc("b"), doc("far", source="web"), doc("near", source="web")]
    vectors = unit(np.array([[1, 0], [1, 0.1], [0.4, 1], [1, 0.3]], np.float32))
    held = {one.id: vector for one, vector in zip(docs, vectors, strict=True)}
    leaves = [
        Leaf(group=0, documents=("a", "b")),
        Leaf(group=0, documents=("far",)),
        Leaf(group=1, documents=("near",)),
    ]
    done = bundled(leaves, {one.id: one for one in docs}, held, bundles_recipe())
    assert {frozenset(bundle.documents) for bundle in done.bundles} == {frozenset({"a", "b", "near"})}
    assert set(done.dropped) == {"far"}


def test_documents_of_different_parts_never_meet():
    docs = [doc("a"), Doc(id="b", source="web", text="b", part=1)]
    held = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    leaves = [Leaf(group=0, documents=("a",)), Leaf(group=1, documents=("b",))]
    assert not bundled(leaves, {one.id: one for one in docs}, held, bundles_recipe()).bundles


def test_bundles_to_compare_with_are_of_one_source_each():
    docs = [doc("a"), doc("b"), doc("c", source="web")]
    leaf = Leaf(group=0, documents=("a", "b", "c"))
    done = bundled([leaf], {one.id: one for one in docs}, vectors_of(docs, 0), bundles_recipe(bundles="same"))
    assert [bundle.documents for bundle in done.bundles] == [("a", "b")]
    assert set(done.dropped) == {"c"}


# What a model writes


DOCS = [doc("a"), doc("b", source="arxiv"), doc("c")]


@given(st.text(max_size=80) | st.text(max_size=40).map(lambda text: f'{{"question": "{text}", "documents": [1, 2]}}'))
def test_whatever_a_model_says_is_read_or_refused_in_a_sentence(reply: str):
    for kind in ("factual", "choice"):
        said = None
        with suppress(ValueError):
            said = read_written(reply, DOCS, kind, sources=2)
        assert said is None or said.skip or said.answers
    with suppress(ValueError):
        assert read_answer(reply) in (reply.strip().strip("\"'`*").strip(), "")


@pytest.mark.parametrize(
    ("reply", "kind", "why"),
    [
        ('{"question": "Who?", "answer": "Ann", "documents": [1]}', "factual", "at least two documents"),
        ('{"question": "Who?", "answer": "Ann", "documents": [1, 3]}', "factual", "at least 2 source"),
        ('{"question": "Who?", "answer": "Ann", "documents": [1, 9]}', "factual", "have the numbers 1 to 3"),
        ('{"question": "Who?", "answer": "", "documents": [1, 2]}', "factual", "an answer is empty"),
        ('{"question": "Is it?", "answer": "Yes.", "documents": [1, 2]}', "factual", "could be guessed"),
        ('{"question": "Is Ann it?", "answer": "Ann", "documents": [1, 2]}', "factual", "stands in the question"),
        ('{"question": "Who wrote the article?", "answer": "Ann", "documents": [1, 2]}', "causal", "'the article'"),
        ('{"question": "Who?", "options": ["a", "b"], "right": ["a"], "documents": [1, 2]}', "choice", "4 to 6"),
        (
            '{"question": "Who?", "options": ["a", "b", "c", "A!"], "right": ["b"], "documents": [1, 2]}',
            "choice",
            "different",
        ),
        (
            '{"question": "Who?", "options": ["x", "y", "z", "q"], "right": ["w"], "documents": [1, 2]}',
            "choice",
            "not among",
        ),
        (
            '{"question": "Who?", "options": ["w", "x", "y", "z"], "right": ["z", "y", "x", "w"], "documents": [1, 2]}',
            "choice",
            "not all of them",
        ),
    ],
)
def test_a_question_that_is_no_good_goes_back_with_what_is_wrong(reply: str, kind: Kind, why: str):
    with pytest.raises(ValueError, match=why):
        read_written(reply, DOCS, kind, sources=2)


@pytest.mark.parametrize(("number", "taken"), [(3, False), (4, True), (6, True), (7, False)])
def test_as_many_options_are_taken_as_the_prompt_and_the_page_say(number: int, taken: bool):
    reply = json.dumps({"question": "Who?", "options": list("abcdefg"[:number]), "right": ["a"], "documents": [1, 2]})
    with nullcontext() if taken else pytest.raises(ValueError, match="must be 4 to 6 different texts"):
        assert len(read_written(reply, DOCS, "choice", sources=2).options) == number
    assert "4 to 6 options" in write_task("choice")
    assert "4 to 6 different options" in (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def test_a_choice_that_has_several_right_options_is_right_where_all_are_named():
    candidate = Candidate(
        id="q", question="Which towns? Options: Dell, Tarn, Brell, Marn.", answers=("Dell", "Brell"), type="choice",
        bundle="b", supporting=("a",), sources=("news",), options=("Dell", "Tarn", "Brell", "Marn"),
    )  # fmt: skip
    question = GoldQuestion.model_validate(as_question(candidate, {"a": doc("a")}))
    assert measure_answer(question, "Dell")["em"] == 0
    assert measure_answer(question, "A and C")["em"] == 1


def test_a_fence_around_the_object_and_other_ways_to_write_the_answer_are_taken():
    reply = '```json\n{"question": "Who?", "answer": "Ann", "aliases": ["A. Lee"], "documents": [2, 1]}\n```'
    said = read_written(reply, DOCS, "factual", sources=2)
    assert said.answers == ("Ann", "A. Lee")
    assert read_written('{"skip": "nothing in common"}', DOCS, "factual", sources=2).skip


def test_an_unknown_answer_is_none():
    assert read_answer("UNKNOWN.") == read_answer(" unknown ") == ""
    assert read_answer('"Ann"') == "Ann"


# The order, and the folder


@given(
    rows=st.lists(st.tuples(st.integers(1, 4), st.integers(2, 4), st.sampled_from(["factual", "causal", "choice"]))),
    seed=st.integers(0, 9),
)
def test_questions_come_from_few_sources_to_many_and_none_is_lost(rows: list[tuple[int, int, str]], seed: int):
    found = [
        Candidate(
            id=f"q{number}",
            question="?",
            answers=("a",),
            type=kind,
            bundle="b",
            supporting=tuple(f"d{n}" for n in range(documents)),
            sources=tuple(f"s{n}" for n in range(sources)),
        )
        for number, (sources, documents, kind) in enumerate(rows)
    ]
    made = ordered(found, seed=seed)
    assert sorted(one.id for one in made) == sorted(one.id for one in found)
    sizes = [(len(one.sources), len(one.supporting)) for one in made]
    assert sizes == sorted(sizes)
    assert made == ordered(found, seed=seed)


def test_a_folder_that_was_damaged_is_named(tmp_path: Path):
    (tmp_path / "steps.json").write_text('{"reading": 5}', encoding="utf-8")
    with pytest.raises(SetupError, match=r"steps.json is damaged; choose another --out"):
        Folder(tmp_path)


def test_documents_are_hashed_so_that_another_corpus_is_another_build(tmp_path: Path):
    files = write_docs(topics(), tmp_path)
    before = recipe_for(files).documents
    (tmp_path / "news.jsonl").write_text("{}", encoding="utf-8")
    assert before != recipe_for(files).documents


def test_files_of_one_name_from_several_folders_are_each_known_by_their_content(tmp_path: Path):
    paths = [tmp_path / folder / "docs.jsonl" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name, encoding="utf-8")
    hashes = Files([("web", path) for path in paths]).hashes()
    assert list(hashes) == [f"web {path.as_posix()}" for path in paths]
    assert len(set(hashes.values())) == 2
    assert list(Files([("web", paths[0]), ("news", paths[1])]).hashes()) == ["web docs.jsonl", "news docs.jsonl"]
