"""Each published form is read for what it is. The files hold invented content in the published shapes."""

import json
from pathlib import Path

import pytest

from agent.sources.questions import GoldQuestion
from train.evaluation.datasets import FORMATS, passage_id, read_dataset

FILES = Path(__file__).parents[3] / "fixtures" / "datasets"
HARBOUR = passage_id("Tarn Harbour", "Tarn Harbour is the harbour of Tarn. It was built by Ilse Marn.")
MARN = passage_id("Ilse Marn", "Ilse Marn was an engineer. She was born in Dell in 1871.")
GOLD = {"supporting": (HARBOUR, MARN), "titles": ("Tarn Harbour", "Ilse Marn")}
BORN = "Where was the builder of Tarn Harbour born?"

FIRSTS = {
    "nq-open.jsonl": ("nq", 2, {"id": "nq-1", "answers": ("Ilse Marn", "I. Marn")}),
    "efficientqa.jsonl": ("nq", 1, {"answers": ("Ilse Marn", "ilse marn the elder")}),
    "dpr-nq.csv": ("nq", 2, {"question": "who built the harbour of tarn", "answers": ("Ilse Marn", "Marn's firm")}),
    "triviaqa-unfiltered.json": (
        "triviaqa",
        2,
        {"id": "tc_1", "answers": ("Tarn", "Tarn (town)", "Tarn Town", "tarn town")},
    ),
    "popqa.tsv": ("popqa", 2, {"id": "71", "answers": ("engineer", "builder of"), "type": "occupation", "hops": 1}),
    "hotpotqa.json": (
        "hotpotqa",
        2,
        {"id": "5a01", "question": BORN, "answers": ("Dell",), "hops": 2, "type": "bridge", **GOLD},
    ),
    "hotpotqa-hub.json": ("hotpotqa", 1, {"id": "5a01", "question": BORN, "answers": ("Dell",), **GOLD}),
    "2wiki/dev.json": (
        "2wikimultihopqa",
        2,
        {"id": "13f0", "answers": ("Dell", "Dell-under-Tarn", "Deller"), "type": "compositional", **GOLD},
    ),
    "musique.jsonl": (
        "musique",
        2,
        {"id": "2hop__482757_12019", "answers": ("Dell", "Dell, Orlen"), "hops": 2, "type": "2hop", **GOLD},
    ),
    "morehopqa.json": ("morehopqa", 1, {"id": "5a01_1", "answers": ("l",), "hops": 3, "type": "Symbolic", **GOLD}),
    "bamboogle.csv": ("bamboogle", 2, {"id": "bamboogle-1", "answers": ("Oda Lint",)}),
    "frames.tsv": (
        "frames",
        2,
        {
            "id": "frames-0",
            "question": 'How many years older than Tarn Harbour was its builder, to the nearest "year"?',
            "answers": ("30",),
            "titles": ("Tarn Harbour", "Ilse Marn (engineer)"),
            "type": "Numerical reasoning | Multiple constraints",
        },
    ),
    "flashrag.jsonl": ("flashrag", 2, {"id": "test_0", "question": BORN, "answers": ("Dell",), **GOLD}),
    "mmlu.csv": (
        "choice",
        2,
        {"answers": ("A sheltered port",), "options": ("A lake", "A pier", "A sheltered port", "A mast")},
    ),
    "mmlu-hub.jsonl": ("choice", 1, {"answers": ("Tarn",), "type": "geography"}),
    "mmlu-pro.jsonl": ("choice", 1, {"id": "70", "answers": ("Tarn",), "type": "geography"}),
    "arc.jsonl": ("choice", 2, {"id": "ARC_1", "answers": ("The moon",), "options": ("The wind", "The moon", "Fish")}),
    "arc-hub.jsonl": (
        "choice",
        1,
        {"answers": ("The moon",), "question": "What makes tides? Options: (A) The wind (B) The moon"},
    ),
    "commonsenseqa.jsonl": ("choice", 1, {"id": "1afa", "answers": ("harbour",)}),
    "medqa.jsonl": ("choice", 1, {"answers": ("Tarn",), "options": ("Dell", "Tarn")}),
    "own.jsonl": ("cairn", 2, {"id": "1", "answers": ("Dell",), "supporting": ("p1",), "hops": 1}),
}


@pytest.mark.parametrize("name", FIRSTS)
def test_a_published_file_is_known_by_its_content_and_read_whole(name: str):
    form, size, expected = FIRSTS[name]
    found = read_dataset(FILES / name)
    assert (found.name, len(found.questions)) == (form, size)
    first = found.questions[0].model_dump()
    assert {key: first[key] for key in expected} == expected
    assert all(q.dataset == ("" if form == "cairn" else form) for q in found.questions)


@pytest.mark.parametrize("name", FIRSTS)
def test_naming_the_form_gives_the_same(name: str):
    assert read_dataset(FILES / name, FIRSTS[name][0]).questions == read_dataset(FILES / name).questions


def test_every_form_has_a_file_that_is_tested():
    assert {form for form, _, _ in FIRSTS.values()} == set(FORMATS)


def test_what_musique_calls_unanswerable_has_no_answer_and_no_gold():
    question = read_dataset(FILES / "musique.jsonl").questions[1]
    assert question == GoldQuestion(
        id="2hop__482757_12020",
        question="Where did the builder of Tarn Harbour die?",
        unanswerable=True,
        answers=(),
        hops=2,
        type="2hop",
        dataset="musique",
    )


def test_without_the_file_of_aliases_the_published_answer_stands_alone(tmp_path: Path):
    (tmp_path / "dev.json").write_bytes((FILES / "2wiki/dev.json").read_bytes())
    assert read_dataset(tmp_path / "dev.json").questions[0].answers == ("Dell",)


def test_a_human_answer_of_triviaqa_is_right_as_well():
    assert read_dataset(FILES / "triviaqa-unfiltered.json").questions[1].answers == ("Twelve", "12", "a dozen")


def test_gold_that_is_only_partly_there_is_known_by_title_alone(tmp_path: Path):
    """HotpotQA's fullwiki files hold what was retrieved: what is missing there must not pass for not needed."""
    rows = json.loads((FILES / "hotpotqa.json").read_text(encoding="utf-8"))
    del rows[0]["context"][1]
    (tmp_path / "fullwiki.json").write_text(json.dumps(rows), encoding="utf-8")
    question = read_dataset(tmp_path / "fullwiki.json").questions[0]
    assert (question.supporting, question.titles) == ((), ("Tarn Harbour", "Ilse Marn"))


def test_an_option_that_is_a_mere_sign_is_answered_by_its_letter(tmp_path: Path):
    (tmp_path / "signs.csv").write_text("Which sign is a sum?,-,+,B\n", encoding="utf-8")
    question = read_dataset(tmp_path / "signs.csv").questions[0]
    assert (question.options, question.answers) == (("-", "+"), ("B",))
