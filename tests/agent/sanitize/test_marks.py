"""Special tokens of public tokenizers, each known by its shape alone; and what only looks like one."""

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.protocols import protocol_named
from agent.sanitize.sanitize import indented, on_one_line, sanitize, unusual_tokens

TAGS = tuple(protocol_named("cairn").tag_names)
TOKENS = tuple(
    """
    <s> </s> <unk> <pad> <mask> <cls> <sep> <bos> <eos> <|endoftext|> <|im_start|> <|im_end|> <|start_header_id|>
    <|end_header_id|> <|eot_id|> <|eom_id|> <|python_tag|> <|reserved_special_token_0|> <|begin_of_text|>
    <start_of_turn> <end_of_turn> <unused0> <unused99> <start_of_image> <image_soft_token> <fim_prefix> <fim_middle>
    <fim_suffix> <fim_pad> <fim-prefix> <filename> <gh_stars> <issue_start> <jupyter_code> <reponame> <repo_name>
    <file_sep> <empty_output> <commit_before> <end_of_utterance> <fake_token_around_image> <global-img> <row_1_col_1>
    <image> <video> <audio> [INST] [/INST] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS]
    [TOOL_CONTENT] [IMG] [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [THINK] [/THINK] [CALL_ID]
    [ARGS] [AUDIO] [BEGIN_AUDIO] [TRANSCRIBE] [control_8] [CLS] [SEP] [MASK] [PAD] [UNK] [unused1] [gMASK] [sMASK] <sop>
    <eop> <|system|> <|observation|> <think> </think> <tool_call> </tool_call> <tool_response> <arg_key> <arg_value>
    <｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜> <｜tool▁calls▁begin｜> <｜▁pad▁｜> <|EOT|>
    <|START_OF_TURN_TOKEN|> <BOS_TOKEN> <EOP_TOKEN> <PAD> <PRE> <SUF> <MID> <EOT> <SPECIAL_12> <extra_id_0> <extra_0>
    <reserved_106> [|system|] [|endofturn|] <|channel|> <|message|> <|return|> <seed:bos> </seed:think>
    <minimax:tool_call> ]~b] ]~!b[ [e~[ <function=search> </function> <parameter=query> </parameter> <function_calls>
    <invoke> </invoke> <tools> <eoh> <eoa> <eod> <eom> <TOKENS_UNUSED_1> <loc0001> <seg001> <ctrl99> <0x0A> <user>
    <assistant> <system> <human> <bot> <box> <ref> <quad> <grounding> ◁think▷ ◁/think▷ <turn_start> <_user> <_end>
    <|vision_start|> <SPL_1> <commit_msg> <ipynb_marker> <[PAD]>
    """.split()
)
BRACKETS = set("<>[]◁▷")
HARMLESS = """
    <b> </b> <i> <br/> </p> <h2> <span> <T> [1] [2] [a] [sic] [EU] [e4] [PDF] <3 << <https://example.org/a_b>
    <mailto:a@example.org> <a@example.org> x<y>z
""".split()
SENTENCES = (
    "[citation needed] and [see below] of the [first] one",
    "if x <y and z> 3, then a < b > c",
    '<h2 class="x">Title</h2> <a href="https://example.org">link</a>',
    "arr[i] = m[row_index] - b [x | y]",
    "[[wiki link]] {{template}} 3 <| 4",
)


@pytest.mark.parametrize(
    "token", [*TOKENS, '<invoke name="x">', '<parameter name="q" string="true">', "<｜fim▁hole｜>"]
)
def test_no_special_token_keeps_its_brackets(token: str):
    assert BRACKETS.isdisjoint(sanitize(f"before {token} behind", TAGS))


@given(st.lists(st.sampled_from([*TOKENS, "a", " ", "<", ">", "[", "]", "|", "\n"]), max_size=12).map("".join))
@example("<foo x=<unused1>>")
@example("< |x<answer>b>")
def test_nothing_forms_again_from_what_is_left(text: str):
    safe = sanitize(text, TAGS)
    assert sanitize(safe, TAGS) == safe


@pytest.mark.parametrize("text", [*HARMLESS, *SENTENCES])
def test_text_that_is_no_token_stays_as_it_is(text: str):
    assert sanitize(text, TAGS) == text


def test_a_tokenizers_own_tokens_are_marks_whatever_their_shape():
    special = ["<|im_start|>", "<unused1>", "{start}", "<2x>", "[a1]", "Human:", "\n\n"]
    unusual = unusual_tokens(special)
    assert set(unusual) == {"{start}", "<2x>", "[a1]"}
    assert sanitize("{start} <2x> [a1] {other} <3x> [a2]", (*TAGS, *unusual)) == "(start) (2x) (a1) {other} <3x> [a2]"


@pytest.mark.parametrize("left", "<＜﹤‹〈⟨❮❰˂ᐸ≺⧼⋖⪡◁◀⏴⦑")
def test_a_look_alike_of_a_bracket_makes_a_tag_of_the_protocol(left: str):
    assert sanitize(f"{left}/information>", TAGS) == "(/information)"


@pytest.mark.parametrize("left", "[［【〔⟦⦋⁅❲⟬〖〘〚﹇﹝︹︻")
def test_a_look_alike_of_a_square_bracket_makes_a_token(left: str):
    assert sanitize(f"{left}INST]", TAGS) == "(INST)"


# Time

FAMILIES: Mapping[str, Callable[[int], str]] = {
    "a bracket and blanks": lambda n: "<" + " " * n,
    "brackets and blanks": lambda n: "< \t\n" * (n // 4),
    "square brackets": lambda n: "[" * n,
    "a square bracket and blanks": lambda n: "[" + " " * n,
    "brackets": lambda n: "<" * n,
    "bars": lambda n: "<|" * (n // 2),
    "bars and blanks": lambda n: "< | " * (n // 4),
    "slashes": lambda n: "</" * (n // 2),
    "ampersands": lambda n: "&" * n,
    "nested entities": lambda n: "&" + "amp;" * (n // 4),
    "entities": lambda n: "&lt;" * (n // 4),
    "an endless number": lambda n: "&#" + "0" * n,
    "combining marks": lambda n: "<a" + "\u0301" * n,
    "hidden characters": lambda n: "<" + "\u200b" * n,
    "joiners": lambda n: "a\u200d" * (n // 2),
    "one name": lambda n: "<" + "a" * n,
    "names": lambda n: ("<" + "a" * 80 + " ") * (n // 82),
    "tags of the protocol": lambda n: "<answer " * (n // 8),
    "an attribute that never comes": lambda n: "<ab " + "x " * (n // 2) + "=",
    "attributes": lambda n: "<foo x=" * (n // 7),
    "capital words": lambda n: ("[" + "A" * 60) * (n // 61),
    "tildes": lambda n: "]~" * (n // 2),
    "line breaks": lambda n: "\n " * (n // 2),
    "blanks": lambda n: " " * n,
}  # fmt: skip


def _cost(text: str) -> float:
    """Seconds of CPU time, the least of three."""
    seconds: list[float] = []
    for _ in range(3):
        started = time.process_time()
        sanitize(indented(text).text, (*TAGS, "{start}"))
        sanitize(on_one_line(text).text, TAGS)
        seconds.append(time.process_time() - started)
    return min(seconds)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cost_of_a_text_is_in_proportion_to_its_length(family: str):
    short, long = (_cost(FAMILIES[family](length)) for length in (4_000, 16_000))
    assert long <= 10 * short + 0.005  # 4 times is in proportion, 16 times is not


# Lines

BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
BROKEN = st.lists(st.sampled_from([*BREAKS, " ", "\t", "a", "[2]", "<answer>", "\u200b", "é"]), max_size=20).map(
    "".join
)


@given(BROKEN)
def test_no_line_of_an_indented_text_begins_with_anything_but_blanks(text: str):
    first, *more = f"x{sanitize(indented(text).text, TAGS)}".splitlines()
    assert first.startswith("x")
    assert all(line.startswith("  ") for line in more)


@given(BROKEN)
def test_a_text_on_one_line_has_one_line(text: str):
    assert len(f"x{sanitize(on_one_line(text).text, TAGS)}x".splitlines()) == 1


@given(BROKEN)
def test_every_word_of_an_indented_text_leads_back_to_the_original(text: str):
    shown = indented(text)
    for at, character in enumerate(shown.text):
        start, end = shown.original(at, at + 1)
        assert start <= end
        if not character.isspace():
            assert text[start:end].startswith(character)
            assert shown.shown(start, start + 1)[0] == at


@given(st.text(st.characters(exclude_characters="".join(BREAKS))))
def test_a_text_of_one_line_stays_to_the_byte(text: str):
    assert indented(text).text == on_one_line(text).text == text
