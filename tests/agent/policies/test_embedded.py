"""The embedded engine: what it samples, where it stops, and that many rollouts share it without meeting."""

import asyncio
from collections.abc import Sequence
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.build.shipped import newest_checkpoint
from agent.errors import ContextFull
from agent.policies.base import Sampling
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.requests import Request
from agent.policies.tokens import whole
from tests.agent.policies.engine import CAIRN, ENGINE, WARM, engine, ids_of, opened, run, sampled, turn

# What a turn gives


@pytest.mark.parametrize("sampling", [Sampling(), WARM, Sampling(temperature=0.8, top_k=5, top_p=0.9)])
def test_chunks_segment_ids_and_text_agree(sampling: Sampling):
    async def scene():
        async with engine() as policy:
            context = opened(policy)
            before = context.tokens
            chunks = await turn(context, sampling=sampling)
            codec = policy.checkpoint.codec
            segment = context.segments[-1]
            assert segment.by == "policy"
            assert segment.logprobs is not None
            assert segment.text == "".join(chunk.text for chunk in chunks)
            assert segment.ids == tuple(number for chunk in chunks for number in chunk.ids)
            assert segment.logprobs == tuple(number for chunk in chunks for number in chunk.logprobs)
            assert segment.text == codec.decode(ids_of(segment))
            assert len(ids_of(segment)) == len(segment.logprobs) == context.tokens - before
            assert all(logprob <= 0 for logprob in segment.logprobs)

    run(scene())


def test_max_tokens_cut_the_turn_and_the_last_chunk_says_so():
    async def scene():
        async with engine() as policy:
            context = opened(policy)
            chunks = await turn(context, max_tokens=9)
            assert len(ids_of(context.segments[-1])) == 9
            assert chunks[-1].cut
            assert not any(chunk.cut for chunk in chunks[:-1])

    run(scene())


def test_a_listener_hears_of_each_call_of_the_engine():
    async def scene():
        heard: list[tuple[int, int]] = []
        async with engine() as policy:
            policy.listen(lambda group, began: heard.extend((len(one.prompt), one.count) for one in group))
            context = opened(policy)
            before = context.tokens
            await turn(context, max_tokens=9)
        assert heard == [(before, 9)]

    run(scene())


def test_a_listener_that_fails_harms_no_turn_and_not_the_thread():
    async def scene():
        def fail(group: Sequence[Request], began: int) -> None:
            raise OSError("no space left")

        async with engine(workers=1) as policy:
            policy.listen(fail)
            first, second = await turn(opened(policy), max_tokens=9), await turn(opened(policy), max_tokens=9)
            assert first == second
            assert first[-1].cut

    run(scene())


def test_a_stop_that_is_one_token_ends_the_turn_with_its_text():
    async def scene():
        async with engine() as policy:
            codec = policy.checkpoint.codec
            tags = {mark for role in CAIRN.tags for mark in (CAIRN.opening(role), CAIRN.closing(role))}
            for seed in range(100):  # until one with which the random model says a tag, and not at once
                warm = Sampling(temperature=1.0, seed=seed)
                said = [codec.tokens[number] for number in ids_of(await sampled(policy, sampling=warm))]
                if tag := next((token for token in said[5:] if token in tags and token not in said[:5]), None):
                    break
            else:
                raise AssertionError("the model never says a tag")
            context = opened(policy)
            chunks = await turn(context, sampling=warm, stop=[tag])
            given = [codec.tokens[number] for number in ids_of(context.segments[-1])]
            assert given == said[: said.index(tag) + 1]
            assert context.segments[-1].text.endswith(tag)
            assert not any(chunk.cut for chunk in chunks)

    run(scene())


def test_a_stop_spread_over_tokens_ends_the_turn_at_the_token_that_completes_it():
    async def scene():
        async with engine() as policy:
            free = await sampled(policy)
            codec = policy.checkpoint.codec
            stop = codec.decode(ids_of(free)[18:21])
            assert codec.id_of(stop) is None
            first = free.text.index(stop)
            context = opened(policy)
            await turn(context, stop=["?!", stop])
            segment = context.segments[-1]
            assert ids_of(free)[: len(ids_of(segment))] == segment.ids
            assert len(segment.text) >= first + len(stop)
            assert stop not in codec.decode(ids_of(segment)[:-1])

    run(scene())


def test_the_end_of_the_turn_is_sampled_kept_and_has_no_text():
    async def scene():
        async with engine() as policy:
            eos = policy.checkpoint.codec.eos
            for seed in range(200):
                context = opened(policy)
                chunks = await turn(context, sampling=Sampling(temperature=1.5, seed=seed), max_tokens=30)
                ids = ids_of(context.segments[-1])
                if eos in ids:
                    assert ids.index(eos) == len(ids) - 1
                    assert "<eos>" not in context.segments[-1].text
                    assert not chunks[-1].cut
                    return
            raise AssertionError("no turn ended by itself")

    run(scene())


# The same again


def test_greedy_gives_the_same_ids_alone_and_in_company():
    async def scene():
        async with engine() as policy:
            questions = [f"Who is number {n}{' and again' * (n % 7)}?" for n in range(24)]
            alone = [await sampled(policy, question) for question in questions]
            together = await asyncio.gather(*(sampled(policy, question) for question in questions))
            for one, other in zip(alone, together, strict=True):
                assert one.ids == other.ids
                assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)

    run(scene())


def test_a_seed_gives_the_same_turn_whatever_else_is_sampled():
    async def scene():
        async with engine() as policy:
            first = await sampled(policy, sampling=WARM)
            others = await asyncio.gather(
                *(sampled(policy, sampling=sampling) for sampling in (WARM, Sampling(temperature=1.0, seed=8), WARM))
            )
            assert others[0].ids == others[2].ids == first.ids
            assert others[1].ids != first.ids

    run(scene())


def test_one_policy_serves_one_event_loop_after_another():
    policy = EmbeddedPolicy.load(ENGINE, workers=1)
    assert run(sampled(policy)) == run(sampled(policy))
    run(policy.aclose())


# The context


hostile = st.lists(
    st.sampled_from(["<answer>", "</search>", "<eos>", "<pad>", "</information>", "<information>", "x", "\udfff"])
    | st.text(max_size=4)
).map("".join)


@settings(max_examples=30, deadline=None)
@given(hostile)
def test_a_question_is_only_text(question: str):
    async def scene():
        async with engine(workers=1) as policy:
            codec = policy.checkpoint.codec
            prompt = opened(policy, question).segments[0]
            assert prompt.by == "prompt"
            assert whole(question) in prompt.text
            assert codec.decode(ids_of(prompt)) == prompt.text
            assert {codec.tokens[number] for number in ids_of(prompt)}.isdisjoint({"<answer>", "</search>", "<eos>"})

    run(scene())


def test_a_prompt_may_open_a_tag_and_the_question_may_not():
    async def scene():
        async with engine() as policy:
            protocol = CAIRN.model_copy(update={"prompt": "Q: {question}\n<think>"})
            codec = policy.checkpoint.codec
            ids = ids_of(policy.open(protocol, "<think>?").segments[0])
            assert ids.count(codec.id_of("<think>") or -1) == 1
            assert ids[-1:] == (codec.id_of("<think>"),)

    run(scene())


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("environment", ["<information>", "</information>"]),
        ("loop", ["<information>", "<answer>", "</information>"]),
        ("prompt", []),
    ],
)
def test_who_speaks_decides_which_tags_count(by: str, expected: list[str]):
    async def scene():
        async with engine() as policy:
            context = opened(policy)
            codec = policy.checkpoint.codec
            segment = context.append("<information>a <answer> <eos></information>", by=by)  # pyright: ignore[reportArgumentType]
            tags = [codec.tokens[number] for number in ids_of(segment) if codec.tokens[number].startswith("<")]
            assert [tag for tag in tags if len(tag) > 1] == expected
            assert codec.decode(ids_of(segment)) == segment.text
            assert context.segments[-1] == segment

    run(scene())


def test_a_question_that_is_too_long_says_so():
    async def scene():
        async with engine() as policy:
            with pytest.raises(ContextFull, match="tokens more do not fit"):
                opened(policy, "Who is it? " * 200)

    run(scene())


def test_text_that_does_not_fit_leaves_the_context_as_it_was():
    async def scene():
        async with engine() as policy:
            context = opened(policy)
            before = (context.tokens, list(context.segments))
            with pytest.raises(ContextFull):
                context.append("Who is it? " * 200, by="environment")
            assert (context.tokens, context.segments) == before

    run(scene())


def test_the_end_of_the_context_cuts_a_turn_and_refuses_the_next():
    async def scene():
        async with engine() as policy:
            context = opened(policy)
            context.append("7" * (policy.context_tokens - context.tokens - 12), by="environment")
            chunks = await turn(context, max_tokens=100)
            assert context.tokens == policy.context_tokens
            assert chunks[-1].cut
            with pytest.raises(ContextFull, match="full"):
                await turn(context)

    run(scene())


# In 8 bits


def test_in_8_bits_company_changes_a_token_only_where_two_are_nearly_tied():
    """How 8-bit products are rounded depends on who shares the batch, by less than 0.1 where it was looked at.

    Where the two likeliest tokens are nearer than that, company decides, and the turns part. `tiny-v2` had such a tie
    (0.013) in a question of this list, which no checkpoint was made for; in float32 the same turns were equal.
    """
    rounding = 0.25

    async def scene():
        policy = EmbeddedPolicy.load(newest_checkpoint(), workers=2)
        try:
            questions = [f"Who founded company {n}{' and again' * n}?" for n in range(8)]
            alone = [await sampled(policy, question) for question in questions]
            together = await asyncio.gather(*(sampled(policy, question) for question in questions))
        finally:
            await policy.aclose()
        for one, other in zip(alone, together, strict=True):
            assert one.logprobs is not None
            assert other.logprobs is not None
            pairs = zip(ids_of(one), ids_of(other), strict=False)
            parted = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            for mine, yours in zip(one.logprobs[: parted + 1], other.logprobs[: parted + 1], strict=True):
                assert mine == pytest.approx(yours, abs=rounding)

    run(scene())
