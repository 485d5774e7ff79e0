"""The real OpenAI client against the real server: what people will do."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from openai import APIError, AsyncOpenAI, AuthenticationError, BadRequestError, NotFoundError
from openai.types.chat import ChatCompletionChunk
from pydantic import SecretStr

from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named, protocol_names
from server.auth.middleware import Rules
from server.chat.service import Service
from tests.server.live import ANSWER, MULTISEARCH, QUESTION, SEARCH, Nothing, make_service, serving

Ask = Callable[[AsyncOpenAI], Awaitable[Any]]


def ask(work: Ask, service: Service | None = None, *, rules: Rules | None = None, key: str = "none") -> Any:
    async def run() -> Any:
        async with (
            serving(service or make_service(), rules) as address,
            AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0) as client,
        ):
            return await work(client)

    return asyncio.run(run())


async def chunks(client: AsyncOpenAI, **parameters: Any) -> list[ChatCompletionChunk]:
    request: dict[str, Any] = {"model": "cairn", "messages": QUESTION, "stream_options": {"include_usage": True}}
    stream: Any = await client.chat.completions.create(stream=True, **(request | parameters))
    return [chunk async for chunk in stream]


async def whole(client: AsyncOpenAI, **parameters: Any) -> Any:
    request: dict[str, Any] = {"model": "cairn", "messages": QUESTION}
    completions: Any = client.chat.completions
    return await completions.create(**(request | parameters))


def deltas(got: list[ChatCompletionChunk], name: str) -> list[Any]:
    found = (getattr(chunk.choices[0].delta, name, None) for chunk in got if chunk.choices)
    return [value for value in found if value]


def kinds(got: list[ChatCompletionChunk]) -> list[str]:
    return [(chunk.model_extra or {})["cairn"]["kind"] for chunk in got if "cairn" in (chunk.model_extra or {})]


def test_a_stream_begins_with_the_role_and_ends_with_a_reason_and_usage() -> None:
    got = ask(chunks)
    assert (got[0].choices[0].delta.role, got[0].choices[0].delta.content) == ("assistant", "")
    assert [chunk.choices[0].finish_reason for chunk in got if chunk.choices][-1] == "stop"
    assert got[-1].choices == []
    assert got[-1].usage is not None
    assert got[-1].usage.completion_tokens_details is not None
    assert 0 < (got[-1].usage.completion_tokens_details.reasoning_tokens or 0) < got[-1].usage.completion_tokens
    assert (got[-1].usage.model_extra or {})["num_search_queries"] == 2
    assert len({chunk.id for chunk in got}) == 1


def test_all_reasoning_comes_before_the_answer() -> None:
    got = ask(chunks)
    reasons = [i for i, chunk in enumerate(got) if chunk.choices and chunk.choices[0].delta.model_extra]
    reasons = [i for i in reasons if "reasoning_content" in (got[i].choices[0].delta.model_extra or {})]
    contents = [i for i, chunk in enumerate(got) if chunk.choices and chunk.choices[0].delta.content]
    assert max(reasons) < min(contents)
    reasoning = "".join(deltas(got, "reasoning_content"))
    for part in ("I need the director.", "director of Aurora Falls (web)", "Lina Orr directed it [1]", "was born in"):
        assert part in reasoning
    assert reasoning == "".join(deltas(got, "reasoning"))
    assert "".join(deltas(got, "content")) == "Trieste"


def test_every_step_comes_as_an_object_beside_an_empty_delta() -> None:
    got = ask(chunks)
    assert kinds(got) == [
        *("thought", "planned", "searched", "searched", "gathered", "merged", "evidenced", "answered", "stopped"),
        "done",
    ]
    for chunk in got[:-1]:
        if "cairn" in (chunk.model_extra or {}):
            assert chunk.choices[0].delta.model_dump(exclude_none=True) == {}


def test_citations_come_in_one_chunk_in_the_order_of_the_evidence() -> None:
    got = ask(chunks)
    (annotations,) = deltas(got, "annotations")
    assert [a["index"] for a in annotations] == [0, 1]
    assert [a["url_citation"]["url"] for a in annotations] == [
        "urn:cairn:kg:kg%3ALina%20Orr",
        "https://example.org/falls",
    ]
    assert all(a["url_citation"]["start_index"] == 0 and a["url_citation"]["end_index"] == 7 for a in annotations)
    extra: dict[str, Any] = got[-1].model_extra or {}
    assert extra["citations"] == [a["url_citation"]["url"] for a in annotations]
    assert [(r["title"], r["cited"]) for r in extra["search_results"]] == [
        ("Lina Orr", True),
        ("Director Of Aurora Falls", True),
    ]
    assert [claim["cites"] for claim in extra["cairn"]["evidence"]] == [[1], [2, 1]]
    assert extra["cairn"]["timings"]["total"] >= 0


def test_the_stream_helper_of_the_client_reads_it_to_the_end() -> None:
    async def helped(client: AsyncOpenAI) -> Any:
        messages: Any = QUESTION
        async with client.chat.completions.stream(model="cairn", messages=messages) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_completion()

    message = ask(helped).choices[0].message
    assert message.content == "Trieste"
    assert len(message.annotations or []) == 2


def test_without_a_stream_the_same_is_in_the_message() -> None:
    got = ask(whole)
    streamed = ask(chunks)
    message = got.choices[0].message
    assert message.content == "Trieste"
    assert message.reasoning_content == "".join(deltas(streamed, "reasoning_content"))
    assert [a.url_citation.title for a in message.annotations] == ["Lina Orr", "Director Of Aurora Falls"]
    assert got.choices[0].finish_reason == "stop"
    assert got.usage.completion_tokens == streamed[-1].usage.completion_tokens
    assert got.citations == (streamed[-1].model_extra or {})["citations"]
    assert got.cairn["evidence"][0]["text"] == "Lina Orr was born in Trieste."
    assert got.usage.completion_tokens_details.reasoning_tokens > 0


def test_a_style_with_evidence_appends_the_claims_with_the_readers_numbers() -> None:
    got = ask(lambda client: whole(client, extra_body={"answer_style": "with_evidence"}))
    content = "Trieste\n\n- Lina Orr was born in Trieste. [1]\n- Lina Orr directed Aurora Falls. [2] [1]"
    message = got.choices[0].message
    assert message.content == content
    spans = [(a.url_citation.start_index, a.url_citation.end_index) for a in message.annotations]
    assert [content[start:end] for start, end in spans] == ["[1]", "[2]"]


def test_the_sentence_style_appends_the_claim_that_holds_the_answer() -> None:
    got = ask(whole, make_service(answer_style="sentence"))
    assert got.choices[0].message.content == "Trieste\n\nLina Orr was born in Trieste. [1]"


UNTRUE = ANSWER.replace("- Lina Orr was born in Trieste. [2]", "- Lina Orr was born in Rome. [2]\n- It is a fine town.")


def test_a_claim_that_no_cited_passage_makes_is_marked_and_never_silently_kept() -> None:
    service = make_service((SEARCH, UNTRUE), answer_style="with_evidence")
    got = ask(whole, service)
    assert [(claim["check"], claim["cites"]) for claim in got.cairn["evidence"]] == [
        ("not_found", [1]), ("not_found", []), ("close", [2, 1]),
    ]  # fmt: skip
    assert got.choices[0].message.content == (
        "Trieste\n\n- Lina Orr was born in Rome. [1] (not found in what it cites)\n- It is a fine town. (cites nothing)"
        "\n- Lina Orr directed Aurora Falls. [2] [1]"
    )
    assert "- Lina Orr was born in Rome. (not found in what it cites)" in got.choices[0].message.reasoning_content
    assert got.cairn["citations"] == [
        {"cite": 1, "claims": [0, 2], "found": [2]},
        {"cite": 2, "claims": [2], "found": [2]},
    ]


def test_a_quote_is_given_with_its_place_in_the_passage() -> None:
    got = ask(whole)
    (quote,) = got.cairn["evidence"][0]["quotes"]
    (result,) = (r for at, r in enumerate(got.search_results, start=1) if at == quote["cite"])
    assert result["snippet"][quote["start"] : quote["end"]] == quote["text"] == "She comes from Trieste."


def test_an_answer_without_any_passage_says_so_and_what_was_tried() -> None:
    turns = (SEARCH, "<answer>I do not know</answer>")
    sources = {name: Nothing() for name in ("web", "kg", "all")}
    agent = Agent(policy=ScriptedPolicy(turns), protocol=protocol_named("cairn"), sources=sources)
    got = ask(whole, make_service(agent=agent))
    assert got.choices[0].message.content == (
        "I do not know\n\nNothing was found, so no passage supports this."
        " Tried: “director of Aurora Falls” (web), “Lina Orr” (kg)."
    )


def test_an_answer_without_a_search_says_so_where_more_than_the_answer_is_wanted() -> None:
    known = ("<think>I know.</think>\n<answer>42</answer>",)
    assert ask(whole, make_service(known)).choices[0].message.content == "42"
    content = ask(whole, make_service(known, answer_style="sentence")).choices[0].message.content
    assert content == "42\n\nThis was answered without a search."


def test_a_protocol_without_evidence_is_cited_from_its_last_merge() -> None:
    got = ask(lambda client: whole(client, model="cairn/multisearch"), make_service(MULTISEARCH))
    assert got.choices[0].message.content == "Trieste"
    assert [claim["text"] for claim in got.cairn["evidence"]] == [
        "Lina Orr was born in Trieste.",
        "She directed Aurora Falls.",
    ]
    assert all(claim["derived"] for claim in got.cairn["evidence"])
    assert [r["id"] for r in got.search_results] == ["all:Lina Orr", "all:director of Aurora Falls"]


def test_no_usage_chunk_comes_where_none_was_requested() -> None:
    got = ask(lambda client: chunks(client, stream_options=None))
    assert all(chunk.choices and chunk.usage is None for chunk in got)


def test_the_models_are_the_protocols_and_chat_only_where_the_policy_can() -> None:
    async def models(client: AsyncOpenAI) -> list[str]:
        return [model.id async for model in client.models.list()]

    assert ask(models) == ["cairn", *(f"cairn/{name}" for name in protocol_names())]
    one = ask(lambda client: client.models.retrieve("cairn/multisearch"))
    assert one.id == "cairn/multisearch"
    with pytest.raises(NotFoundError, match="choose from: cairn, cairn/cairn, cairn/multisearch"):
        ask(lambda client: client.models.retrieve("gpt-9"))


def test_an_engine_that_fails_is_an_error_object_before_and_an_error_frame_after_the_start() -> None:
    broken = (SEARCH, PolicyError("the engine is out of memory"))
    with pytest.raises(APIError, match="out of memory") as whole_error:
        ask(whole, make_service(broken))
    with pytest.raises(APIError, match="out of memory") as stream_error:
        ask(chunks, make_service(broken))
    assert (whole_error.value.code, stream_error.value.code) == ("engine_failed", "engine_failed")


def test_a_rollout_that_runs_out_of_tokens_ends_with_length_and_an_answer() -> None:
    got = ask(lambda client: whole(client, max_tokens=20), make_service((SEARCH, "Trieste</answer>")))
    assert got.choices[0].finish_reason == "length"
    assert got.choices[0].message.content


def test_a_policy_that_leaves_its_format_gives_a_sentence_and_not_an_empty_answer() -> None:
    got = ask(whole, make_service(("<think>Hm.</think>", "", "", "")))
    assert got.choices[0].message.content


def test_the_wrong_key_is_refused_and_the_right_one_is_not() -> None:
    rules = Rules(key=SecretStr("s3cret"))
    with pytest.raises(AuthenticationError, match="Bearer KEY"):
        ask(whole, rules=rules, key="wrong")
    assert ask(whole, rules=rules, key="s3cret").choices[0].message.content == "Trieste"


def test_parameters_of_other_servers_are_taken_and_mean_nothing() -> None:
    extras: Any = {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": None}}],
        "presence_penalty": 0.1,
        "user": "me",
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
        "reasoning_effort": "high",
        "response_format": {"type": "text"},
        "extra_body": {"mirostat": 2},
    }
    assert ask(lambda client: whole(client, **extras)).choices[0].message.content == "Trieste"


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        ({"n": 2}, "leave 'n' out"),
        ({"messages": []}, "last message must have the role 'user'"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "last message must have the role 'user'"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "The question is empty"),
        ({"messages": [{"role": "user", "content": "a" * 20_001}]}, "20,001 characters; at most 20,000"),
        ({"messages": [{"role": "user", "content": "a" * 1_000_000}]}, "1,000,000 characters; at most 20,000"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text is supported"),
        ({"messages": [{"role": "king", "content": "x"}]}, "'messages.0.role' cannot be used"),
        ({"temperature": 3}, "'temperature' cannot be used"),
        ({"max_tokens": 0}, "'max_tokens' cannot be used"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_hint(parameters: dict[str, Any], hint: str) -> None:
    with pytest.raises(BadRequestError) as error:
        ask(lambda client: whole(client, **parameters))
    assert hint in error.value.message
    assert error.value.type == "invalid_request_error"


def test_chat_answers_without_searching_where_the_policy_can() -> None:
    service = make_service()
    chatty = ScriptedPolicy(("<think>Easy.</think>\nA <b>title",), instructed=True)
    service = replace(service, agent=replace(service.agent, policy=chatty))
    got = ask(lambda client: whole(client, model="cairn-chat"), service)
    assert got.choices[0].message.content == "A <b>title"
    assert got.usage.num_search_queries == 0
    assert (got.choices[0].message.reasoning_content, got.citations) == ("Easy.", [])


def test_many_streams_at_once_lose_nothing() -> None:
    async def many(client: AsyncOpenAI) -> list[str]:
        got = await asyncio.gather(*(chunks(client) for _ in range(32)))
        return ["".join(deltas(one, "content")) for one in got]

    assert ask(many) == ["Trieste"] * 32


def test_an_earlier_turn_reaches_the_policy_without_its_reasoning() -> None:
    seen: list[str] = []

    def turn(context: str) -> str:
        seen.append(context)
        return ANSWER if "<information>" in context else SEARCH

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Who made it?"}]},
        {"role": "assistant", "content": "<think>secret</think>Lina Orr"},
        {"role": "user", "content": "Where was she born?"},
    ]
    ask(lambda client: whole(client, messages=messages), make_service(turn))
    assert "Who made it?" in seen[0]
    assert "Lina Orr" in seen[0]
    assert "secret" not in seen[0]
    assert "Be brief" not in seen[0]
