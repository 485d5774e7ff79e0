"""Readers whose connections are cut at random places, at the run's own server and at another one, over real HTTP."""

import asyncio
import json
import random
from collections.abc import Awaitable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace

import httpx2
import pytest

from agent.trace import Trace
from lab.benchmarks.load.paced import PacedPolicy, PacedSource, text_of
from server.chat.service import Service
from server.runs.following import StreamPosition, in_order
from tests.server.runs.replicas import Folded, Seen, all_events, client_of, events, keeping_service, start

MESSAGES = [{"role": "user", "content": text_of("whole", "m1x0")}]


def ignore(event: object) -> None:
    """Ignore when policy and searches are let go."""


def paced(location: str, *, tokens_per_s: float) -> Service:
    service = keeping_service(location)
    sources = {"web": PacedSource(ignore, seconds=0.02)}
    policy = PacedPolicy(ignore, tokens_per_s=tokens_per_s, tokens=(60, 30))
    return replace(service, agent=replace(service.agent, policy=policy, sources=sources))


def within_a_minute(test: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())


@dataclass
class Cut(Folded):
    """A reader that remembers what it had after each piece of text."""

    had: list[tuple[StreamPosition, str]] = field(default_factory=list[tuple[StreamPosition, str]])
    within: int = 0
    """How often it came back into the middle of a block."""

    def take(self, seen: Seen) -> None:
        super().take(seen)
        place = StreamPosition.of(seen.id)
        assert place.steps == len(self.steps)
        self.within += seen.event == "snapshot"
        if seen.event in ("delta", "snapshot"):
            self.had.append((place, "".join(text for _, text in self.open)))

    async def read(self, clients: list[httpx2.AsyncClient], run: str, chance: random.Random) -> None:
        while not self.over:
            client = chance.choice(clients)
            with suppress(TimeoutError):
                async with (
                    asyncio.timeout(chance.uniform(0.0, 0.3)),
                    aclosing(events(client, run, after=self.last)) as connection,
                ):
                    async for seen in connection:
                        self.take(seen)


def test_however_often_a_reader_is_cut_and_wherever_it_comes_back_it_has_every_character_once(
    location: str,
) -> None:
    if location == "memory":
        pytest.skip("there is one server to it")

    async def test() -> None:
        chance = random.Random(7)
        async with AsyncExitStack() as stack:
            owner = await stack.enter_async_context(client_of(paced(location, tokens_per_s=60)))
            other = await stack.enter_async_context(client_of(keeping_service(location)))
            run = await start(owner, messages=MESSAGES)
            readers = [(Cut(), [owner]), (Cut(), [owner, other]), (Cut(), [other])]
            reading = [reader.read(clients, run, random.Random(chance.random())) for reader, clients in readers]
            following = asyncio.create_task(all_events(owner, run))
            await asyncio.gather(*reading)
            all_seen = await following
            stored = Trace.model_validate((await other.get(f"/api/runs/{run}")).json()["trace"])
        whole = Folded()
        for seen in all_seen:
            whole.take(seen)
        hold_what_was_said(whole, stored)
        for reader, _ in readers:
            assert reader.steps == whole.steps
            for place, text in reader.had:
                assert text == whole.said[place.steps][: place.chars]
                assert len(text) == place.chars
        assert sum(reader.within for reader, _ in readers) >= 3, "a reader came back into the middle of a block"

    within_a_minute(test())


def hold_what_was_said(whole: Folded, stored: Trace) -> None:
    """The text that came before each step is that step's, and the steps are those of the trace that is kept."""
    assert whole.steps == [json.loads(step) for step in in_order(stored)]
    texts = {"thought", "answered"}
    said = [(step, text) for step, text in zip(whole.steps, whole.said, strict=True) if step["kind"] in texts]
    assert {step["kind"] for step, _ in said} == texts
    for step, text in said:
        assert text.strip() == step["text"].strip()


def test_a_reader_that_comes_back_to_the_very_place_gets_the_open_block_again() -> None:
    async def test() -> None:
        async with client_of(paced("memory", tokens_per_s=20)) as client:
            run = await start(client, messages=MESSAGES)
            reader = Folded()
            async with aclosing(events(client, run)) as connection:
                while not reader.open:
                    reader.take(await anext(connection))
            async with aclosing(events(client, run, after=reader.last)) as connection:
                first = await anext(connection)
            assert first.event == "snapshot"
            text = "".join(piece["text"] for piece in first.data)
            assert text.startswith("".join(text for _, text in reader.open))
            assert StreamPosition.of(first.id).chars == len(text)

    within_a_minute(test())
