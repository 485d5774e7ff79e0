import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.questions import GoldQuestion
from agent.trace import Answered, Stopped
from tests.conftest import ANSWER_TURN, PLAN_TURN, answer
from tests.train.evaluation.traces import HARBOUR, MARN, QUESTION, passage, trace_of, whole
from train.evaluation.answer import AgentAnswer, Citation
from train.evaluation.gold import GoldBook
from train.evaluation.measure import METRICS, measure, measure_answer, measure_reply
from train.evaluation.normalisations import DEFAULT, NORMALISATIONS

JUDGED = {"snr_information_judged", "snr_merge_judged"}

ON_PAPER: dict[str, float | None] = {
    "em": 1.0,
    "f1": 1.0,
    "cover": 1.0,
    **dict.fromkeys(("em_none", "f1_none", "cover_none", "cover_anywhere"), 1.0),
    **dict.fromkeys(("em_unicode", "f1_unicode", "cover_unicode", "f1_hotpotqa"), 1.0),
    **dict.fromkeys(("em_triviaqa", "f1_triviaqa", "cover_triviaqa"), 1.0),
    "choice": None,
    "choice_f1": None,
    "judged": None,
    "answer_grounded": 1.0,
    "empty": 0.0,
    "abstained": 0.0,
    "abstained_rightly": None,
    "abstained_wrongly": 0.0,
    "abstention_precision": None,
    "searches": 4,
    "rounds": 2,
    "failed_searches": 1,
    "duplicate_searches": 1,
    "empty_searches": 1,
    "skipped_searches": 1,
    "rejected_plans": 0,
    "passages": 3,
    "gold_found": 1.0,
    "all_gold": 1.0,
    "gold_retrieved": 1.0,
    "gold_in_corpus": None,
    "claims": 4,
    "citations": 2,
    "citation_precision": 1 / 2,
    "citation_recall": 1 / 2,
    "citations_valid": 3 / 4,
    "evidence_verbatim": 1 / 4,
    "evidence_support": 2 / 4,
    "evidence_uncited": 1 / 4,
    "snr_query": (11 / 19 + 1) / 2,
    "snr_information": (11 / 19 + 1) / 2,
    "snr_merge": 6 / 11,
    "answer_closed": 1.0,
    "forced": 0.0,
    **dict.fromkeys((f"forced_{limit}" for limit in ("rounds", "searches", "passages", "context")), 0.0),
    **dict.fromkeys((f"forced_{limit}" for limit in ("policy_tokens", "seconds", "credits", "user")), 0.0),
    "bad_format": 0.0,
    "prompt_tokens": 10,
    "policy_tokens": 80,
    "environment_tokens": 0,
    "answer_tokens": 2,
    "seconds": 2.0,
    "seconds_policy": 1.5,
    "seconds_search": 0.5,
    "first_token": 0.1,
    "usd": 0.01,
    "credits": 2,
}


@pytest.mark.parametrize("name", ON_PAPER)
def test_each_figure_of_a_trace_is_what_one_works_out_on_paper(name: str):
    expected = ON_PAPER[name]
    assert measure(QUESTION, whole())[name] == (None if expected is None else pytest.approx(expected))


def test_what_is_measured_is_exactly_what_is_defined():
    assert set(ON_PAPER) | JUDGED == set(METRICS)
    assert set(measure(QUESTION, whole())) | JUDGED == set(METRICS)
    assert set(measure(QUESTION, answer([PLAN_TURN, ANSWER_TURN]))) | JUDGED == set(METRICS)
    alone = measure_reply(QUESTION, AgentAnswer(text="Dell"))
    assert set(alone) <= set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_every_figure_is_defined_in_a_sentence(name: str):
    metric = METRICS[name]
    assert metric.label
    assert metric.definition.endswith(".")
    assert metric.better in ("higher", "lower", "none")


def test_figures_can_be_kept_as_json():
    assert json.loads(json.dumps(measure(QUESTION, whole()))) == measure(QUESTION, whole())


sayings = st.one_of(st.text(max_size=20), st.sampled_from(["Dell", "I do not know", "(B)", "yes", "Dell, Tarn", ""]))
questions = st.builds(
    GoldQuestion,
    id=st.just("q"),
    question=st.just("Where?"),
    unanswerable=st.just(True),
    answers=st.sampled_from([(), ("Dell",), ("yes", "Yes it is"), ("Unknown",)]),
    options=st.sampled_from([(), ("Tarn", "Dell"), ("yes", "no", "Unknown")]),
    supporting=st.sampled_from([(), ("marn",)]),
)


@given(question=questions, unanswerable=st.booleans(), said=sayings)
def test_every_share_is_between_0_and_1(question: GoldQuestion, unanswerable: bool, said: str):
    changed = question.model_copy(update={"unanswerable": unanswerable})
    figures = measure_answer(changed, said, [Citation(id="marn"), Citation(url="https://x.test")])
    for name, value in figures.items():
        if METRICS[name].is_share and value is not None:
            assert 0 <= value <= 1, name
    assert (figures["em"] or 0.0) <= (figures["f1"] or 0.0)
    assert (figures["em"] or 0.0) <= (figures["cover"] or 0.0)


def test_not_knowing_is_right_where_the_list_calls_that_the_answer():
    question = GoldQuestion(id="q", question="Who?", answers=("unknown",), unanswerable=True)
    for said in ("unknown", "I do not know."):
        found = measure_answer(question, said)
        assert (found["em"], found["abstained_rightly"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("gold", "said", "right", "wrongly", "rightly", "precision"),
    [
        ((), "I do not know.", 1.0, None, 1.0, 1.0),
        ((), "Dell", 0.0, None, 0.0, None),
        ((), "", 0.0, None, 0.0, None),
        (("Dell",), "I do not know.", 0.0, 1.0, None, 0.0),
        (("Dell",), "Dell", 1.0, 0.0, None, None),
        (("Unknown",), "Unknown", 1.0, 0.0, None, None),
    ],
)
def test_abstaining_is_right_exactly_where_no_answer_exists(
    gold: tuple[str, ...],
    said: str,
    right: float,
    wrongly: float | None,
    rightly: float | None,
    precision: float | None,
):
    question = GoldQuestion(id="q", question="Who?", answers=gold, unanswerable=not gold)
    found = measure_answer(question, said)
    assert (found["em"], found["f1"], found["cover"], found["f1_hotpotqa"]) == (right,) * 4
    assert (found["abstained_wrongly"], found["abstained_rightly"], found["abstention_precision"]) == (
        wrongly,
        rightly,
        precision,
    )


@pytest.mark.parametrize(
    ("said", "em", "choice", "share"), [("(B)", 1, 1, 1), ("Tarn", 1, 1, 1), ("A", 0, 0, 0), ("A, B", 0, 0, 2 / 3)]
)
def test_a_choice_is_scored_by_letter_and_in_words(said: str, em: int, choice: int, share: float):
    question = GoldQuestion(id="q", question="Which?", answers=("Tarn",), options=("Dell", "Tarn"))
    found = measure_answer(question, said)
    assert (found["em"], found["choice"], found["choice_f1"]) == pytest.approx((em, choice, share))


@pytest.mark.parametrize(
    ("said", "em", "f1", "cover"),
    [
        ("A", 0, 2 / 3, 0),
        ("Dell", 0, 2 / 3, 0),
        ("A and C", 1, 1, 1),
        ("Brell, Dell", 1, 1, 1),
        ("A, B, C", 0, 4 / 5, 1),
        ("B", 0, 0, 0),
        ("I do not know", 0, 0, 0),
    ],
)
def test_where_several_options_are_right_one_of_them_is_not_the_answer(said: str, em: int, f1: float, cover: int):
    question = GoldQuestion(id="q", question="Which?", answers=("Dell", "Brell"), options=("Dell", "Tarn", "Brell"))
    found = measure_answer(question, said)
    for name in NORMALISATIONS:
        end = "" if name == DEFAULT else f"_{name}"
        assert (found[f"em{end}"], found[f"f1{end}"], found[f"cover{end}"]) == pytest.approx((em, f1, cover))
    assert (found["em"], found["f1"]) == (found["choice"], found["choice_f1"])
    assert (found["f1_hotpotqa"], found["cover_anywhere"]) == (found["f1"], found["cover"])


def test_one_right_option_under_two_names_is_one_answer():
    question = GoldQuestion(id="q", question="Which?", answers=("Dell", "dell"), options=("Dell", "Tarn"))
    assert measure_answer(question, "Dell")["em"] == 1


@pytest.mark.parametrize(
    ("stopped", "closed", "forced", "bad"),
    [
        (Stopped(reason="answered"), 1.0, None, 0.0),
        (Stopped(reason="forced", budget="rounds"), 0.0, "rounds", 0.0),
        (Stopped(reason="forced", budget="user"), 0.0, "user", 0.0),
        (Stopped(reason="bad_format"), 0.0, None, 1.0),
    ],
)
def test_how_a_rollout_ended_is_named_by_its_budget(stopped: Stopped, closed: float, forced: str | None, bad: float):
    found = measure(QUESTION, trace_of(Answered(text="Dell"), stopped))
    assert (found["answer_closed"], found["bad_format"], found["forced"]) == (closed, bad, float(forced is not None))
    named = [name for name, value in found.items() if name.startswith("forced_") and value]
    assert named == ([f"forced_{forced}"] if forced else [])


def test_what_the_product_says_itself_was_not_closed_by_the_policy():
    found = measure(QUESTION, trace_of(Answered(text="Ask elsewhere.", by="loop"), Stopped(reason="answered")))
    assert found["answer_closed"] is None


def test_without_gold_passages_nothing_is_said_of_them():
    question = QUESTION.model_copy(update={"supporting": ()})
    found = measure(question, whole())
    assert [found[name] for name in ("gold_found", "all_gold", "citation_precision", "citation_recall")] == [None] * 4
    assert found["snr_information"] == pytest.approx(1 / 2)


def test_two_parts_of_one_gold_passage_are_one_that_is_cited():
    found = measure_answer(QUESTION, "Dell", [Citation(id="marn#1"), Citation(id="marn#2"), Citation(id="ferry")])
    assert (found["citations"], found["citation_recall"]) == (3, 0.5)
    assert found["citation_precision"] == pytest.approx(2 / 3)


def test_an_agent_without_a_trace_is_measured_by_its_answer_its_citations_and_what_it_reports():
    book = GoldBook.of([QUESTION], [HARBOUR, passage("marn", MARN.text, url="https://www.tarn.test/Marn/")])
    said = AgentAnswer(
        text="Dell",
        citations=(Citation(url="http://tarn.test/Marn#born", text=MARN.text), Citation(url="https://else.test/")),
        completion_tokens=40,
        seconds=1.5,
    )
    found = measure_reply(QUESTION, said, book=book)
    assert (found["em"], found["citations"], found["citation_precision"], found["citation_recall"]) == (
        1.0,
        2,
        0.5,
        0.5,
    )
    assert (found["gold_in_corpus"], found["answer_grounded"]) == (1.0, 1.0)
    assert (found["policy_tokens"], found["seconds"], found["first_token"], found["searches"]) == (40, 1.5, None, None)


@pytest.mark.parametrize(
    ("said", "grounded"), [("Dell", 1.0), ("Brell, at noon", 0.0), ("Rome", 0.0), ("I do not know", None), ("", None)]
)
def test_an_answer_is_grounded_where_it_stands_in_what_was_read(said: str, grounded: float | None):
    assert measure(QUESTION, trace_of(Answered(text=said), shown=(MARN, HARBOUR)))["answer_grounded"] == grounded


def test_yes_and_no_are_grounded_nowhere():
    question = QUESTION.model_copy(update={"answers": ("yes",)})
    found: dict[str, Any] = measure(question, trace_of(Answered(text="yes"), shown=(MARN,)))
    assert found["answer_grounded"] is None
