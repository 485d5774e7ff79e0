"""Requests with the same context share its computation, and workers share the requests: the text does not show it."""

import asyncio
import random
import threading
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.errors import PolicyError
from agent.policies import torch_engine
from agent.policies.base import Sampling
from agent.policies.torch_engine import Session, TorchEngine
from agent.policies.torch_rows import BatchRows
from tests.agent.policies.held import Hold
from tests.agent.policies.test_torch_engine import random_model

pytestmark = pytest.mark.train

WARM = Sampling(temperature=1.0)
PROMPTS = [tuple((11 * n + k) % 90 + 5 for k in range(4 + 9 * n)) for n in range(5)]


@dataclass(frozen=True)
class Wanted:
    prompt: Sequence[int]
    sampling: Sampling = WARM
    tokens: int = 20
    leaves: int = 0
    """The request ends after this number of tokens; 0: never."""


Said = list[tuple[int, float]]


async def say(session: Session, wanted: Wanted) -> Said:
    said: Said = []
    batches = session.sample(wanted.prompt, wanted.sampling, ends=frozenset(), max_tokens=wanted.tokens)
    async with aclosing(batches):
        async for batch in batches:
            said += batch
            if wanted.leaves and len(said) >= wanted.leaves:
                return said[: wanted.leaves]
    return said


def outcomes(engine: TorchEngine, requests: Sequence[Wanted], *, first: int = 20) -> list[Said | BaseException]:
    """What becomes of each, where all are there before the engine reads one: another one, of `first` tokens, holds it."""
    hold = Hold()

    async def scene(monkeypatch: pytest.MonkeyPatch) -> list[Said | BaseException]:
        hold.install(monkeypatch)
        async with asyncio.timeout(60), hold:
            holding = asyncio.create_task(say(Session(engine), Wanted((3, 4), tokens=first)))
            await asyncio.to_thread(hold.reached.wait, 20)
            saying = [asyncio.create_task(say(Session(engine), one)) for one in requests]
            await asyncio.sleep(0)
            assert len(hold.counts) == 1 + len(requests)
            hold.released.set()
            said = await asyncio.gather(*saying, return_exceptions=True)
            await asyncio.gather(holding, return_exceptions=True)
            return said

    try:
        with pytest.MonkeyPatch.context() as monkeypatch:
            return asyncio.run(scene(monkeypatch))
    finally:
        engine.close()


def side_by_side(engine: TorchEngine, requests: Sequence[Wanted], *, first: int = 20) -> list[Said]:
    said = [one for one in outcomes(engine, requests, first=first) if isinstance(one, list)]
    assert len(said) == len(requests)
    return said


def alone(requests: Sequence[Wanted]) -> list[Said]:
    """One after the other, so that none shares anything."""
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu")

    async def scene() -> list[Said]:
        return [await say(Session(engine), one) for one in requests]

    try:
        return asyncio.run(scene())
    finally:
        engine.close()


def alike(left: Sequence[Said], right: Sequence[Said]) -> None:
    assert [[number for number, _ in said] for said in left] == [[number for number, _ in said] for said in right]
    for one, other in zip(left, right, strict=True):
        assert [logprob for _, logprob in one] == pytest.approx([logprob for _, logprob in other], abs=1e-4)


def test_a_context_of_many_requests_is_read_once_and_each_says_what_it_says_alone():
    requests = [Wanted(PROMPTS[3], Sampling(temperature=0.3, seed=seed)) for seed in range(8)]
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu")
    said = side_by_side(engine, requests)
    alike(said, alone(requests))
    assert engine.use.read == 2 + len(PROMPTS[3])
    assert engine.use.sampled == 20 + sum(map(len, said))
    texts = [[number for number, _ in one] for one in said]
    assert len({tuple(text) for text in texts}) >= 2  # they part


def test_what_is_said_by_many_is_computed_once(monkeypatch: pytest.MonkeyPatch):
    rows: list[int] = []
    step = BatchRows.step

    def watched(self: BatchRows, ids: Sequence[int]) -> Any:
        rows.append(len(ids))
        return step(self, ids)

    monkeypatch.setattr(BatchRows, "step", watched)
    requests = [Wanted(PROMPTS[2], Sampling(), tokens=8 + seed) for seed in range(6)]
    said = side_by_side(TorchEngine(random_model("Qwen3Config"), device="cpu"), requests, first=1)
    assert [len(one) for one in said] == [8, 9, 10, 11, 12, 13]
    assert rows == [1] * 12  # of the longest; the first token of each was the prompt's


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_and_goes_each_says_what_it_says_alone(seed: int, monkeypatch: pytest.MonkeyPatch):
    chance = random.Random(seed)
    ways = (Sampling(), Sampling(temperature=0.5, seed=1), Sampling(temperature=1.0, seed=2, top_k=5))
    requests = [
        Wanted(chance.choice(PROMPTS), chance.choice(ways), chance.randint(1, 25), chance.choice((0, 0, 0, 3)))
        for _ in range(20)
    ]
    expected = alone(requests)
    for workers, together in ((1, False), (2, False), (3, False), (1, True)):
        monkeypatch.setattr(torch_engine, "PIECE_TOKENS", 80 if together else 16)
        engine = TorchEngine(random_model("Qwen3Config"), device="cpu", workers=workers, rows=6, together=together)
        alike(side_by_side(engine, requests), expected)
        assert (engine.busy, engine._lines) == (0, {})  # pyright: ignore[reportPrivateUsage]


def test_every_worker_works(monkeypatch: pytest.MonkeyPatch):
    names: set[str] = set()
    step = BatchRows.step

    def watched(self: BatchRows, ids: Sequence[int]) -> Any:
        names.add(threading.current_thread().name)
        return step(self, ids)

    monkeypatch.setattr(BatchRows, "step", watched)
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu", workers=2)
    side_by_side(engine, [Wanted(prompt) for prompt in PROMPTS])
    assert names == {"cairn-torch-0", "cairn-torch-1"}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_remembers_what_was_computed_for_all(workers: int):
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu", workers=workers)
    sessions = [Session(engine) for _ in range(4)]
    more = (7, 8, 9)

    async def scene() -> tuple[list[int], list[int]]:
        greedy = [Wanted(PROMPTS[4], Sampling(), tokens=6 + n) for n in range(4)]
        said = await asyncio.gather(*map(say, sessions, greedy))
        texts = [(*PROMPTS[4], *(number for number, _ in one)) for one in said]
        read: list[int] = []
        for session, text in zip(sessions, texts, strict=True):  # one by one: they have different contexts by now
            before = engine.use.read
            await say(session, Wanted((*text, *more), tokens=2))
            read.append(engine.use.read - before)
        return read, [len(text) for text in texts]

    try:
        read, lengths = asyncio.run(asyncio.wait_for(scene(), 60))
    finally:
        engine.close()
    assert lengths == [len(PROMPTS[4]) + 6 + n for n in range(4)]
    assert read == [1 + len(more)] * 4  # the last token was sampled, and not computed yet


def test_what_breaks_a_context_fails_all_of_its_requests_and_no_others():
    hostile = Wanted((10**6, 5))
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu")
    good, *failed = outcomes(engine, [Wanted(PROMPTS[1]), hostile, hostile, hostile])
    assert isinstance(good, list)
    assert len(good) == 20
    for error in failed:
        assert isinstance(error, PolicyError)
        assert "the transformers engine failed" in str(error)


def test_an_error_while_they_part_reaches_everyone(monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise MemoryError("no room for another row")

    monkeypatch.setattr(BatchRows, "take", full)
    requests = [Wanted(PROMPTS[3], Sampling(temperature=2.0, seed=seed)) for seed in range(8)]
    failed = outcomes(TorchEngine(random_model("Qwen3Config"), device="cpu"), requests)
    assert len(failed) == 8
    for error in failed:
        assert isinstance(error, PolicyError)
        assert "no room for another row" in str(error)


def test_what_is_read_between_two_tokens_is_bounded_and_short_prompts_share_it(monkeypatch: pytest.MonkeyPatch):
    read: list[list[int]] = [[]]
    """Tokens of each piece, by what was read between two steps."""
    extend, step = BatchRows.extend, BatchRows.step

    def watched_extend(self: BatchRows, cache: Any, ids: Sequence[int]) -> Any:
        read[-1].append(len(ids))
        return extend(self, cache, ids)

    def watched_step(self: BatchRows, ids: Sequence[int]) -> Any:
        read.append([])
        return step(self, ids)

    monkeypatch.setattr(torch_engine, "PIECE_TOKENS", 12)
    monkeypatch.setattr(BatchRows, "extend", watched_extend)
    monkeypatch.setattr(BatchRows, "step", watched_step)
    engine = TorchEngine(random_model("Qwen3Config"), device="cpu")
    side_by_side(
        engine, [Wanted(range(first, first + n), tokens=2) for first, n in ((3, 5), (9, 5), (20, 5), (40, 30))]
    )
    assert [pieces for pieces in read if pieces] == [[2], [5, 5, 2], [3, 9], [12], [9]]
