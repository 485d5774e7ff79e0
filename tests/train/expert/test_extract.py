"""Relations read off articles, and questions about them: over two articles, compared, several at once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from tests.train.expert.test_rows import said
from train.expert.extract import described
from train.expert.library import Library
from train.expert.nations import country_of, same_value
from train.expert.plan import Gold
from train.expert.reading import SolvedQuestion, date_order, plans_of
from train.expert.relations import DocumentWithRelations
from train.expert.rows import RowOptions, RowsReport, choices, rows_of

ARTICLES: dict[str, str] = {
    "Grey Tide (film)": "Grey Tide is a 1961 Norwegian drama film directed by Ane Vik and produced by Olav Moe. It did well.",
    "Last Ferry": "Last Ferry is a 1974 Danish comedy film written and directed by Per Holm. It was shot in Aarhus.",
    "Long Road": "Long Road is a 1988 Norwegian film directed by Ane Vik.",
    "Ane Vik": "Ane Vik (4 May 1920 – 2 June 1999) was a Norwegian film director. She was born in Bergen and died in Oslo. "
    "She was the daughter of Tor Vik and Liv Aas.",
    "Per Holm": "Per Holm (born 9 July 1931 in Odense) is a Danish director. He studied at the University of Copenhagen.",
    "Tor Vik": "Tor Vik (1 January 1890 – 5 May 1950) was a Norwegian painter.",
    "Stille": "Stille is a village in the municipality of Nord, Norway.",
    "Blue Hour": "Blue Hour is a song by Danish singer Ida Lund, released in 1999.",
    "Nordlys": "Nordlys is a Norwegian rock band formed in 1984 in Tromsø.",
    "Sydvest": "Sydvest is a Danish jazz band formed in 1992.",
}
DATES = {"Ane Vik": "4 May 1920", "Per Holm": "9 July 1931", "Tor Vik": "1 January 1890"}


def documents(articles: dict[str, str] = ARTICLES) -> list[Gold]:
    return [Gold(id=f"d{at}", title=title, text=text) for at, (title, text) in enumerate(articles.items())]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("articles")
    lines = [document.model_dump() for document in documents()]
    (folder / "articles.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return Library(folder)


def known() -> dict[str, dict[str, str]]:
    return {one.title: {r.relation: r.object for r in one.relations} for one in described(documents())}


def rows(corpus: Library, kept: Sequence[SolvedQuestion] = (), **wanted: Any) -> dict[str, list[str]]:
    """What the policy writes, by kind of question."""
    report = RowsReport()
    how = RowOptions(protocols=("cairn",), unanswerable=0.0, **wanted)
    chosen = choices([], list(described(corpus.passages())), corpus, how, report, kept)
    by_kind: dict[str, list[str]] = {}
    for row in rows_of(chosen, corpus, how, report):
        by_kind.setdefault(row.type, []).append(f"{row.question}\n{said(row)}")
    return by_kind


@pytest.mark.parametrize(
    ("title", "relations"),
    [
        ("Grey Tide", {"country of origin": "Norwegian", "publication date": "1961", "director": "Ane Vik"}),
        ("Last Ferry", {"country of origin": "Danish", "publication date": "1974", "director": "Per Holm"}),
        ("Ane Vik", {"date of birth": "4 May 1920", "date of death": "2 June 1999", "place of birth": "Bergen"}),
        ("Ane Vik", {"place of death": "Oslo", "father": "Tor Vik", "mother": "Liv Aas"}),
        ("Per Holm", {"place of birth": "Odense", "educated at": "University of Copenhagen"}),
        ("Stille", {"country": "Norway"}),
        ("Blue Hour", {"performer": "Ida Lund"}),
        ("Nordlys", {"inception": "1984"}),
    ],
)
def test_relations_are_read_off_introductions(title: str, relations: dict[str, str]):
    assert relations.items() <= known()[title].items()


def test_every_relation_names_a_sentence_that_holds_its_object():
    for document in described(documents()):
        assert all(one.object in document.sentences[one.sentences[0]] for one in document.relations)


def test_a_film_has_no_relation_of_a_person_and_a_person_none_of_a_film():
    assert not known()["Grey Tide"].keys() & {"date of birth", "place of birth", "father"}
    assert not known()["Ane Vik"].keys() & {"director", "publication date", "country of origin"}


def test_articles_of_one_title_are_left_out():
    twice = {**ARTICLES, "Ane Vik (painter)": "Ane Vik (born 1 May 1961) is a Norwegian painter."}
    assert "Ane Vik" not in {one.title for one in described(documents(twice))}


def test_hops_lead_from_one_article_to_another(corpus: Library):
    made = rows(corpus, combine=50)
    assert any("director: Ane Vik" in text and "place of birth: Bergen" in text for text in made["two hops"])
    assert any(text.startswith("Where was she born?") for text in made["follow-up"])


def test_two_things_are_compared_by_their_years(corpus: Library):
    made = rows(corpus, combine=100)
    films = made["compared publication date"]
    assert films
    assert all(("is earlier" in text) != ("is later" in text) for text in films)
    for text in films:
        assert text.rpartition(", ")[2].startswith(text.rpartition("<answer>")[2].removesuffix("</answer>"))


def test_several_are_compared_at_once(corpus: Library):
    articles = {
        **ARTICLES, **{f"Ola No{n}": f"Ola No{n} (born 3 May 19{n}) is a Danish actor." for n in range(10, 30)}
    }  # fmt: skip
    found = list(described(documents(articles)))
    how = RowOptions(protocols=("cairn",), several=30)
    questions = [one for plans in choices([], found, corpus, how, RowsReport()) for one in plans]
    compared = [one for one in questions if one.kind == "compared several"]
    assert compared
    for one in compared:
        assert one.question.count("?") == len(one.plan.answer.split("; ")) == len(one.plan.because.splitlines()) > 1
        assert len(one.queries) == 4


def test_what_is_kept_for_an_evaluation_does_not_come_again_in_the_same_words(corpus: Library):
    (question,) = [
        text.partition("\n")[0] for text in rows(corpus, combine=50)["two hops"] if "place of birth: Bergen" in text
    ][:1]
    kept = SolvedQuestion(id="kept", question=question, answers=("Bergen",))
    again = rows(corpus, kept=[kept], combine=50)
    assert all(text.partition("\n")[0] != question for texts in again.values() for text in texts)


def test_documents_of_kept_questions_give_no_row(corpus: Library):
    kept = SolvedQuestion(id="kept", question="?", answers=("x",), supporting=("d3",))
    again = rows(corpus, kept=[kept], combine=50)
    assert not any("place of birth: Bergen" in text for texts in again.values() for text in texts)


@pytest.mark.parametrize(
    ("values", "chosen", "sentence"),
    [
        (("1929", "1926"), 1, "1929 and 1926: 1926 is earlier, B."),
        (("5 May 1929", "June 3, 1926"), 0, "1929 and 1926: 1929 is later, A."),
        (("5 May 1929", "3 June 1929"), 0, "5 May 1929 and 3 June 1929: 5 May 1929 is earlier, A."),
        (("1929", "1929"), 0, ""),
        (("1929", "12 May 1929"), 0, ""),
        (("June 1929", "12 May 1929"), 0, "June 1929 and 12 May 1929: June 1929 is later, A."),
        (("soon", "1929"), 0, ""),
    ],
)
def test_years_stand_beside_each_other(values: tuple[str, str], chosen: int, sentence: str):
    assert date_order(["A", "B"], values, chosen) == sentence


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("Which magazine was started first, Alpha or Beta?", "Alpha", "1844 and 1989: 1844 is earlier, Alpha."),
        ("Which is the younger magazine, Alpha or Beta?", "Beta", "1844 and 1989: 1989 is later, Beta."),
        ("Which magazine was started first, Alpha or Beta?", "Beta", ""),
        ("Which magazine has more readers, Alpha or Beta?", "Alpha", ""),
    ],
)
def test_a_comparison_without_triples_states_its_years_where_they_bear_the_answer_out(
    question: str, answer: str, sentence: str
):
    passages = {
        "a": Gold(id="a", title="Alpha", text="Alpha is a magazine. It was started in 1844 in Boston."),
        "b": Gold(id="b", title="Beta", text="Beta is a magazine that was started in 1989."),
    }
    record = SolvedQuestion(id="q", question=question, answers=(answer,), supporting=("a", "b"))
    assert plans_of(record, lambda passage: passages.get(passage))[0].because == sentence


def test_a_country_and_its_people_are_the_same():
    assert same_value("American", "United States")
    assert same_value("U.S.", "American")
    assert not same_value("Danish", "Norway")
    assert country_of("Atlantis") == "Atlantis"


def test_the_command_writes_documents_for_trajectories(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(document.model_dump()) + "\n" for document in documents()), encoding="utf-8"
    )
    out = tmp_path / "relations.jsonl"
    assert run(["data", "relations", "--corpus", str(tmp_path / "a.jsonl"), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "director" in printed.out
    assert f"documents in {out}" in printed.err
    read = [DocumentWithRelations.model_validate_json(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {one.title for one in read} >= {"Grey Tide", "Ane Vik"}
