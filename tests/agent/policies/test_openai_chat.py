"""The chat policy against a real server on this machine: what is sent, what is read, and what goes wrong."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from agent.errors import ContextFull, PolicyError
from agent.loop.agent import Agent
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.policies.base import Sampling
from agent.policies.openai_chat import ChatContext, ChatPolicy
from agent.protocols import protocol_named
from agent.protocols.parse import Block, TagReader
from agent.trace import Trace
from tests.agent.policies.chat_server import ChatServer, Refusal, Reply, chat_server
from tests.agent.policies.engine import run, turn
from tests.conftest import Echo

CAIRN = protocol_named("cairn")
STOP = CAIRN.stop_texts
SEARCH = "<think>Look.</think>\n<search>\nA: who wrote Dune (web)\n</search>"
ANSWER = "<answer>Frank Herbert</answer>"


@asynccontextmanager
async def chat(
    server: ChatServer, *, seconds: float = 10, retries: int = 2, **more: Any
) -> AsyncGenerator[ChatContext]:
    reached = LlmClient(
        base_url=server.url, model="small", api_key="sk-secret", seconds=seconds, retries=Retries(retries)
    )
    policy = ChatPolicy(reached, **more)
    try:
        yield policy.open(CAIRN, "Who wrote Dune?", history=[("Hello?", "Hello.")])
    finally:
        await policy.aclose()


def blocks(text: str) -> list[tuple[str, str]]:
    reader = TagReader(CAIRN.policy_marks)
    return [(part.role, part.text) for part in [*reader.feed(text), *reader.close()] if isinstance(part, Block)]


async def failure(*replies: Reply | Refusal, seconds: float = 10, retries: int = 0) -> str:
    async with chat_server(*replies) as server, chat(server, seconds=seconds, retries=retries) as context:
        with pytest.raises(PolicyError) as caught:
            await turn(context, stop=STOP)
        return str(caught.value)


# A turn


@pytest.mark.parametrize("bytes_at_once", [0, 1, 7])
def test_a_stop_text_that_the_server_dropped_is_put_back(bytes_at_once: int):
    async def scene():
        says = [SEARCH[n : n + 5] for n in range(0, len(SEARCH), 5)] + ["never seen é"]
        async with chat_server(Reply(says, bytes_at_once=bytes_at_once)) as server, chat(server) as context:
            chunks = await turn(context, stop=STOP)
            assert "".join(chunk.text for chunk in chunks) == SEARCH
            assert context.segments[-1].text == SEARCH
            assert context.segments[-1].by == "policy"
            assert server.requests[0]["stop"] == list(STOP)

    run(scene())


def test_a_server_that_knows_no_stop_is_cut_and_left():
    async def scene():
        says = [SEARCH[:-3], SEARCH[-3:] + "\n<information>made up</information>", ANSWER]
        reply = Reply(says, honours_stop=False, hangs=True)
        async with chat_server(reply) as server, chat(server) as context:
            await turn(context, stop=STOP)
            assert context.segments[-1].text == SEARCH
            await server.left.wait()

    run(scene())


@pytest.mark.parametrize("text", ["I do not know.", "<think>Hm.</think>", "<merge>Open", "<think>Open, <search>too"])
def test_nothing_is_put_back_where_no_stop_block_is_open(text: str):
    async def scene():
        async with chat_server(Reply([text])) as server, chat(server) as context:
            await turn(context, stop=STOP)
            assert context.segments[-1].text == text

    run(scene())


def test_a_turn_cut_for_want_of_tokens_says_so_and_gets_no_closing_tag():
    async def scene():
        async with chat_server(Reply(["<search>who wr"], finish="length")) as server, chat(server) as context:
            chunks = await turn(context, stop=STOP, max_tokens=3)
            assert chunks[-1].cut
            assert context.segments[-1].text == "<search>who wr"
            assert server.requests[0]["max_tokens"] == 3

    run(scene())


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_thought_and_cannot_close_itself_or_speak(name: str):
    async def scene():
        hidden = "They say <answer>x</answer></search></think><answer>y</answer>"
        says = [*({name: hidden[n : n + 4]} for n in range(0, len(hidden), 4)), "<search>\nq\n</search>"]
        async with chat_server(Reply(says)) as server, chat(server) as context:
            await turn(context, stop=STOP)
            read = blocks(context.segments[-1].text)
            assert [role for role, _ in read] == ["thought", "search"]
            assert read[0][1] == hidden.replace("</think>", "(/think)")

    run(scene())


def test_reasoning_alone_is_a_closed_thought():
    async def scene():
        async with chat_server(Reply([{"reasoning": "Hm"}])) as server, chat(server) as context:
            await turn(context, stop=STOP)
            assert blocks(context.segments[-1].text) == [("thought", "Hm")]

    run(scene())


def test_closing_early_keeps_what_was_given_and_leaves_the_server():
    async def scene():
        async with chat_server(Reply(["<think>Lo"], hangs=True)) as server, chat(server) as context:
            async with aclosing(context.generate(Sampling(), stop=STOP, max_tokens=9)) as chunks:
                assert (await anext(chunks)).text == "<think>Lo"
            await server.left.wait()
            assert context.segments[-1].text == "<think>Lo"

    run(scene())


def test_cancelling_the_task_leaves_the_server():
    async def scene():
        async with chat_server(Reply(hangs=True)) as server, chat(server) as context:
            task = asyncio.create_task(turn(context, stop=STOP))
            await server.requested.wait()
            task.cancel()
            await server.left.wait()
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)

    run(scene())


# What is sent


def test_the_rules_are_the_systems_message_and_turns_alternate():
    async def scene():
        replies = [Reply([{"reasoning": "secret thought"}, SEARCH]), Reply([ANSWER])]
        async with chat_server(*replies) as server, chat(server, sources=("web", "kg")) as context:
            await turn(context, stop=STOP)
            context.append("\n<information>\n[1] A\n</information>\n", by="environment")
            context.append("Answer now.", by="loop")
            await turn(context, stop=STOP)
            first, second = (request["messages"] for request in server.requests)
            assert "web, kg" in first[0]["content"]
            assert f"at most {CAIRN.max_rounds} times" in first[0]["content"]
            assert [m["role"] for m in second] == ["system", "user", "assistant", "user", "assistant", "user"]
            assert [m["content"] for m in second[1:5]] == ["Hello?", "Hello.", "Who wrote Dune?", SEARCH]
            assert second[5]["content"] == "<information>\n[1] A\n</information>\n\nAnswer now."
            assert [segment.by for segment in context.segments] == ["prompt", "policy", "environment", "loop", "policy"]

    run(scene())


def test_two_turns_in_a_row_are_parted_by_one_of_the_users():
    async def scene():
        async with chat_server(Reply(["One."]), Reply(["Two."])) as server, chat(server) as context:
            await turn(context)
            await turn(context)
            assert [m["role"] for m in server.requests[1]["messages"]][-2:] == ["assistant", "user"]

    run(scene())


def test_sampling_is_sent_as_it_is():
    async def scene():
        async with chat_server(Reply(["x"])) as server, chat(server) as context:
            await turn(context)
            await turn(context, sampling=Sampling(temperature=0.7, top_p=0.9, top_k=20, seed=4))
            greedy, warm = server.requests
            assert greedy["temperature"] == 0
            assert {"seed", "top_p", "top_k", "stop"}.isdisjoint(greedy)
            assert [warm[name] for name in ("temperature", "top_p", "top_k", "seed")] == [0.7, 0.9, 20, 4]

    run(scene())


@pytest.mark.parametrize(
    ("parameter", "error"),
    [
        ("max_tokens", {"message": "Use another.", "param": "max_tokens", "code": "unsupported_parameter"}),
        ("stop", {"message": "Unsupported parameter: 'stop' is not supported with this model."}),
        ("stream_options", {"message": "Unknown parameter: stream_options"}),
        ("temperature", {"message": "only 1", "param": "temperature"}),
    ],
)
def test_what_a_server_refuses_is_left_out_from_then_on(parameter: str, error: dict[str, str]):
    async def scene():
        replies = [Refusal(400, error), Reply([SEARCH, "more"], honours_stop=False)]
        async with chat_server(*replies) as server, chat(server) as context:
            await turn(context, stop=STOP)
            await turn(context, stop=STOP)
            assert parameter in server.requests[0]
            assert [parameter in request for request in server.requests[1:]] == [False, False]
            assert ("max_completion_tokens" in server.requests[1]) == (parameter == "max_tokens")
            assert context.segments[-1].text == SEARCH

    run(scene())


# Tokens


def test_the_servers_count_of_a_turn_is_taken_where_it_gives_one():
    async def scene():
        async with chat_server(Reply(["x" * 40], completion_tokens=77)) as server, chat(server) as context:
            before = context.tokens
            await turn(context)
            assert context.tokens - before == 77
            assert server.requests[0]["stream_options"] == {"include_usage": True}

    run(scene())


def test_without_a_count_characters_are_the_estimate_and_reasoning_counts():
    async def scene():
        async with chat_server(Reply([{"reasoning": "y" * 40}, "x" * 40])) as server, chat(server) as context:
            before = context.tokens
            await turn(context)
            assert context.tokens - before == 20

    run(scene())


def test_a_full_context_sends_no_request():
    async def scene():
        async with chat_server(Reply(["x"])) as server, chat(server, context_tokens=100) as context:
            with pytest.raises(ContextFull):
                await turn(context)
            assert server.requests == []

    run(scene())


# What goes wrong


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        (401, "CAIRN_API_KEY"),
        (403, "CAIRN_API_KEY"),
        (404, "name another --model"),
        (418, "is a chat model"),
        (429, "quota"),
        (500, "look at its log"),
        (503, "look at its log"),
    ],
)
def test_a_refusal_is_a_sentence_with_the_fix(status: int, fix: str):
    said = run(failure(Refusal(status, {"message": "Incorrect key sk-secret" if status in (401, 403) else "no"})))
    assert fix in said
    assert "http://127.0.0.1" in said
    assert "sk-secret" not in said


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "This model's maximum context length is 4096 tokens."},
        {"message": "the request is too long", "code": 400, "type": "exceed_context_size_error"},
        {"message": "the request exceeds the available context size, try increasing it"},
        {"message": "prompt is too long: 208310 tokens > 200000 maximum", "type": "invalid_request_error"},
        [{"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}],
    ],
)
def test_a_chat_too_long_for_the_model_is_a_full_context(error: dict[str, str] | list[dict[str, Any]]):
    async def scene():
        async with chat_server(Refusal(400, error)) as server, chat(server) as context:
            with pytest.raises(ContextFull, match="longer than small takes"):
                await turn(context)

    run(scene())


@pytest.mark.parametrize("status", [429, 500])
def test_a_passing_failure_is_tried_again_a_few_times(status: int):
    async def scene():
        async with chat_server(Refusal(status), Refusal(status), Reply(["ok"])) as server, chat(server) as context:
            await turn(context)
            assert context.segments[-1].text == "ok"
        async with chat_server(Refusal(status)) as server, chat(server, retries=1) as context:
            with pytest.raises(PolicyError):
                await turn(context)
            assert len(server.requests) == 2

    run(scene())


@pytest.mark.parametrize("reply", [Reply(["<think>Lo"], hangs=True), Reply(["<think>Lo"], dies=True)])
def test_a_server_that_took_the_request_gets_no_second_request(reply: Reply):
    async def scene():
        async with chat_server(reply) as server, chat(server, seconds=0.2, retries=5) as context:
            with pytest.raises(PolicyError):
                await turn(context, stop=STOP)
            assert len(server.requests) == 1

    run(scene())


@pytest.mark.parametrize("wanted", ["31", "60000"])
def test_a_server_that_wants_to_be_left_alone_for_long_is_left_alone(wanted: str):
    async def scene():
        name = "retry-after" if len(wanted) < 4 else "retry-after-ms"
        async with chat_server(Refusal(429, headers={name: wanted})) as server, chat(server) as context:
            with pytest.raises(PolicyError, match="accepts no more requests now"):
                await turn(context)
            assert len(server.requests) == 1

    run(scene())


def test_no_server_is_reported():
    async def scene():
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            server = ChatServer([], url=f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
            async with chat(server, retries=0) as context:
                with pytest.raises(PolicyError, match=r"no server at http://127\.0\.0\.1:\d+/v1: is it running"):
                    await turn(context)

    run(scene())


@pytest.mark.parametrize("reply", [Reply(["<think>Lo"], dies=True), Reply(["<think>Lo"], finish=None)])
def test_a_server_that_dies_in_the_middle_is_reported_and_what_it_said_is_kept(reply: Reply):
    async def scene():
        async with chat_server(reply) as server, chat(server) as context:
            with pytest.raises(PolicyError, match="broke off in the middle"):
                await turn(context, stop=STOP)
            assert context.segments[-1].text == "<think>Lo"

    run(scene())


def test_a_server_that_hangs_is_given_up():
    assert "was silent for 0.2 seconds" in run(failure(Reply(["<think>Lo"], hangs=True), seconds=0.2))


@pytest.mark.parametrize(
    ("raw", "fix"),
    [
        ("<html>Welcome</html>", "should end in /v1"),
        ("data: {broken\n\n", "OpenAI-compatible"),
        ('data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
    ],
)
def test_what_is_no_completion_is_reported(raw: str, fix: str):
    assert fix in run(failure(Reply(raw=raw)))


def test_a_content_filter_is_reported():
    assert "content filter" in run(failure(Reply(["x"], finish="content_filter")))


def test_a_refusal_of_the_model_is_reported_in_its_words():
    says = [{"refusal": "I can't help"}, {"refusal": " with that."}]
    assert "small refused: I can't help with that." in run(failure(Reply(says)))


# A whole rollout


def test_a_rollout_searches_and_answers_through_the_server():
    async def scene() -> Trace:
        async with chat_server(Reply([SEARCH]), Reply([ANSWER])) as server:
            policy = ChatPolicy(LlmClient(base_url=server.url, model="small"))
            agent = Agent(policy=policy, protocol=CAIRN, sources={"web": Echo(), "all": Echo()})
            trace = await agent.run(agent.new_trace("Who wrote Dune?"))
            await policy.aclose()
            return trace

    trace = run(scene())
    assert trace.answer == "Frank Herbert"
    assert trace.usage.searches == 1
    assert [segment.by for segment in trace.segments] == ["prompt", "policy", "environment", "policy"]
