"""Events in, parts out: what holds for every rollout and however its text is cut."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from agent.checks.claims import derived_claims
from agent.evidence import Passage
from agent.protocols import protocol_named
from agent.trace import Answered, Claim, Delta, Event, Evidenced, Gathered, Merged, Quote, Stopped, Thought, Trace
from server.chat.chunks import ChunkFrames, completion
from server.chat.citations import AnswerText, Citations
from server.chat.reply import Content, Reasoning, RolloutReply, usage
from server.http.schema import CompletionUsage

PASSAGES = tuple(Passage(id=str(n), source="web", title=f"T{n}", text=f"t{n}", number=n) for n in range(1, 5))
PIECES = ["[1]", "[2, 3]", "[9]", "[", "]", "1", ",", " ", "\n", "a", "<b>", '"', "\\", "é", "\u2028", "𝄞"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
CLAIMS = st.builds(Claim, text=TEXT, cites=st.lists(st.integers(0, 6), max_size=3).map(tuple))
EVENTS = st.lists(
    st.one_of(
        st.builds(Delta, role=st.sampled_from(["thought", "search", "merge", "evidence", "answer"]), text=TEXT),
        st.builds(Thought, text=TEXT),
        st.builds(Merged, text=TEXT),
        st.builds(Gathered, round=st.just(1), passages=st.just(PASSAGES)),
        st.builds(Evidenced, text=TEXT, claims=st.lists(CLAIMS, max_size=3).map(tuple)),
    ),
    max_size=12,
)


def new_trace() -> Trace:
    return Trace(id="t", question="q", protocol="cairn", policy="scripted")


def citations() -> Citations:
    made = Citations()
    made.show(PASSAGES, restarts=False)
    return made


@given(EVENTS, st.text(max_size=5), st.sampled_from(["short", "sentence", "with_evidence"]))
def test_every_frame_is_a_chunk_that_clients_accept(events: list[Event], answer: str, style: str) -> None:
    trace = new_trace()
    reply = RolloutReply(protocol_named("cairn"), style=style)  # type: ignore[arg-type]
    frames = ChunkFrames(trace=trace, model="cairn")
    sent = [frames.role()]
    for event in [*events, Answered(text=answer), Stopped(reason="answered")]:
        sent += [frames.part(part) for part in reply.feed(event)]
    sent.append(frames.ending(reply, trace, include_usage=True))
    *blocks, done, rest = b"".join(sent).split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    chunks = [json.loads(block.removeprefix(b"data: ")) for block in blocks]
    content = ""
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert not any(isinstance(v, int | float) for c in chunk["choices"] for v in c["delta"].values())
        content += "".join(c["delta"].get("content", "") for c in chunk["choices"])
    whole = completion(reply, trace, model="cairn", reasoning="")["choices"][0]["message"]
    assert content == whole["content"] == reply.content
    for note in whole["annotations"]:
        cite = note["url_citation"]
        assert 0 <= cite["start_index"] <= cite["end_index"] <= len(content)


@given(EVENTS)
def test_no_reasoning_comes_after_content(events: list[Event]) -> None:
    reply = RolloutReply(protocol_named("cairn"))
    parts = [part for event in events for part in reply.feed(event)]
    kinds = [type(part) for part in parts if isinstance(part, Reasoning | Content)]
    assert kinds == sorted(kinds, key=lambda kind: kind is Content)


@given(TEXT, st.lists(st.integers(0, 12)))
def test_however_the_answer_is_cut_the_same_comes_out(text: str, cuts: list[int]) -> None:
    at_once, piecewise = AnswerText(citations()), AnswerText(citations())
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    came = "".join(piecewise.feed(text[start:end]) for start, end in pairwise(places))
    assert came + piecewise.finish(text) == at_once.finish(text)


def test_the_answers_own_marks_get_the_readers_numbers() -> None:
    made = citations()
    made.places([3])
    assert made.rewrite("Both [1][3], but not [9] or [2024].") == "Both [2][1], but not [9] or [2024]."
    assert made.rewrite("[1, 3]") == "[2] [1]"
    assert [passage.number for passage in made.cited] == [3, 1]


def test_numbers_that_start_again_mean_the_last_rounds_passages() -> None:
    made = Citations()
    first, second = (PASSAGES[0].model_copy(update={"id": name}) for name in ("first", "second"))
    made.show([first, PASSAGES[1]], restarts=True)
    made.show([second], restarts=True)
    assert (made.places([1]), made.places([2])) == ([1], [])
    assert made.cited == [second]
    assert [result["id"] for result in made.search_results] == ["second", "first", "2"]


def of_query(node: str, number: int, text: str) -> Passage:
    return Passage(id=f"{node}{number}", source="web", title=node, text=text, number=number, node=node)


def test_where_each_query_numbers_its_own_passages_a_claims_quote_says_which_one_is_cited() -> None:
    made = Citations()
    shown = [of_query("A", 1, "Orr directed it."), of_query("A", 2, "x"), of_query("B", 1, "Orr is from Trieste.")]
    made.show(shown, restarts=True)
    assert made.places([1], [Quote(number=1, start=12, end=19, text="Trieste")]) == [1]
    assert made.cited == [shown[2]]
    assert made.rewrite("Trieste [1]") == "Trieste [1]"  # what is cited already is meant again
    assert made.places([2]) == [2]
    assert made.places([1], [Quote(number=1, start=0, end=3, text="Orr")]) == [3, 1]  # both say so
    assert made.cited == [shown[2], shown[1], shown[0]]


def test_a_number_that_may_mean_several_passages_means_all_of_them() -> None:
    made = Citations()
    made.show([of_query("A", 1, "a"), of_query("B", 1, "b")], restarts=True)
    assert made.rewrite("Yes [1].") == "Yes [1] [2]."


def test_a_round_that_finds_nothing_leaves_what_was_shown() -> None:
    made = Citations()
    made.show(PASSAGES, restarts=True)
    made.show([], restarts=True)
    assert made.places([2]) == [1]


def test_a_protocol_that_numbers_by_query_is_answered_with_the_passages_that_are_meant() -> None:
    reply = RolloutReply(protocol_named("cairn").model_copy(update={"numbering": "query"}), style="with_evidence")
    first, second = of_query("A", 1, "Orr directed it."), of_query("B", 1, "Orr is from Trieste.")
    quote = Quote(number=1, start=0, end=20, text="Orr is from Trieste.")
    claim = Claim(text="Orr is from Trieste.", cites=(1,), check="verbatim", quotes=(quote,))
    for event in (
        Gathered(round=1, passages=(first, second)),
        Evidenced(text="", claims=(claim,)),
        Answered(text="Trieste"),
    ):
        reply.feed(event)
    assert reply.content == "Trieste\n\n- Orr is from Trieste. [1]"
    summary = reply.summary(new_trace())
    assert summary["evidence"][0]["quotes"] == [{"cite": 1, "start": 0, "end": 20, "text": "Orr is from Trieste."}]
    assert [result["id"] for result in reply.sources()["search_results"]] == ["B1", "A1"]


def test_claims_keep_the_passages_that_they_cited_where_numbers_start_again() -> None:
    reply = RolloutReply(protocol_named("multisearch"), style="with_evidence")
    film, town = (passage("film"), passage("town"))
    quote = Quote(number=1, start=0, end=4, text="film")
    for event in (
        Gathered(round=1, passages=(film,)),
        Merged(text="", claims=(Claim(text="Orr directed it.", cites=(1,), check="verbatim", quotes=(quote,)),)),
        Gathered(round=2, passages=(town,)),
        Answered(text="Orr [1]"),
    ):
        reply.feed(event)
    assert reply.content == "Orr [2]\n\n- Orr directed it. [1]", "the answer's own mark means what was shown last"
    summary = reply.summary(new_trace())
    assert (summary["evidence"][0]["cites"], summary["evidence"][0]["quotes"][0]["cite"]) == ([1], 1)
    assert [result["id"] for result in reply.sources()["search_results"]] == ["film", "town"]


def passage(id: str) -> Passage:
    return Passage(id=id, source="web", title=id, text=id, number=1)


def test_a_merge_gives_a_claim_for_each_sentence_that_cites() -> None:
    claims = derived_claims("Orr directed Falls [1] and lives in Trieste [3]. Missing: the premiere. Born 1970. [2]")
    assert [claim.cites for claim in claims] == [(1, 3), (2,)]
    assert claims[1].text == "Born 1970."


def test_blocks_are_set_apart_in_the_reasoning() -> None:
    reply = RolloutReply(protocol_named("cairn"))
    events = [Delta(role="thought", text="a"), Delta(role="thought", text="b"), Thought(text="ab")]
    more = [Delta(role="search", text="c"), Delta(role="merge", text="d")]
    parts = [part for event in [*events, *more] for part in reply.feed(event)]
    assert "".join(part.text for part in parts if isinstance(part, Reasoning)) == "ab\n\nc\n\nd"


def test_usage_is_described_whole() -> None:
    trace = Trace(id="t", question="q", protocol="cairn", policy="p")
    assert usage(trace).keys() == CompletionUsage.model_fields.keys()
