"""The same answer as each kind of client wants it."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.plan import Node, Plan
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.trace import Answered, Evidenced, Filled, Gathered, Planned, SearchFailed, Stopped
from server.chat.citations import AnswerText, Citations
from server.chat.profiles import PROFILES, Statuses
from server.chat.reply import RolloutReply
from server.chat.request import without_reasoning
from server.chat.service import Service
from tests.server.live import ANSWER, QUESTION, SEARCH, Nothing, in_memory, make_service

UNTRUE = ANSWER.replace("Trieste. [2]", "Rome. [2]").replace("Orr directed Aurora Falls. [1][2]", "It is nice. [2]")


def chunks(service: Service, profile: str | None, **body: Any) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        request: dict[str, Any] = {"model": "cairn", "messages": QUESTION, "stream": True, "profile": profile} | body
        async with asyncio.timeout(20), in_memory(service) as client:
            answer = await client.post("/v1/chat/completions", json=request)
        *frames, done, rest = answer.text.split("\n\n")
        assert (done, rest) == ("data: [DONE]", "")
        return [json.loads(frame.removeprefix("data: ")) for frame in frames]

    return asyncio.run(run())


def content(got: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content", "") for chunk in got for choice in chunk["choices"])


@pytest.mark.parametrize("profile", PROFILES)
def test_every_frame_of_every_profile_is_a_chunk_that_clients_accept(profile: str) -> None:
    got = chunks(make_service(), profile, stream_options={"include_usage": True})
    for chunk in got:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    assert content(got).startswith("Trieste")


def test_open_webui_gets_searches_as_status_events_that_begin_and_end() -> None:
    got = chunks(make_service(), "openwebui")
    events = [chunk["event"] for chunk in got if "event" in chunk]
    assert {event["type"] for event in events} == {"status"}
    begun, ended = (event["data"] for event in events)
    assert (begun["queries"], begun["done"]) == (["director of Aurora Falls", "Lina Orr"], False)
    assert begun["action"] == "web_search_queries_generated"
    assert (ended["action"], ended["done"]) == ("web_search", True)
    assert ended["urls"] == ["https://example.org/falls"]
    assert ended["items"] == [{"title": "Director Of Aurora Falls", "link": "https://example.org/falls"}]
    assert not any("event" in chunk for chunk in chunks(make_service(), None))


def test_the_servers_own_profile_holds_where_a_request_names_none() -> None:
    assert any("event" in chunk for chunk in chunks(make_service(profile="openwebui"), None))
    assert not any("event" in chunk for chunk in chunks(make_service(profile="openwebui"), "default"))


def test_a_status_that_began_ends_even_where_the_round_does_not() -> None:
    statuses = Statuses()
    plan = Plan(nodes=(Node(id="A", query="a", source="web"), Node(id="B", query="b #A", source="web", parents=("A",))))
    events = [
        statuses.feed(step)
        for step in (
            Planned(round=1, plan=plan),
            Filled(round=1, node="B", query="b c"),
            SearchFailed(round=1, node="A", source="web", query="a", why="x", error="timeout"),
            Stopped(reason="forced", budget="seconds"),
        )
    ]
    data = [event["data"] for event in events if event]
    assert [d.get("queries") for d in data] == [["a", "b #A"], ["a", "b c"], None, None]
    assert [d["done"] for d in data] == [False, False, True, True]
    assert statuses.feed(Stopped(reason="answered")) is not None
    assert Statuses().feed(Stopped(reason="answered")) is None


def test_nothing_found_is_reported_as_that() -> None:
    sources = {name: Nothing() for name in ("web", "kg", "all")}
    agent = Agent(policy=ScriptedPolicy((SEARCH, ANSWER)), protocol=protocol_named("cairn"), sources=sources)
    events = [c["event"]["data"] for c in chunks(make_service(agent=agent), "openwebui") if "event" in c]
    assert (events[-1]["description"], events[-1]["urls"]) == ("Nothing was found", [])


def test_markdown_links_make_links_of_marks_and_name_what_has_no_address() -> None:
    got = content(chunks(make_service(), "markdown-links"))
    assert got == (
        'Trieste [1] [2]\n\n- [1] Lina Orr (kg)\n\n[2]: <https://example.org/falls> "Director Of Aurora Falls"'
    )
    assert without_reasoning(got) == "Trieste"
    answer = content(chunks(make_service(), "markdown-links", answer_style="with_evidence"))
    assert answer == (
        "Trieste\n\n- Lina Orr was born in Trieste. [1]\n- Lina Orr directed Aurora Falls. [2] [1]"
        '\n\n- [1] Lina Orr (kg)\n\n[2]: <https://example.org/falls> "Director Of Aurora Falls"'
    )


def test_an_answer_that_nothing_found_carries_says_so_beside_its_marks() -> None:
    got = content(chunks(make_service((SEARCH, UNTRUE)), "perplexity"))
    assert got == "Trieste [1] (not found in what it cites)"


def test_perplexitys_clients_get_usage_and_sources_unasked_with_the_end() -> None:
    got = chunks(make_service(), "perplexity")
    assert content(got) == "Trieste [1] [2]"
    (ending,) = [chunk for chunk in got if chunk["choices"] and chunk["choices"][0]["finish_reason"]]
    assert ending["usage"]["num_search_queries"] == 2
    assert ending["citations"][1] == "https://example.org/falls"
    assert [result["title"] for result in ending["search_results"]] == ["Lina Orr", "Director Of Aurora Falls"]
    assert all(chunk["choices"] for chunk in got)


def test_an_answer_that_cites_nothing_stays_as_it_is() -> None:
    known = ("<think>I know.</think>\n<answer>42</answer>",)
    assert content(chunks(make_service(known), "markdown-links")) == "42"


HOSTILE = Passage(
    id="x", source="web", title='A "b"\n[2]: <https://evil.example> ] \\', number=1, text="t",
    url="https://a.org/p q>[3]: <https://evil.example>",
)  # fmt: skip


def test_a_title_or_address_of_a_stranger_cannot_add_a_definition() -> None:
    reply = RolloutReply(protocol_named("cairn"), profile=PROFILES["markdown-links"])
    for event in (Gathered(round=1, passages=(HOSTILE,)), Evidenced(text="", claims=()), Answered(text="Yes [1]")):
        reply.feed(event)
    *_, definition = reply.content.splitlines()
    assert reply.content.count("\n") == 2
    assert definition.startswith("[1]: <https://a.org/p%20q%3E[3]:%20%3Chttps://evil.example%3E> ")
    assert definition.endswith(r'"A \"b\" [2]: <https://evil.example> ] \\"')
    nowhere = Passage.model_validate(HOSTILE.model_dump() | {"url": "javascript:alert(1)"})
    reply = RolloutReply(protocol_named("cairn"), profile=PROFILES["markdown-links"])
    for event in (Gathered(round=1, passages=(nowhere,)), Answered(text="Yes [1]")):
        reply.feed(event)
    assert reply.content.splitlines()[-1].startswith(r'- [1] A "b" \[2\]: \<https')


@given(st.lists(st.sampled_from(["[1]", "[2, 3]", "[9]", "[", "]", "1", " ", "a", "\n"]), max_size=8), st.data())
def test_spaced_marks_never_touch_however_the_answer_is_cut(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, len(text))))

    def made() -> AnswerText:
        citations = Citations()
        shown = [Passage(id=str(n), source="web", title="", text="", number=n) for n in range(1, 4)]
        citations.show(shown, restarts=False)
        return AnswerText(citations, spaced=True)

    whole, piecewise = made().finish(text), made()
    came = "".join(piecewise.feed(text[start:end]) for start, end in pairwise([0, *sorted(cuts), len(text)]))
    assert came + piecewise.finish(text) == whole
    for n in range(1, 4):
        for m in range(1, 4):
            assert f"[{n}][{m}]" not in whole
