"""The benchmark of retrieval: its metrics by hand, its intervals, its phrasings, and a small run of the whole."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import SetupError
from lab.benchmarks.checks.phrasings import keywords, phrasings
from lab.benchmarks.retrieval import METRICS, interval, measure, scores_of
from tests.agent.sources.corpus.encoding import MINILM, needs_model


def test_the_metrics_are_those_that_one_counts_by_hand():
    shown = ["a", "x", "b#0-90", *(f"y{n}" for n in range(8)), "c"]
    all_5, all_10, recall_5, recall_10, recall_20, mrr = scores_of(["b", "c"], shown)
    assert (all_5, all_10) == (0, 0)
    assert (recall_5, recall_10, recall_20) == (0.5, 0.5, 1)
    assert mrr == pytest.approx(1 / 3)
    assert scores_of(["a", "b"], shown) == [1, 1, 1, 1, 1, 1]
    assert scores_of(["z"], shown) == [0] * len(METRICS)
    assert scores_of(["z"], []) == [0] * len(METRICS)


def test_an_interval_holds_its_mean_and_shrinks_with_more_questions():
    few, many = np.array([0.0, 1.0] * 10), np.array([0.0, 1.0] * 1000)
    narrow, wide = interval([many]), interval([few])
    assert narrow.low < narrow.mean == 0.5 < narrow.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 5
    assert 0.2 < wide.low < 0.4, "two standard errors of 0.11"
    assert interval([few]) == interval([few]), "the same scores give the same interval"


def test_each_set_counts_the_same_however_many_questions_it_has():
    found = interval([np.ones(10), np.zeros(1000)])
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("question", "statement", "words"),
    [
        ("Who directed the film Aurora Falls?", "directed the film Aurora Falls", "directed film aurora falls"),
        ("When was Lina Orr born?", "Lina Orr born", "lina orr born"),
        ("In which city is the Louvre?", "city is the Louvre", "city louvre"),
        ("Are Rome and Oslo both capitals?", "Rome and Oslo both capitals", "rome oslo capitals"),
        (
            "The river near Trieste is called what?",
            "The river near Trieste is called what",
            "river near trieste called",
        ),
        ("Who is it?", "it", "who is it"),
    ],
)
def test_a_question_has_three_phrasings(question: str, statement: str, words: str):
    assert phrasings(question)[:2] == (question, statement)
    assert keywords(question) == phrasings(question)[2] == words


@given(st.text())
def test_no_phrasing_of_a_question_is_empty(question: str):
    for phrase in phrasings(question):
        assert phrase.strip() or not question.strip()


def small_set(folder: Path, name: str, topics: Sequence[str]) -> None:
    (folder / name).mkdir(parents=True)
    corpus = [
        {"id": f"{name}-{n}", "title": topic, "text": f"This is about {topic}."} for n, topic in enumerate(topics)
    ]
    rows = [
        {"id": f"q{n}", "question": f"What is {topic}?", "answers": ["x"], "supporting": [f"{name}-{n}"]}
        for n, topic in enumerate(topics)
    ]
    for file, lines in (("corpus.jsonl", corpus), ("questions.jsonl", rows)):
        (folder / name / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@needs_model
def test_a_small_run_measures_every_mode_and_a_second_one_takes_its_indices_from_the_cache(tmp_path: Path):
    small_set(tmp_path / "data", "one", ["glaciers", "bread", "violins", "harbours"])
    small_set(tmp_path / "data", "two", ["volcanoes", "chess", "orchids"])
    shown: list[tuple[str, int, int]] = []
    first = measure(
        tmp_path / "data",
        cache=tmp_path / "cache",
        sets=("one", "two"),
        progress=lambda what, done, total: shown.append((what, done, total)),
    )
    assert first.modes == ("bm25", "dense", "hybrid", "bm25_multi", "dense_multi", "hybrid_multi")
    assert all(first.mean[mode]["mrr"].mean == 1 for mode in first.modes)
    assert not first.holds, "what is perfect everywhere beats nothing"
    assert ("searching two", 3, 3) in shown
    plain = first.as_dict()
    assert plain["model"] == MINILM
    assert plain["mean_all_gold_10"]["hybrid"] == 1
    assert plain["sets"]["one"]["modes"]["dense"]["recall_5_low"] == 1
    assert plain["differences"]["hybrid - bm25"] == {"mean": 0, "low": 0, "high": 0}
    assert first.sets["one"].index.dense_bytes >= 4 * 384 * 4
    again = measure(tmp_path / "data", cache=tmp_path / "cache", sets=("one", "two"))
    assert again.sets["one"].index == first.sets["one"].index


@needs_model
def test_a_set_that_is_missing_is_named_before_anything_is_done(tmp_path: Path):
    with pytest.raises(SetupError, match=r"there is no question set qa_2wiki_train500 in .*--data DIR"):
        measure(tmp_path, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
