"""The engine's threads: which requests share a call, which end early, and that each ends alone."""

import asyncio
import gc
import threading
from contextlib import aclosing

import pytest

from agent.errors import PolicyError
from agent.policies.base import Sampling
from agent.policies.batching import GROUP, GROUP_TOKENS, choose_group
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.requests import Request
from tests.agent.policies.engine import ENGINE, WARM, engine, ids_of, opened, run, sampled, turn
from tests.agent.policies.held import Hold


def engine_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("cairn-engine")]


# Ending early


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    held = Hold()
    held.install(monkeypatch)
    return held


def test_closing_early_keeps_what_was_given_and_frees_the_slot_at_the_next_token(hold: Hold):
    async def scene():
        async with engine(workers=1) as policy, hold:
            context = opened(policy)
            async with aclosing(context.generate(Sampling(), stop=[], max_tokens=450)) as chunks:
                first = await anext(chunks)
            hold.released.set()
            assert context.segments[-1].ids == first.ids
            assert len(first.ids) == 1
            await sampled(policy)
        assert hold.counts == [2, 40]

    run(scene())


def test_cancelling_the_task_keeps_what_was_given_and_frees_the_slot_at_the_next_token(hold: Hold):
    async def scene():
        async with engine(workers=1) as policy, hold:
            context = opened(policy)
            began = asyncio.Event()
            given: list[int] = []

            async def rollout():
                async for chunk in context.generate(Sampling(), stop=[], max_tokens=450):
                    given.extend(chunk.ids)
                    began.set()

            task = asyncio.create_task(rollout())
            await began.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            gc.collect()
            hold.released.set()
            assert list(ids_of(context.segments[-1])) == given
            await sampled(policy)
        assert hold.counts == [2, 40]

    run(scene())


def test_a_stop_text_frees_the_slot_at_the_next_token(hold: Hold):
    async def scene():
        async with engine(workers=1) as policy, hold:
            context = opened(policy)
            rollout = asyncio.create_task(turn(context, stop=[chr(n) for n in range(32, 127)], max_tokens=450))
            await asyncio.to_thread(hold.reached.wait, 20)
            await rollout
            hold.released.set()
            await sampled(policy)
        assert len(ids_of(context.segments[-1])) == 1
        assert hold.counts == [2, 40]

    run(scene())


def test_a_request_that_was_given_up_while_it_waited_costs_nothing(hold: Hold):
    async def scene():
        async with engine(workers=1) as policy, hold:
            first = asyncio.create_task(sampled(policy))
            await asyncio.to_thread(hold.reached.wait, 20)  # the only thread is at work
            waiting = [asyncio.create_task(sampled(policy)) for _ in range(30)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert policy.busy == 1
            hold.released.set()
            await first
        assert hold.counts == [40] + [0] * 30

    run(scene())


def test_closing_the_policy_ends_its_threads_and_all_that_wait(hold: Hold):
    """Those of the group that runs sample the token that they are at; none samples another one."""

    async def scene():
        async with engine(workers=1) as policy, hold:
            assert engine_threads()
            rollouts = [asyncio.create_task(turn(opened(policy), max_tokens=450)) for _ in range(12)]
            await asyncio.to_thread(hold.reached.wait, 20)
            closing = asyncio.create_task(policy.aclose())
            while not policy._engine._closed.is_set():  # noqa: ASYNC110  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0)
            hold.released.set()
            await closing
            assert engine_threads() == []
            assert sorted(hold.counts) == [0] * (12 - hold.counts.count(1)) + [1] * hold.counts.count(1)
            assert 1 <= hold.counts.count(1) <= GROUP
            results = await asyncio.gather(*rollouts, return_exceptions=True)
            assert all(isinstance(result, PolicyError) for result in results)
            with pytest.raises(PolicyError, match="closed"):
                await sampled(policy)
            await policy.aclose()

    run(scene())


def test_a_policy_without_references_ends_its_threads():
    policy = EmbeddedPolicy.load(ENGINE, workers=1)
    threads = engine_threads()
    assert threads
    del policy
    gc.collect()
    for thread in threads:
        thread.join(10)
    assert engine_threads() == []


def test_an_error_of_the_engine_reaches_who_waits_and_no_one_else():
    async def scene():
        async with engine(workers=1) as policy:
            broken = Request(
                prompt=(), sampling=Sampling(), ends=frozenset(), max_tokens=5, loop=asyncio.get_running_loop()
            )
            policy._engine.submit(broken)  # pyright: ignore[reportPrivateUsage]
            with pytest.raises(PolicyError, match="the embedded engine failed"):
                await broken.take()
            assert (await sampled(policy)).ids

    run(scene())


def test_the_event_loop_stays_free_while_the_engine_works():
    async def scene():
        async with engine(workers=1) as policy:
            rollout = asyncio.create_task(turn(opened(policy), max_tokens=450))
            turns = 0
            while not rollout.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns > 20

    run(scene())


# Who shares a call


def waiting(*lengths: int, sampling: Sampling | None = None) -> list[Request]:
    loop = asyncio.new_event_loop()
    requests = [
        Request(prompt=(2,) * n, sampling=sampling or Sampling(), ends=frozenset(), max_tokens=1, loop=loop)
        for n in lengths
    ]
    loop.close()
    return requests


def chosen(requests: list[Request]) -> list[int]:
    return [len(request.prompt) for request in choose_group(requests)]


def test_short_contexts_of_about_one_length_share_a_call():
    assert chosen(waiting(20, 25, 300, 31, 90)) == [20, 25, 31]


def test_a_long_context_is_alone():
    assert chosen(waiting(GROUP_TOKENS, 20, GROUP_TOKENS)) == [GROUP_TOKENS]


def test_a_call_takes_so_many_and_no_more():
    assert len(chosen(waiting(*[10] * 20))) == GROUP


def test_sampled_turns_never_share_a_call():
    assert len(chosen(waiting(20, 20, sampling=WARM))) == 1
    assert len(choose_group([*waiting(20), *waiting(20, sampling=WARM)])) == 1
