"""`/v1/responses` with the real OpenAI client: items, events and their numbers, errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, NotFoundError
from openai.types.responses import Response

from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import Source
from agent.trace import Delta
from server.chat.reply import RolloutReply
from server.chat.service import Service
from server.http.errors import internal_error
from server.responses.output import Output
from server.responses.schema import ResponseObject
from tests.server.live import ANSWER, SEARCH, Hanging, in_memory, make_service, serving

QUESTION = "Where was the director of Aurora Falls born?"
Ask = Callable[[AsyncOpenAI], Awaitable[Any]]


def ask(work: Ask, service: Service | None = None) -> Any:
    async def run() -> Any:
        async with (
            serving(service or make_service()) as address,
            AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
        ):
            return await work(client)

    return asyncio.run(run())


async def whole(client: AsyncOpenAI, **parameters: Any) -> Any:
    responses: Any = client.responses
    return await responses.create(**({"model": "cairn", "input": QUESTION} | parameters))


async def events(client: AsyncOpenAI, **parameters: Any) -> list[Any]:
    responses: Any = client.responses
    stream = await responses.create(**({"model": "cairn", "input": QUESTION, "stream": True} | parameters))
    return [event async for event in stream]


def test_a_response_holds_reasoning_searches_and_cited_text() -> None:
    got = ask(whole)
    assert got.output_text == "Trieste"
    assert [item.type for item in got.output] == ["reasoning", "web_search_call", "reasoning", "message"]
    first, search, second, message = got.output
    assert "I need the director." in first.summary[0].text
    assert "Lina Orr was born in Trieste." in second.summary[0].text
    assert (search.status, search.action.type) == ("completed", "search")
    assert search.action.queries == ["director of Aurora Falls", "Lina Orr"]
    assert [source.url for source in search.action.sources] == ["https://example.org/falls"]
    (text,) = message.content
    assert [a.url for a in text.annotations] == ["urn:cairn:kg:kg%3ALina%20Orr", "https://example.org/falls"]
    assert (got.status, got.usage.output_tokens_details.reasoning_tokens > 0) == ("completed", True)
    assert got.usage.total_tokens == got.usage.input_tokens + got.usage.output_tokens
    assert got.cairn["evidence"][0]["text"] == "Lina Orr was born in Trieste."
    Response.model_validate(got.model_dump(mode="json"), strict=False)


def test_events_have_openais_names_and_numbers_without_a_gap() -> None:
    got = ask(events)
    assert [event.sequence_number for event in got] == list(range(len(got)))
    names = [event.type.removeprefix("response.") for event in got]
    distinct = [name for at, name in enumerate(names) if name != names[at - 1]]
    reasoned = [
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
    ]
    searched = [
        *("output_item.added", "web_search_call.in_progress", "web_search_call.searching"),
        *("web_search_call.completed", "output_item.done"),
    ]
    written = [
        *("output_item.added", "content_part.added", "output_text.delta", "output_text.annotation.added"),
        *("output_text.done", "content_part.done", "output_item.done"),
    ]
    assert distinct == ["created", "in_progress", *reasoned, *searched, *reasoned, *written, "completed"]


def test_the_stream_helper_of_the_client_gathers_the_same_response() -> None:
    async def helped(client: AsyncOpenAI) -> Any:
        async with client.responses.stream(model="cairn", input=QUESTION) as stream:
            seen = [event async for event in stream]
            return seen, await stream.get_final_response()

    seen, final = ask(helped)
    plain = ask(whole)
    assert final.output_text == plain.output_text == "Trieste"
    assert [event.snapshot for event in seen if event.type == "response.output_text.delta"][-1] == "Trieste"
    assert [(item.type, getattr(item, "summary", None)) for item in final.output] == [
        (item.type, getattr(item, "summary", None)) for item in plain.output
    ]
    assert len(final.output[-1].content[0].annotations) == 2


def test_what_an_event_says_is_done_is_what_the_last_one_holds() -> None:
    got = ask(events)
    done = {event.output_index: event.item for event in got if event.type == "response.output_item.done"}
    assert [done[at].model_dump() for at in sorted(done)] == [item.model_dump() for item in got[-1].response.output]
    reasoning = "".join(event.delta for event in got if event.type == "response.reasoning_summary_text.delta")
    assert reasoning == "".join(item.summary[0].text for item in got[-1].response.output if item.type == "reasoning")


def test_input_is_also_taken_as_items_with_earlier_turns_and_without_their_reasoning() -> None:
    seen: list[str] = []

    def turn(context: str) -> str:
        seen.append(context)
        return ANSWER if "<information>" in context else SEARCH

    earlier: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "secret"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Lina Orr [1]\n\n[1]: <https://a.org>", "annotations": []}],
        },
    ]  # fmt: skip
    said: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Who made it?"}]},
        *earlier,
    ]
    said.append({"role": "user", "content": "Where was she born?"})
    got = ask(lambda client: whole(client, input=said, instructions="Be brief."), make_service(turn))
    assert got.output_text == "Trieste"
    assert "Who made it?" in seen[0]
    assert "Lina Orr" in seen[0]
    for left_out in ("secret", "Be brief", "a.org"):
        assert left_out not in seen[0]
    assert got.instructions == "Be brief."


def test_the_output_of_one_response_is_the_input_of_the_next() -> None:
    async def twice(client: AsyncOpenAI) -> Any:
        first = await whole(client)
        output = [item.model_dump(exclude_none=True) for item in first.output]
        others = [{"type": name, "id": "x"} for name in ("custom_tool_call", "compaction", "one_of_next_year")]
        turns = [{"role": "user", "content": QUESTION}, *output, *others, {"role": "user", "content": "And then?"}]
        return await whole(client, input=turns)

    assert ask(twice).output_text == "Trieste"


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        ({"previous_response_id": "resp_1"}, "send the earlier turns as items of 'input'"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "send the earlier items in full"),
        ({"input": []}, "last message must have the role 'user'"),
        ({"input": " "}, "The question is empty"),
        ({"input": [{"role": "king", "content": "x"}]}, "cannot be used"),
        ({"input": [{"type": "shell_call"}]}, "last message must have the role 'user'"),
        ({"input": 3}, "cannot be used"),
        ({"extra_body": {"sources": ["bing"]}}, "choose from: web, kg"),
        ({"max_output_tokens": 0}, "'max_output_tokens' cannot be used"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_hint(parameters: dict[str, Any], hint: str) -> None:
    with pytest.raises(BadRequestError) as error:
        ask(lambda client: whole(client, **parameters))
    assert hint in error.value.message
    assert error.value.type == "invalid_request_error"


def test_an_unknown_model_is_an_error_object_with_those_there_are() -> None:
    with pytest.raises(NotFoundError, match="choose from: cairn"):
        ask(lambda client: whole(client, model="gpt-9"))


def test_the_stores_id_of_a_response_that_is_not_kept_is_a_plain_error() -> None:
    with pytest.raises(NotFoundError):
        ask(lambda client: client.responses.retrieve("resp_1"))


def test_an_engine_that_fails_is_an_error_object_before_and_a_failed_response_after_the_start() -> None:
    broken = (SEARCH, PolicyError("the engine is out of memory"))
    with pytest.raises(APIError, match="out of memory") as error:
        ask(whole, make_service(broken))
    assert error.value.code == "engine_failed"
    got = ask(events, make_service(broken))
    assert (got[-1].type, got[-1].response.status) == ("response.failed", "failed")
    assert "out of memory" in got[-1].response.error.message
    added = [event.output_index for event in got if event.type == "response.output_item.added"]
    done = [event.output_index for event in got if event.type == "response.output_item.done"]
    assert sorted(done) == added


def test_an_answer_that_breaks_off_leaves_no_item_open() -> None:
    reply = RolloutReply(protocol_named("cairn"))
    output = Output(ResponseObject(id="resp_1", created_at=0, model="cairn"))
    events = [event for part in reply.feed(Delta(role="answer", text="Tri")) for event in output.feed(part)]
    events += output.fail(internal_error(), reply)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[-2:]] == ["response.output_item.done", "response.failed"]
    assert (events[-2]["item"]["status"], events[-2]["item"]["content"][0]["text"]) == ("incomplete", "Tri")
    assert events[-1]["response"]["output"] == [events[-2]["item"]]


def test_an_answer_that_runs_out_of_tokens_is_incomplete() -> None:
    service = make_service((SEARCH, "Trieste</answer>"))
    got = ask(lambda client: events(client, max_output_tokens=20), service)
    assert (got[-1].type, got[-1].response.incomplete_details.reason) == ("response.incomplete", "max_output_tokens")
    assert got[-1].response.output_text


def test_options_and_profiles_hold_here_too() -> None:
    got = ask(lambda client: whole(client, extra_body={"profile": "markdown-links"}))
    assert got.output_text.endswith('[2]: <https://example.org/falls> "Director Of Aurora Falls"')
    options = {"disable_search": True}
    response = ask(lambda client: whole(client, extra_body=options), make_service((SEARCH, "Trieste</answer>")))
    assert response.output_text == "Trieste\n\nThis was answered without a search."
    assert "web_search_call" not in [item.type for item in response.output]


def test_a_server_that_stops_says_so_with_the_next_number() -> None:
    async def run() -> list[str]:
        source = Hanging()
        sources: dict[str, Source] = {"web": source, "kg": source, "all": source}
        agent = Agent(policy=ScriptedPolicy((SEARCH, ANSWER)), protocol=protocol_named("cairn"), sources=sources)
        service = make_service(agent=agent)
        async with serving(service) as address, httpx2.AsyncClient(trust_env=False, timeout=20) as client:
            body = {"model": "cairn", "input": QUESTION, "stream": True}
            async with client.stream("POST", f"{address}/v1/responses", json=body) as answer:
                await source.requested.wait()
                service.runs.end()
                return [line async for line in answer.aiter_lines() if line.startswith(("event:", "data:"))]

    lines = asyncio.run(run())
    assert lines[-2] == "event: error"
    assert f'"sequence_number":{len(lines) // 2 - 1},' in lines[-1]
    assert "The server was stopped" in lines[-1]


def test_a_body_that_is_none_is_answered_with_what_a_request_holds() -> None:
    async def run() -> dict[str, Any]:
        async with in_memory(make_service()) as client:
            return (await client.post("/v1/responses", json={"model": "cairn"})).json()

    error = asyncio.run(run())["error"]
    assert (error["param"], error["code"]) == ("input", "missing_required_parameter")
    assert '"input": "your question"' in error["message"]
