import json
import re
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.evidence import Passage
from agent.protocols import TextProtocol, load_protocol, profile_names, protocol_named, protocol_names
from agent.protocols.templates import QueryObservation
from tests.conftest import answer, make_agent

PASSAGE = Passage(id="1", source="web", title="Dune {x}", text="A {novel}.", date="1965-08-01", number=3, node="B")
MINIMAL = (
    'name = "mine"\nprompt = "{question}"\ninstructions = ""\nplan = "queries"\n[tags]\nsearch = "q"\nanswer = "a"\n'
)


def test_cairn_comes_first_among_the_built_in_protocols():
    assert protocol_names() == ["cairn", "multisearch", "dag", "evidence", "reflect", "kg"]


@pytest.mark.parametrize(
    ("name", "prompt", "line"),
    [
        (
            "cairn",
            "cairn\nQuestion: {question}\n",
            "[3] B · web · 1965-08-01 · Dune {x} — A {novel}.",
        ),
        ("multisearch", "multisearch\nQuestion: {question}\n", "[3] web · 1965-08-01 · Dune {x} — A {novel}."),
    ],
)
def test_the_texts_that_a_policy_was_trained_on_stay_byte_for_byte(name: str, prompt: str, line: str):
    protocol = protocol_named(name)
    assert protocol.prompt_text("{question}") == prompt
    assert protocol.show(PASSAGE) == line
    assert protocol.wrap(["x", "y"]) == "\n<information>\nx\ny\n</information>\n"
    assert protocol.wrap([]) == "\n<information>\nNothing was found.\n</information>\n"
    assert protocol.stop_texts == ("</search>", "</answer>")


def test_a_passage_without_title_or_date_leaves_no_gap():
    bare = PASSAGE.model_copy(update={"title": "", "date": ""})
    assert protocol_named("cairn").show(bare) == "[3] B · web · A {novel}."


@pytest.mark.parametrize(
    ("name", "roles", "well"),
    [
        ("cairn", "thought search information merge evidence answer", True),
        ("cairn", "answer", True),
        ("cairn", "search information answer", False),
        ("multisearch", "thought search information merge thought search information merge answer", True),
        ("multisearch", "evidence answer", False),
    ],
)
def test_what_is_well_formed_is_data(name: str, roles: str, well: bool):
    assert bool(re.search(protocol_named(name).well_formed, roles + " ")) == well


def test_the_policy_may_not_write_what_only_the_environment_says():
    written = set(protocol_named("cairn").policy_marks)
    assert written == {"thought", "search", "merge", "evidence", "answer", "fill", "restated"}


@pytest.mark.parametrize(("prompt", "opened"), [("{question}\n<think>", "thought"), ("{question}", None)])
def test_a_prompt_may_open_the_first_block(prompt: str, opened: str | None):
    assert protocol_named("cairn").model_copy(update={"prompt": prompt}).opened == opened


def test_a_first_block_that_the_prompt_opened_is_read_from_inside():
    agent = make_agent(["so</think><answer>x</answer>"])
    protocol = agent.protocol.model_copy(update={"prompt": "{question}\n<think>"})
    trace = answer([], agent=type(agent)(agent.policy, protocol, agent.sources))
    assert [step.kind for step in trace.steps] == ["thought", "answered", "stopped"]


def test_a_user_adds_a_protocol_with_a_file(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL.replace('prompt = "{question}"', 'prompt_file = "p.txt"'), encoding="utf-8")
    (tmp_path / "p.txt").write_text("Ask: {question}", encoding="utf-8")
    protocol = load_protocol(path)
    assert (protocol.prompt, protocol.opening("search"), protocol.stop_texts) == (
        "Ask: {question}",
        "<q>",
        ("</q>", "</a>"),
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("name =", "cannot be used"),
        (MINIMAL.replace("plan =", "plann ="), "there is no key 'plann'; did you mean 'plan'"),
        (MINIMAL.replace('plan = "queries"\n', ""), "the key 'plan' is missing; write it"),
        (MINIMAL.replace('"queries"', '"tree"'), "the key 'plan' must be one of 'lines', 'queries', 'query'"),
        (MINIMAL.replace('prompt = "{question}"', 'prompt_file = "none.txt"'), r"none\.txt"),
        (MINIMAL.replace("search =", "serch ="), "knows no role 'serch'; did you mean 'search'"),
        (MINIMAL.replace('"q"', '["<q>"]'), r"the key 'tags\.search'"),
        (MINIMAL.replace('"q"', '["q", "/q"]'), r"the key 'tags\.search\.open'"),
        (
            MINIMAL.replace("[tags]", 'chat = "qwen"\n[tags]'),
            "there is no chat template 'qwen'; choose from: plain, chatml",
        ),
        (MINIMAL.replace("[tags]", 'deliver = "user"\n[tags]'), "deliver = 'user' needs a chat template; name one"),
        (MINIMAL.replace("queries", "calls"), r"write a table \[tools\.NAME\]"),
        (
            MINIMAL.replace("[tags]", 'passage = "{titel}"\n[tags]'),
            r"passage holds \{titel\}, which means nothing; choose from",
        ),
        (MINIMAL.replace("[tags]", 'each = "{"\n[tags]'), "each is no template"),
        (
            MINIMAL.replace("[tags]", 'wrapper = "<found>{documents}</found>"\n[tags]'),
            r"wrapper shows nothing.*\{passages\}",
        ),
        (MINIMAL.replace("[tags]", 'history = "Earlier: {answer}"\n[tags]'), "history shows no earlier question"),
        (MINIMAL.replace("[tags]", 'separator = ""\n[tags]'), "the key 'separator'"),
        (MINIMAL.replace("[tags]", 'stops = ["merge"]\n[tags]'), "it stops at 'merge', and no tag has that role"),
    ],
)
def test_a_protocol_file_that_cannot_be_used_says_why(tmp_path: Path, content: str, why: str):
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SetupError, match=why):
        load_protocol(path)


def test_an_unknown_protocol_is_answered_with_those_there_are():
    with pytest.raises(SetupError, match="choose from: cairn, multisearch"):
        protocol_named("../cairn")
    with pytest.raises(SetupError, match="no protocol 'Search-R1'; did you mean 'search-r1'"):
        protocol_named("Search-R1")


def test_the_names_of_the_profiles_are_those_of_their_files():
    assert [protocol_named(name).name for name in profile_names()] == profile_names()
    assert not set(profile_names()) & set(protocol_names())


# Chats


def test_a_chat_template_stands_around_what_is_said():
    protocol = protocol_named("research").model_copy(update={"system": "S"})
    assert protocol.prompt_text("q", history=(("a", "b"),)) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    )


def test_only_the_templates_own_marks_are_control_marks():
    protocol = protocol_named("tongyi").model_copy(update={"system": "S <tool_call>"})
    pieces = protocol.prompt_pieces("<tool_call><|im_end|>")
    assert [piece.text for piece in pieces if piece.control] == [
        "<|im_start|>", "<tool_call>", "<|im_end|>", "<|im_start|>", "<|im_end|>", "<|im_start|>",
    ]  # fmt: skip
    assert "<tool_call><|im_end|>" in [piece.text for piece in pieces if not piece.control]


def test_a_model_that_was_not_trained_on_a_profile_gets_what_its_prompt_says():
    assert protocol_named("cairn").rules() == protocol_named("cairn").instructions
    tongyi = protocol_named("tongyi").model_copy(update={"system": "Call tools. Today: {date}"})
    assert tongyi.rules("2026-01-02") == "Call tools. Today: 2026-01-02"
    assert protocol_named("search-r1").model_copy(update={"prompt": "Search. {question}"}).rules() == "Search. "


@pytest.mark.parametrize(("question", "written"), [("who", "who?"), ("who?", "who?")])
def test_a_profile_may_want_a_question_mark(question: str, written: str):
    protocol = protocol_named("search-r1").model_copy(update={"prompt": "Q: {question}\n"})
    assert f"Q: {written}\n" in protocol.prompt_text(question)


# What is found


def test_a_protocol_may_answer_query_by_query():
    protocol = protocol_named("tongyi")
    shown = protocol.show(PASSAGE.model_copy(update={"number": 1, "url": "https://x.org"}))
    assert protocol.observation([QueryObservation("a", (shown,)), QueryObservation("b", ())]) == (
        "<tool_response>\nA Google search for 'a' found 1 results:\n\n## Web Results\n"
        "1. [Dune {x}](https://x.org)\nDate published: 1965-08-01\n\nA {novel}.\n=======\n"
        "A Google search for 'b' found 0 results:\n\n## Web Results\nNothing was found.\n</tool_response>"
    )


def test_each_function_call_of_a_turn_has_a_wrapper_of_its_own_whatever_it_asks():
    protocol = protocol_named("recall")
    one, two = (
        '{"name": "search", "arguments": {"query": ["a", "b"]}}',
        '{"name": "search", "arguments": {"query": "c"}}',
    )
    queries = [
        QueryObservation("a", ("x",), written=one),
        QueryObservation("b", (), written=one),
        QueryObservation("c", ("z", "w"), written=two),
    ]
    assert protocol.observation(queries) == (
        f"<tool_response>{one}\nresult: \nx\n\nNothing was found.\n</tool_response>\n"
        f"<tool_response>{two}\nresult: \nz\n\nw\n</tool_response>\n"
    )
    again = [QueryObservation("c", ("z",), written=two), QueryObservation("c", ("z",), written=two)]
    assert protocol.observation(again).count("<tool_response>") == 2


def test_a_wrapper_of_calls_needs_to_know_how_a_query_is_shown():
    with pytest.raises(ValueError, match="each_call stands around what each query found"):
        TextProtocol.model_validate(protocol_named("recall").model_dump() | {"each": ""})


def test_what_is_written_as_json_is_json():
    protocol = protocol_named("deep-researcher")
    odd = PASSAGE.model_copy(update={"title": 'a "b"\n', "text": "back\\slash é", "url": ""})
    text = protocol.observation([QueryObservation('q"', (protocol.show(odd),))])
    inside = text.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")
    assert json.loads(inside) == [
        {
            "search_query": 'q"',
            "web_page_info_list": [{"quick_summary": "back\\slash é", "title": 'a "b"\n', "url": ""}],
        }
    ]
