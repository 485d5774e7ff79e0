"""`cairn-chat`, which answers without searching: however it ends, the end is reported as that of any other run."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agent.loop.budgets import Budgets, Control
from agent.loop.plain import PlainChat, plain_protocol
from agent.policies.base import Chunk, Sampling
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol
from agent.trace import Event, Trace
from server.chat.service import Service
from tests.server.live import HangingContext, HangingPolicy, in_memory, make_service
from tests.server.runs.replicas import all_events, client_of, keeping_service


@dataclass(frozen=True)
class Stalling(HangingPolicy):
    """Says the beginning of an answer, and then nothing."""

    instructed: bool = True

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> HangingContext:
        return StallingContext(self, question)


class StallingContext(HangingContext):
    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        yield Chunk("A title", ids=(1,), logprobs=(0.0,))
        async for chunk in super().generate(sampling, stop=stop, max_tokens=max_tokens):
            yield chunk


def chat(policy: ScriptedPolicy, budgets: Budgets, control: Control | None = None) -> Trace:
    async def run() -> Trace:
        trace = Trace(id="t", question="q", protocol="chat", policy=policy.name)
        events: list[Event] = []
        made = PlainChat(policy, plain_protocol(""), Sampling(), budgets)
        async with asyncio.timeout(20):
            return await made.run(trace, emit=events.append, control=control or Control())

    return asyncio.run(run())


def of(policy: ScriptedPolicy, service: Service | None = None) -> Service:
    service = service or make_service()
    return replace(service, agent=replace(service.agent, policy=policy))


REQUEST: dict[str, Any] = {"model": "cairn-chat", "messages": [{"role": "user", "content": "A title, please."}]}


def test_its_time_ends_it_with_what_it_said() -> None:
    trace = chat(Stalling(), Budgets(seconds=0.05))
    assert trace.stopped is not None
    assert (trace.stopped.reason, trace.stopped.budget, trace.answer) == ("forced", "seconds", "A title")


def test_the_users_word_ends_it_with_what_it_said() -> None:
    control = Control()
    control.answer_now()
    trace = chat(Stalling(), Budgets(), control)
    assert trace.stopped is not None
    assert (trace.stopped.reason, trace.stopped.budget) == ("forced", "user")


def test_a_context_that_is_full_ends_it_as_it_ends_a_search() -> None:
    policy = ScriptedPolicy(("A title",), instructed=True, context_tokens=300)
    trace = chat(replace(policy, context_tokens=len(plain_protocol("").instructions) + 3), Budgets())
    assert trace.stopped is not None
    assert trace.stopped.budget in ("context", "policy_tokens")
    assert not trace.infrastructure


def test_one_that_is_cancelled_says_so(tmp_path: Any) -> None:
    async def run() -> dict[str, Any]:
        policy = Stalling()
        service = of(policy, keeping_service(str(tmp_path / "runs.sqlite")))
        async with asyncio.timeout(30), client_of(service) as client:
            id = (await client.post("/api/runs", json=REQUEST)).json()["id"]
            await policy.requested.wait()
            await client.post(f"/api/runs/{id}/cancel")
            return (await all_events(client, id))[-1].data

    assert asyncio.run(run())["state"] == "cancelled"


@pytest.mark.parametrize(("chars", "status"), [(20_000, 200), (20_001, 400)])
def test_instructions_are_bounded_where_they_are_read(chars: int, status: int) -> None:
    async def run(model: str) -> Any:
        service = of(ScriptedPolicy(("A title",), instructed=True))
        messages = [{"role": "system", "content": "x" * chars}, *REQUEST["messages"]]
        async with in_memory(service) as client:
            return await client.post("/v1/chat/completions", json={"model": model, "messages": messages})

    answer = asyncio.run(run("cairn-chat"))
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["error"]["code"] == "instructions_too_long"


def replied(policy: ScriptedPolicy, **parameters: Any) -> Any:
    async def run() -> Any:
        async with in_memory(of(policy)) as client:
            return (await client.post("/v1/chat/completions", json=REQUEST | parameters)).json()

    return asyncio.run(run())


def test_what_it_thinks_is_no_part_of_the_answers_tokens() -> None:
    thought = "Let me see. " * 20
    answer = replied(ScriptedPolicy((f"<think>{thought}</think>A title",), instructed=True))
    assert answer["choices"][0]["message"]["content"] == "A title"
    used = answer["usage"]
    assert len(thought) <= used["completion_tokens_details"]["reasoning_tokens"] < used["completion_tokens"]
    without = replied(ScriptedPolicy(("A title",), instructed=True))["usage"]
    assert without["completion_tokens_details"]["reasoning_tokens"] == 0


def test_it_samples_with_the_seed_of_the_request() -> None:
    seeds: list[int | None] = []

    class Listening(Stalling):
        def open(
            self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
        ) -> HangingContext:
            return ListeningContext(self, question)

    class ListeningContext(HangingContext):
        async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
            seeds.append(sampling.seed)
            yield Chunk("A title", ids=(1,), logprobs=(0.0,))

    assert replied(Listening(), seed=77)["choices"][0]["message"]["content"] == "A title"
    assert seeds == [77]
