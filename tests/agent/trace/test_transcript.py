import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocols import TextProtocol, profile_names, protocol_named, protocol_names
from agent.settings import load_settings
from agent.trace.io import read_traces
from agent.trace.transcript import Transcript, explain, said_by, said_in
from lab.benchmarks.trajectories import documents_in, measure, read, render, renders, results_in
from tests.agent.test_golden_protocols import NAMES, QUESTION, protocol_of, rollout

FIXTURES = Path(__file__).parents[2] / "fixtures" / "trajectories"
GOLDEN = Path(__file__).parents[2] / "golden"
CAIRN = protocol_named("cairn")
SEARCH_R1 = protocol_named("search-r1")
ROUND = (
    '<think>a</think>\n<search> q </search>\n\n<information>Doc 1(Title: "T") x</information>\n\n'
    "<think>b</think>\n<answer> y </answer>"
)


def whole(transcript: Transcript) -> str:
    return "".join(part.text for part in transcript.parts)


# Whose text is what


def test_the_environment_is_known_by_its_wrapper():
    read_now = explain(ROUND, protocol=SEARCH_R1)
    assert [(part.by, part.role) for part in read_now.parts] == [
        ("policy", "thought"),
        ("policy", "search"),
        ("environment", "information"),
        ("policy", "thought"),
        ("policy", "answer"),
    ]
    assert (read_now.verdict, read_now.answer, whole(read_now)) == ("well-formed", "y", ROUND)
    assert [part.trained for part in read_now.parts] == [True, True, False, True, True]


def test_another_white_space_around_a_wrapper_is_reported():
    other = explain(ROUND.replace("\n\n<information>", "\n<information>"), protocol=SEARCH_R1)
    part = other.parts[2]
    assert (other.verdict, part.by, part.why) == (
        "repaired",
        "environment",
        "the white space of the wrapper differs",
    )


@pytest.mark.parametrize("name", NAMES)
def test_authors_that_are_guessed_are_those_of_the_rollout(name: str):
    """But for white space at the seam, and for tokens without a text, which end a turn."""
    trace, protocol = rollout(name), protocol_of(name)
    known = explain(said_in(trace), protocol=protocol)
    text = "".join(text for _, text in said_in(trace))
    guessed = explain(text, protocol=protocol, question=QUESTION)
    assert whole(guessed) == text
    said = [part.role for part in known.parts if part.role not in ("frame", "space")]
    assert [part.role for part in guessed.parts if part.role not in ("frame", "space")] == said


@pytest.mark.parametrize("name", NAMES)
def test_what_is_explained_is_what_the_loop_recorded(name: str):
    trace, protocol = rollout(name), protocol_of(name)
    known = explain(said_in(trace), protocol=protocol)
    planned = [node.query for step in trace.steps if step.kind == "planned" for node in step.plan.nodes]
    assert [node.query for part in known.parts if part.plan for node in part.plan.nodes] == planned
    assert known.answer == trace.answer


# What is wrong with it


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("I think it is Herbert.", "it has no answer"),
        ("<answer></answer>", "its answer is empty"),
        ("<answer>Herbert", "nothing closes its block 'answer'"),
        ("<answer>a</answer><answer>b</answer>", "it has 2 answers"),
        ("<search>A: x (web)</search><answer>a</answer>", "its blocks search, answer do not come"),
    ],
)
def test_a_transcript_that_is_not_well_formed_says_why(text: str, why: str):
    read_now = explain(text, protocol=CAIRN)
    assert read_now.why.startswith(why)
    assert read_now.verdict == "rejected"


def test_a_plan_that_cannot_run_and_unknown_tags_are_reported():
    read_now = explain("<search>A: <b>x</b> (mars)</search>", protocol=CAIRN)
    assert "asks 'mars', which is no source" in read_now.parts[0].why
    assert (read_now.rejected_plans, read_now.unknown_tags) == (1, ("<b>", "</b>"))


def test_json_that_had_to_be_read_leniently_is_repaired():
    text = "<think>a</think><search>{'query': 'x'}</search>\n<result>\nno\n</result>\n<answer>\\boxed{y}</answer>"
    assert explain(text, protocol=protocol_named("kg")).verdict == "repaired"


def test_a_forced_answer_is_not_well_formed():
    (trace,) = read_traces(GOLDEN / "cairn-forced.jsonl")
    read_now = explain(said_in(trace), protocol=CAIRN)
    assert (read_now.why, read_now.answer) == ("its answer was forced", trace.answer)


def test_what_follows_an_assistant_turn_is_the_environments():
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": '<think>t</think>\n<tool_call>\n{"name": "visit", "arguments": {"url": "u"}}\n</tool_call>'},
        {"role": "user", "content": "<tool_response>\nr\n</tool_response>"},
        {"role": "assistant", "content": "<think>t</think>\n<answer>a</answer>"},
    ]  # fmt: skip
    read_now = explain(said_by(messages, protocol=protocol_named("tongyi")), protocol=protocol_named("tongyi"))
    assert read_now.roles == ("thought", "search", "information", "thought", "answer")
    assert (read_now.verdict, read_now.answer) == ("well-formed", "a")


PROTOCOLS = [protocol_named(name) for name in (*protocol_names(), *profile_names())]
MARKS = sorted({mark for protocol in PROTOCOLS for mark in protocol.all_marks})


@given(
    st.lists(st.sampled_from([*MARKS, "A: x (web)", '{"query": "x"}', "\n", " ", "\\boxed{", "}", "<", "a"])).map(
        "".join
    ),
    st.sampled_from(PROTOCOLS),
)
def test_any_text_can_be_explained_and_nothing_of_it_is_lost(text: str, protocol: TextProtocol):
    read_now = explain(text, protocol=protocol)
    assert whole(read_now) == text
    assert read_now.verdict in {"well-formed", "repaired", "rejected"}


# Real outputs


def test_every_real_output_is_read_without_an_exception():
    fits = {fit.format: fit for fit in measure(FIXTURES)}
    assert fits["r1-searcher"].verdicts == {"well-formed": 6}
    assert fits["webdancer"].verdicts == {"well-formed": 1}
    assert fits["react"].verdicts == {"rejected": 3}


def test_recorded_documents_are_rendered_to_the_byte():
    protocol = protocol_named("r1-searcher")
    rows = [json.loads(line) for line in (FIXTURES / "traj_r1searcher" / "cases.jsonl").read_text("utf-8").splitlines()]
    transcripts = {row["id"]: read(row, protocol) for row in rows if "begin_of_documents" in row["raw"]}
    differ = [name for name, transcript in transcripts.items() if not renders(transcript, protocol, documents_in)]
    hidden = [row["id"] for row in rows if "\u200e" in row["raw"]]
    assert len(transcripts) == 5
    assert differ == hidden, "marks that turn the direction are taken out of what strangers wrote, and nothing else is"


def test_search_results_in_a_tool_response_are_taken_apart_and_put_together():
    text = (
        "<tool_response>\nA Google search for 'a' found 2 results:\n\n## Web Results\n1. [T (x)](https://x.org)\n"
        "Date published: Jul 8, 2024\n\nIt is.\n\n2. [U](https://u.org)\n\n\n=======\n"
        "A Google search for 'b' found 1 results:\n\n## Web Results\n1. [V](https://v.org)\n\nIt was.\n</tool_response>"
    )
    tongyi = protocol_named("tongyi")
    found = results_in(text.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>"))
    assert [(query, [passage.title for passage in passages]) for query, passages in found] == [
        ("a", ["T (x)", "U"]),
        ("b", ["V"]),
    ]
    assert render(found, tongyi) == text
    assert results_in("The useful information in https://x.org") == []


def test_passages_of_the_kilt_corpus_are_taken_apart_and_put_together():
    ((_, passages),) = documents_in("(1)Dune (novel)   It is a novel.\n(2)Title: Dune Text:  It is.\n")
    assert [(p.title, p.text) for p in passages] == [
        ("Dune (novel)", "It is a novel."),
        ("", "Title: Dune Text:  It is."),
    ]
    text = render([("", passages)], protocol_named("r1-searcher"))
    assert text == (
        "\n\n<|begin_of_documents|>\n(1)Dune (novel)   It is a novel.\n(2)Title: Dune Text:  It is.\n<|end_of_documents|>\n\n"
    )


def test_the_recorded_data_set_is_rendered_to_the_byte_in_95_of_100_traces():
    data = load_settings().data
    if not list(data.glob("traj_*/cases.jsonl")):
        pytest.skip("the recorded trajectories are not here")
    fits = measure(data)
    shares = {fit.format: (fit.rendered, fit.documents) for fit in fits if fit.documents}
    assert set(shares) == {"r1-searcher", "webdancer"}
    assert shares["r1-searcher"][0] >= 0.95 * shares["r1-searcher"][1] > 100
    assert shares["webdancer"][0] >= 0.8 * shares["webdancer"][1] > 50  # web pages hold more invisible characters
    assert sum(fit.rows for fit in fits) > 400
