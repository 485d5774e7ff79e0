"""A name in a question put as what another article says of it: questions of two and three hops, and their rows."""

import json
import random
from pathlib import Path

import pytest

from tests.train.expert.test_extract import ARTICLES
from tests.train.expert.test_rows import said
from train.expert.composed import nested
from train.expert.extract import described
from train.expert.library import Library
from train.expert.plan import PlannedQuestion
from train.expert.reading import SolvedQuestion
from train.expert.rows import RowOptions, RowsReport, choices, rows_of

BERGEN = "Bergen is a city between seven mountains. The theatre there was designed by Einar Oscar Schou in 1909."
NORWAY = "The longest river is the Glomma, and Norway had 5.6 million inhabitants in 2024."
TITLES = {**ARTICLES, "Bergen": BERGEN, "Norway": NORWAY}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder: Path = tmp_path_factory.mktemp("nested")
    lines = [{"id": title, "title": title, "text": text} for title, text in TITLES.items()]
    (folder / "articles.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return Library(folder)


def record(question: str, answer: str, passage: str) -> SolvedQuestion:
    return SolvedQuestion(id=question, question=question, answers=(answer,), supporting=(passage,))


def made(corpus: Library, *records: SolvedQuestion, seed: int = 0) -> list[PlannedQuestion]:
    return list(nested(records, list(described(corpus.passages())), corpus.passage, random.Random(seed)))


THEATRE = record("Who designed the theatre in Bergen in 1909?", "Einar Oscar Schou", "Bergen")
RIVER = record("What is the longest river of Norway?", "the Glomma", "Norway")


def test_a_name_is_put_as_what_another_article_says_of_it(corpus: Library):
    questions = {one.question for seed in range(20) for one in made(corpus, THEATRE, seed=seed)}
    assert "Who designed the theatre in the birthplace of Ane Vik in 1909?" in questions
    three = [one for one in questions if "Grey Tide" in one or "Long Road" in one]
    assert three
    assert all("Bergen" not in one for one in questions)


def test_the_first_hops_come_before_the_question_with_the_name(corpus: Library):
    question = next(
        one for seed in range(20) for one in made(corpus, THEATRE, seed=seed) if one.kind.endswith("three hops")
    )
    director, born, last = question.plan.facts
    assert (director.relation, director.value) == ("director", "Ane Vik")
    assert (born.relation, born.value, born.about) == ("place of birth", "Bergen", "Ane Vik")
    assert (last.query, last.about) == (THEATRE.question, "Bergen")
    assert len(question.plan.stages) == 3


def test_a_nationality_leads_to_its_country(corpus: Library):
    questions = [one for seed in range(20) for one in made(corpus, RIVER, seed=seed)]
    assert {one.plan.facts[-2].value for one in questions} == {"Norway"}
    assert any("country of citizenship" in [fact.relation for fact in one.plan.facts] for one in questions)


@pytest.mark.parametrize(
    "question",
    [
        "Who designed the Bergen theatre?",  # part of a longer name
        "Whose theatre is Bergen's pride?",
        "Bergen has which theatre?",
        "Who designed a theatre?",
    ],
)
def test_a_name_that_does_not_stand_by_itself_stays(corpus: Library, question: str):
    assert not made(corpus, record(question, "Einar Oscar Schou", "Bergen"))


def test_what_gives_the_answer_away_is_not_put_as_a_phrase(corpus: Library):
    assert not made(corpus, record("What is the city in Bergen called?", "Bergen", "Bergen"))


def test_the_expert_searches_for_the_name_and_then_with_the_question(corpus: Library):
    wanted, report = RowOptions(protocols=("cairn",), unanswerable=0.0, combine=100), RowsReport()
    chosen = choices([THEATRE], list(described(corpus.passages())), corpus, wanted, report)
    rows = [row for row in rows_of(chosen, corpus, wanted, report) if row.type.startswith("nested")]
    assert rows
    assert all("Einar Oscar Schou</answer>" in said(row) for row in rows)
    assert all("place of birth: Bergen [" in said(row) for row in rows)
