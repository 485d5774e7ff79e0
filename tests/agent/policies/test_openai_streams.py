"""How a chat's stream is read: to its end, and line by line as the server sent it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from agent.outbound.llm import LlmClient
from agent.policies.openai_chat import ChatContext, ChatPolicy
from agent.protocols import protocol_named
from tests.agent.policies.chat_server import ChatServer, Reply, chat_server
from tests.agent.policies.engine import run, turn

CAIRN = protocol_named("cairn")
STOP = CAIRN.stop_texts
SEARCH = "<think>Look.</think>\n<search>\nA: who wrote Dune (web)\n</search>"
ANSWER = "<answer>Frank Herbert</answer>"


@asynccontextmanager
async def chat(server: ChatServer) -> AsyncGenerator[ChatContext]:
    policy = ChatPolicy(LlmClient(base_url=server.url, model="small", seconds=10))
    try:
        yield policy.open(CAIRN, "Who wrote Dune?")
    finally:
        await policy.aclose()


def test_turns_that_ended_by_themselves_share_a_connection_and_one_that_was_cut_leaves_it():
    async def scene():
        cut = Reply([SEARCH, ANSWER], honours_stop=False)
        async with chat_server(Reply([SEARCH]), Reply([SEARCH]), cut, Reply([ANSWER])) as server:
            counted: list[int] = []
            async with chat(server) as context:
                for _ in range(4):
                    await turn(context, stop=STOP)
                    counted.append(len(server.connections))
            assert counted == [1, 1, 1, 2]

    run(scene())


@pytest.mark.parametrize("bytes_at_once", [0, 1])
def test_separators_that_json_may_hold_as_they_are_do_not_end_a_line(bytes_at_once: int):
    async def scene():
        said = "<think>a\u2028b\u0085c\u2029d</think>"
        async with chat_server(Reply([said], bytes_at_once=bytes_at_once)) as server, chat(server) as context:
            await turn(context, stop=STOP)
            assert context.segments[-1].text == said

    run(scene())
