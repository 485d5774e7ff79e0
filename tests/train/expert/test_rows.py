"""What the expert makes of questions: it searches the real index, says what it found, cites it, and answers."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.checks.claims import derived_claims
from agent.errors import CorpusError, SetupError
from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.corpus.source import CorpusSource
from agent.trace import Planned, PlanRejected, Trace
from tests.train.expert.case import (
    BRIDGE,
    COMPARED,
    DESCRIBED,
    OTHER_SPAN,
    PARTS,
    QUESTIONS,
    SPAN,
    TRIPLES,
    YES,
    library,
    write,
)
from train.distill.rows import TrainingRow
from train.expert.library import Library
from train.expert.reading import SolvedQuestion
from train.expert.relations import DocumentWithRelations
from train.expert.rows import (
    RowOptions,
    RowsReport,
    choices,
    hold_out,
    read_described,
    read_records,
    rows_of,
    with_gold,
    without,
)

NEVER_UNKNOWN: dict[str, Any] = {"unanswerable": 0.0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return library(tmp_path_factory.mktemp("corpus"))


def made(
    corpus: Library,
    questions: Sequence[dict[str, Any]] = (),
    documents: Sequence[dict[str, Any]] = (),
    **wanted: Any,
) -> tuple[list[TrainingRow], RowsReport]:
    report = RowsReport()
    how = RowOptions(**{**NEVER_UNKNOWN, **wanted})
    records = [SolvedQuestion.model_validate(one) for one in questions]
    described = [DocumentWithRelations.model_validate(one) for one in documents]
    chosen = choices(with_gold(records, corpus), described, corpus, how, report)
    return list(rows_of(chosen, corpus, how, report)), report


def said(row: TrainingRow) -> str:
    """All that the policy wrote."""
    return "\n".join(piece.text for piece in row.pieces if piece.by == "policy")


def answer(row: TrainingRow) -> str:
    return said(row).rpartition("<answer>")[2].removesuffix("</answer>")


def replayed(row: TrainingRow, index: Path) -> Trace:
    """The trace of the loop where a policy says what the expert wrote."""
    policy = ScriptedPolicy([piece.text for piece in row.pieces if piece.by == "policy"])
    agent = Agent(policy, protocol_named(row.protocol), {"all": CorpusSource.open(index)})
    return asyncio.run(agent.run(agent.new_trace(row.question)))


def test_triples_become_hops_that_are_named_cited_and_searched_for(corpus: Library):
    (row,), _ = made(corpus, [TRIPLES], protocols=("cairn",))
    assert "- Aurora Falls, director: Lina Orr [" in said(row)
    assert "- Lina Orr, place of birth: Trieste [" in said(row)
    assert answer(row) == "Trieste"


@pytest.mark.parametrize("protocol", ["cairn", "evidence", "multisearch"])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one["id"])
def test_every_form_of_question_gives_its_answer_in_each_protocol(
    corpus: Library, question: dict[str, Any], protocol: str
):
    rows, report = made(corpus, [question], protocols=(protocol,))
    assert [answer(row) for row in rows] == question["answers"], report.dropped
    assert rows[0].pieces[0].by == "prompt"
    assert {piece.by for piece in rows[0].pieces[1:]} == {"policy", "environment"}


def test_what_is_cited_stands_in_the_passage_with_that_number(corpus: Library):
    rows, _ = made(corpus, QUESTIONS, protocols=("cairn",))
    for row in rows:
        shown = "\n".join(piece.text for piece in row.pieces if piece.by == "environment")
        lines = {int(line[1 : line.index("]")]): line for line in shown.splitlines() if line.startswith("[")}
        for claim in derived_claims(said(row)):
            if claim.cites and ": " in claim.text:
                assert claim.text.rpartition(": ")[2] in lines[claim.cites[0]], claim


def test_two_things_are_compared_by_what_was_found(corpus: Library):
    (row,), _ = made(corpus, [COMPARED], protocols=("cairn",))
    assert (
        "Aurora Falls: 12 May 1944. Night Harbour: 3 March 1950. 1944 and 1950: 1944 is earlier, Aurora Falls."
        in said(row)
    )
    assert said(row).count("<search>") >= 2


def test_sub_questions_are_searched_one_after_the_other(corpus: Library):
    (row,), _ = made(corpus, [PARTS], protocols=("cairn",))
    assert said(row).index("Jan Vesely [") < said(row).index("Brno [")


def test_a_passage_that_names_the_next_one_is_a_bridge(corpus: Library):
    (row,), _ = made(corpus, [BRIDGE], protocols=("cairn",))
    assert "Lina Orr [" in said(row)
    assert answer(row) == "Graz"


def test_yes_and_no_stand_on_what_both_passages_say(corpus: Library):
    (row,), _ = made(corpus, [YES], protocols=("cairn",))
    assert said(row).count("an Italian director") == 2
    assert answer(row) == "yes"


def test_what_no_search_finds_is_not_known(corpus: Library):
    rows, report = made(corpus, [SPAN], protocols=("cairn",), unanswerable=1.0)
    assert [answer(row) for row in rows] == ["I do not know"]
    assert "Missing." in said(rows[0])
    assert report.unknown == 1
    shown = "".join(piece.text for piece in rows[0].pieces if piece.by == "environment")
    assert "Bergen" not in shown


def test_relations_become_questions_follow_ups_and_facts(corpus: Library):
    rows, _ = made(corpus, documents=[DESCRIBED], protocols=("cairn",), several=5)
    kinds = {row.type for row in rows}
    assert {"one hop", "follow-up", "several"} <= kinds
    (several,) = [row for row in rows if row.type == "several"]
    assert said(several).count("\n- ") == 3
    follow_up = next(row for row in rows if row.type == "follow-up")
    assert "she" in follow_up.question.casefold()
    assert "<question>" in said(follow_up)


def test_several_questions_about_one_passage_come_at_once(corpus: Library):
    rows, _ = made(corpus, [SPAN, OTHER_SPAN], protocols=("cairn",), several=5)
    (several,) = [row for row in rows if row.type == "several"]
    assert "\nA: " in said(several)
    assert "\nB: " in said(several)
    assert set(answer(several).split("; ")) == {"Bergen", "Night Harbour"}


def test_new_questions_are_combined_from_triples(corpus: Library):
    rows, _ = made(corpus, [TRIPLES, COMPARED], protocols=("cairn",), combine=10)
    assert {"one hop", "two hops", "compositional"} <= {row.type for row in rows}


def test_passages_are_found_for_questions_that_name_none(corpus: Library):
    bare: list[dict[str, Any]] = [
        {**one, "supporting": [], "evidences": [], "decomposition": []} for one in (SPAN, BRIDGE, YES)
    ]
    rows, report = made(corpus, bare, protocols=("cairn",))
    assert {answer(row) for row in rows} == {"Bergen", "Graz", "yes"}, report.dropped
    nowhere = {"id": "x", "question": "Who painted the Blue Stair?", "answers": ["Odo Klemm"]}
    rows, report = made(corpus, [nowhere])
    assert not rows
    assert list(report.dropped) == ["no passage is named, and none that the question leads to holds the answer"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"supporting": ["nowhere"]}, "a gold passage is not among the documents"),
        ({"answers": ["Lisbon"]}, "no sentence of the gold passages holds the answer"),
        ({"question": "Where? " * 60}, "the question is too long"),
    ],
)
def test_a_question_that_gives_no_row_is_counted_with_its_reason(corpus: Library, change: dict[str, Any], why: str):
    rows, report = made(corpus, [{**SPAN, **change}])
    assert not rows
    assert report.dropped == {why: 1}


def test_the_same_seed_gives_the_same_rows_and_another_one_others(corpus: Library):
    first, again, other = (made(corpus, QUESTIONS, seed=seed, combine=3)[0] for seed in (1, 1, 2))
    assert first == again
    assert [row.trace for row in first] != [row.trace for row in other]


def test_what_is_written_keeps_to_the_protocol(corpus: Library):
    for name in ("cairn", "evidence", "multisearch"):
        protocol = protocol_named(name)
        rows, _ = made(corpus, QUESTIONS, protocols=(name,))
        for row in rows:
            policy = "".join(piece.text for piece in row.pieces if piece.by != "prompt")
            assert policy.count(protocol.opening("answer")) == 1
            assert policy.endswith(protocol.closing("answer"))


@pytest.mark.parametrize("protocol", ["cairn", "evidence", "multisearch"])
def test_the_loop_shows_what_the_rows_show_where_a_policy_writes_what_the_expert_wrote(tmp_path: Path, protocol: str):
    corpus = library(tmp_path)
    quoted = {**COMPARED, "id": "quoted", "question": COMPARED["question"].replace("Night Harbour", '"Night Harbour"')}
    combined, _ = made(corpus, [*QUESTIONS, quoted], [DESCRIBED], protocols=(protocol,), combine=8)
    assert len(combined) > len(QUESTIONS)
    for row in combined:
        trace = replayed(row, tmp_path / "index")
        shown = [segment.text for segment in trace.segments if segment.by == "environment"]
        assert shown == [piece.text for piece in row.pieces if piece.by == "environment"], row.trace
        assert trace.answer == answer(row)


@pytest.mark.parametrize(("protocol", "most"), [("cairn", 8), ("evidence", 1), ("multisearch", 3)])
def test_no_plan_holds_more_queries_than_the_protocol_takes(tmp_path: Path, protocol: str, most: int):
    corpus = library(tmp_path)
    rows, _ = made(corpus, [SPAN, OTHER_SPAN], protocols=(protocol,), several=5)
    (several,) = [row for row in rows if row.type == "several"]
    steps = replayed(several, tmp_path / "index").steps
    first = next(step for step in steps if isinstance(step, Planned))
    assert [node.query for node in first.plan.nodes] == [
        "Where does Ada Tross live?", "For which film is Ada Tross known?"
    ][:most]  # fmt: skip
    assert not any(isinstance(step, PlanRejected) for step in steps)


def test_held_out_questions_share_no_passage_with_the_others(corpus: Library):
    records = [SolvedQuestion.model_validate(one) for one in QUESTIONS]
    kept, others = hold_out(records, 2, corpus, seed=1)
    assert len(kept) == 2
    assert not {p for one in kept for p in one.supporting} & {p for one in others for p in one.supporting}
    with pytest.raises(SetupError, match="leaves none"):
        hold_out(records, len(records), corpus, seed=1)


def test_a_question_whose_passages_no_one_names_is_not_held_out_whatever_else_is_known_of_it(corpus: Library):
    records = [SolvedQuestion.model_validate(one) for one in (TRIPLES, PARTS, BRIDGE, SPAN)]
    records[:2] = [one.model_copy(update={"supporting": ()}) for one in records[:2]]
    for seed in range(6):
        kept, others = hold_out(records, 1, corpus, seed=seed)
        assert {one.id for one in (*kept, *others)} == {"bridge", "span"}
    with pytest.raises(SetupError, match="--hold-out 2 of 2 questions with known passages"):
        hold_out(records, 2, corpus, seed=1)


def test_questions_of_another_list_are_left_out_whatever_their_ids_are(corpus: Library):
    records = [SolvedQuestion.model_validate(one) for one in (SPAN, YES)]
    same = [SolvedQuestion.model_validate({"id": "n", "question": "where does Ada Tross live", "answers": ["Bergen"]})]
    assert [one.id for one in without(records, same, corpus)] == ["yes"]


def test_a_document_and_a_part_of_it_are_one_and_so_is_a_question_under_two_ids(corpus: Library):
    lines = [
        {"id": "a", "question": "Who directed Aurora Falls?", "answers": ["Lina Orr"], "supporting": ["falls"]},
        {
            "id": "b",
            "question": "Which director made Aurora Falls?",
            "answers": ["Lina Orr"],
            "supporting": ["falls#1"],
        },
        {"id": "c", "question": "who directed Aurora Falls", "answers": ["Lina Orr"], "supporting": ["orr"]},
        {"id": "d", "question": "Where does Ada Tross live?", "answers": ["Bergen"], "supporting": ["tross#2"]},
    ]
    records = [SolvedQuestion.model_validate(line) for line in lines]
    for seed in range(6):
        held, left = hold_out(records, 1, corpus, seed=seed)
        expected = {"a": ["d"], "b": ["c", "d"], "c": ["b", "d"], "d": ["a", "b", "c"]}[held[0].id]
        assert [one.id for one in left] == expected
    described = [DocumentWithRelations.model_validate(DESCRIBED)]
    assert not choices([], described, corpus, RowOptions(), RowsReport(), records[3:])
    assert choices([], described, corpus, RowOptions(), RowsReport())


def test_a_line_that_is_no_question_is_named(tmp_path: Path):
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "Who?"}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"q\.jsonl, line 1"):
        read_records(tmp_path / "q.jsonl")
    with pytest.raises(CorpusError, match="cannot be read"):
        read_described(tmp_path / "none.jsonl")


def test_a_protocol_that_the_expert_does_not_know_is_a_sentence(corpus: Library):
    with pytest.raises(SetupError, match="the expert does not write plans as kg has them"):
        made(corpus, [SPAN], protocols=("kg",))


def test_the_command_writes_rows_and_a_report(tmp_path: Path, corpus: Library, capsys: pytest.CaptureFixture[str]):
    from agent.cli import run

    library(tmp_path)
    arguments = ["data", "trajectories", "--corpus", str(tmp_path / "index"), "--unanswerable", "0"]
    questions = ["--questions", str(write(tmp_path / "q.jsonl", QUESTIONS))]
    assert run([*arguments, *questions, "--out", str(tmp_path / "rows.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == len(QUESTIONS)
    assert len((tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == len(QUESTIONS)
    assert run([*arguments, "--out", str(tmp_path / "none.jsonl")]) == 1
    assert "no questions: name --questions" in capsys.readouterr().err


@pytest.mark.parametrize("named", [True, False])
def test_no_row_is_about_a_document_of_a_held_out_question_also_where_it_names_none(tmp_path: Path, named: bool):
    about = {"falls": ("Who directed Aurora Falls?", "Lina Orr"), "tross": ("Where does Ada Tross live?", "Bergen")}
    others = {
        "falls": ("Who composed the music of Aurora Falls?", "Jan Vesely"),
        "tross": ("Who is Ada Tross?", "Italian"),
    }
    lines = [
        {"id": f"{id} {n}", "question": question, "answers": [answer], **({"supporting": [id]} if named else {})}
        for n, questions in enumerate((about, others))
        for id, (question, answer) in questions.items()
    ]
    corpus = library(tmp_path)
    records = with_gold([SolvedQuestion.model_validate(line) for line in lines], corpus)
    for seed in range(6):
        held, left = hold_out(records, 1, corpus, seed=seed)
        assert left
        assert {one.id.split()[0] for one in left}.isdisjoint({one.id.split()[0] for one in held})
