"""What every engine must show in one context: where turns stop, what is kept, what fails and how.

A test class inherits it and gives the fixture `case`; see `tests.agent.policies.engine_case`.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from agent.errors import ContextFull
from agent.policies.base import Chunk, Sampling
from agent.trace import Segment
from tests.agent.policies.engine_case import FOUND, ONE_HOP, TWO_HOPS, EngineCase, ids_of, turn

LONG = 600
"""Tokens that no turn here takes by itself."""


class ConformanceOfTurns:
    """One context, one turn after the other."""

    # What a turn gives

    def test_chunks_joined_are_the_segment(self, case: EngineCase):
        async def scene():
            context = case.open()
            before = context.tokens
            chunks = [chunk async for chunk in context.generate(Sampling(), stop=["</search>"], max_tokens=LONG)]
            segment = context.segments[-1]
            assert segment.by == "policy"
            assert segment.text == "".join(chunk.text for chunk in chunks)
            assert segment.text.endswith("</search>")
            assert context.tokens > before
            assert not any(chunk.cut for chunk in chunks)
            if not case.exact:
                return
            assert segment.logprobs is not None
            assert segment.ids == tuple(number for chunk in chunks for number in chunk.ids)
            assert segment.logprobs == tuple(value for chunk in chunks for value in chunk.logprobs)
            assert len(ids_of(segment)) == len(segment.logprobs) == context.tokens - before
            assert all(value <= 0 for value in segment.logprobs)
            assert any(value < 0 for value in segment.logprobs)

        case.run(scene())

    def test_max_tokens_cut_a_turn_and_the_last_chunk_says_so(self, case: EngineCase):
        async def scene():
            context = case.open()
            chunks = [chunk async for chunk in context.generate(Sampling(), stop=["</search>"], max_tokens=9)]
            assert [chunk.cut for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
            assert not context.ended_turn
            free = await turn(case.open(), max_tokens=LONG, stop=["</search>"])
            assert free.text.startswith(context.segments[-1].text)
            assert len(context.segments[-1].text) < len(free.text)
            if case.exact:
                assert context.segments[-1].ids == ids_of(free)[:9]

        case.run(scene())

    def test_a_turn_goes_on_where_the_one_before_was_cut(self, case: EngineCase):
        if not case.policy.continues:
            pytest.skip("it begins a new turn instead")

        async def scene():
            whole = await turn(case.open(), stop=["</search>"], max_tokens=LONG)
            context = case.open()
            first = await turn(context, stop=["</search>"], max_tokens=9)
            second = await turn(context, stop=["</search>"], max_tokens=LONG)
            if case.samples:  # a script does not read on in the middle of its turn
                assert first.text + second.text == whole.text
                assert ids_of(first) + ids_of(second) == whole.ids
            assert context.segments[1:] == [first, second]

        case.run(scene())

    # Where it stops

    @pytest.mark.parametrize("width", [1, 2, 5, 17])
    def test_a_turn_stops_at_the_token_that_completes_a_stop_text(self, case: EngineCase, width: int):
        """However the text is cut into tokens and chunks: any piece of what it says may be a stop."""

        async def scene():
            free = await turn(case.open(), stop=["</search>"], max_tokens=LONG)
            starts = range(1 + width, len(free.text) - width, len(free.text) // 5)
            await asyncio.gather(*(stops(free, free.text[start : start + width]) for start in starts))

        async def stops(free: Segment, stop: str):
            context = case.open()
            segment = await turn(context, stop=["never said", stop], max_tokens=LONG)
            end = free.text.index(stop) + width
            assert free.text.startswith(segment.text)
            assert segment.text[:end].endswith(stop)
            assert not context.ended_turn
            if not case.exact:
                assert len(segment.text) == end
                return
            count = len(ids_of(segment))
            assert segment.ids == ids_of(free)[:count]
            assert segment.logprobs is not None
            assert len(segment.logprobs) == count
            if count > 1:  # one token less, and the stop would not be complete
                less = await turn(case.open(), stop=["never said"], max_tokens=count - 1)
                assert stop not in less.text

        case.run(scene())

    def test_of_several_stops_the_first_one_said_counts(self, case: EngineCase):
        async def scene():
            free = await turn(case.open(), stop=["</search>"], max_tokens=LONG)
            early, late = free.text[12:16], free.text[25:30]
            segment = await turn(case.open(), stop=[late, early], max_tokens=LONG)
            assert early in segment.text
            assert late not in segment.text

        case.run(scene())

    def test_a_stop_that_stands_in_the_context_already_is_no_stop(self, case: EngineCase):
        async def scene():
            segment = await turn(case.open(), stop=["Question", ONE_HOP, "</search>"], max_tokens=LONG)
            assert segment.text.endswith("</search>")

        case.run(scene())

    # Ending it early

    def test_closing_a_turn_keeps_what_was_given_and_frees_the_slot(self, case: EngineCase):
        async def scene():
            context = case.open()
            before = context.tokens
            async with aclosing(context.generate(Sampling(), stop=[], max_tokens=LONG)) as chunks:
                given = [await anext(chunks), await anext(chunks)]
            _is_what_was_given(case, given, context.segments[-1].text, context.segments[-1].ids)
            assert len(context.segments) == 2
            assert context.tokens > before
            assert (await turn(context, max_tokens=5)).text

        case.run(scene())

    def test_cancelling_a_task_keeps_what_was_given_and_frees_the_slot(self, case: EngineCase):
        async def scene():
            context = case.open()
            given: list[Chunk] = []
            began = asyncio.Event()

            async def rollout():
                async with aclosing(context.generate(Sampling(), stop=[], max_tokens=LONG)) as chunks:
                    async for chunk in chunks:
                        given.append(chunk)
                        began.set()

            task = asyncio.create_task(rollout())
            await began.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            _is_what_was_given(case, given, context.segments[-1].text, context.segments[-1].ids)

        case.run(scene())

    def test_cancelling_before_anything_was_said_leaves_the_context_as_it_was(self, case: EngineCase):
        async def scene():
            context = case.open()
            before = (context.tokens, list(context.segments))
            task = asyncio.create_task(turn(context))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            said = [segment for segment in context.segments if segment.by == "policy"]
            assert said or (context.tokens, context.segments) == before

        case.run(scene())

    # The context

    def test_what_others_say_is_a_segment_of_its_own_encoded_once(self, case: EngineCase):
        async def scene():
            context = case.open()
            await turn(context, stop=["</search>"], max_tokens=LONG)
            before, tokens = list(context.segments), context.tokens
            counted = context.count(FOUND)
            added = context.append(FOUND, by="environment")
            assert context.segments == [*before, added]
            assert (added.by, added.text, added.logprobs) == ("environment", FOUND, None)
            assert context.tokens == tokens + counted
            await turn(context, max_tokens=5)
            assert context.segments[: len(before) + 1] == [*before, added]
            if not case.exact:
                return
            assert len(ids_of(added)) == counted
            elsewhere = case.open(TWO_HOPS)
            assert (
                elsewhere.append(FOUND, by="environment").ids == added.ids
            )  # on its own: what is before does not matter
            assert sum(len(ids_of(segment)) for segment in context.segments) == context.tokens

        case.run(scene())

    def test_a_fork_says_the_same_and_leaves_the_original_untouched(self, case: EngineCase):
        async def scene():
            context = case.open()
            await turn(context, stop=["</search>"], max_tokens=LONG)
            fork = context.fork()
            assert (fork.segments, fork.tokens) == (context.segments, context.tokens)
            before, tokens = list(context.segments), context.tokens
            fork.append("\n<information>\nNothing was found.\n</information>\n", by="environment")
            await turn(fork, max_tokens=9)
            assert (context.segments, context.tokens) == (before, tokens)
            assert fork.segments[: len(before)] == before
            fork = context.fork()
            for one in (context, fork):
                one.append(FOUND, by="environment")
            first, second = await asyncio.gather(turn(context, max_tokens=30), turn(fork, max_tokens=30))
            assert (first.text, first.ids) == (second.text, second.ids)
            if first.logprobs is not None:
                assert first.logprobs == pytest.approx(second.logprobs, abs=case.tolerance)

        case.run(scene())

    def test_a_full_context_cuts_a_turn_and_refuses_the_next(self, case: EngineCase):
        async def scene():
            context = case.open()
            room = case.policy.context_tokens - context.tokens - 12
            context.append(_filler(context.count, room), by="environment")
            left = case.policy.context_tokens - context.tokens
            assert 0 < left <= 12 + 8
            chunks = [chunk async for chunk in context.generate(Sampling(), stop=[], max_tokens=LONG)]
            if case.exact:
                assert chunks[-1].cut or context.ended_turn
                assert context.tokens <= case.policy.context_tokens
                while context.tokens < case.policy.context_tokens:
                    context.append("7", by="environment")
            else:
                context.append("word " * 40, by="environment")
            with pytest.raises(ContextFull):
                await turn(context)

        case.run(scene())

    def test_what_does_not_fit_leaves_the_context_as_it_was(self, case: EngineCase):
        if not case.exact:
            pytest.skip("it only estimates")

        async def scene():
            context = case.open()
            before = (context.tokens, list(context.segments))
            with pytest.raises(ContextFull):
                context.append("word " * case.policy.context_tokens, by="environment")
            assert (context.tokens, context.segments) == before
            with pytest.raises(ContextFull):
                case.open("word " * case.policy.context_tokens)

        case.run(scene())

    # The same again

    def test_greedy_turns_repeat_alone_and_in_company(self, case: EngineCase):
        async def scene():
            questions = [ONE_HOP, TWO_HOPS, *(f"Who founded company {n}{' and again' * n}?" for n in range(6))]
            questions = questions if case.samples else [ONE_HOP, TWO_HOPS]
            alone = [await turn(case.open(question), max_tokens=25) for question in questions]
            together = await asyncio.gather(*(turn(case.open(question), max_tokens=25) for question in questions * 2))
            for one, other in zip(alone * 2, together, strict=True):
                assert (one.text, one.ids) == (other.text, other.ids)
                if one.logprobs is not None:
                    assert one.logprobs == pytest.approx(other.logprobs, abs=case.tolerance)

        case.run(scene())

    def test_a_seed_repeats_a_sampled_turn_and_another_seed_does_not(self, case: EngineCase):
        if not (case.exact and case.samples):
            pytest.skip("it has no seeds of its own")

        async def scene():
            def sampled(seed: int):
                return turn(case.open(), sampling=Sampling(temperature=1.5, seed=seed), max_tokens=100)

            first = await sampled(1)
            again, *others = await asyncio.gather(*(sampled(seed) for seed in (1, 2, 3, 4)))
            assert again.ids == first.ids
            assert any(other.ids != first.ids for other in others)

        case.run(scene())


def _is_what_was_given(case: EngineCase, given: list[Chunk], text: str, ids: tuple[int, ...] | None) -> None:
    assert "".join(chunk.text for chunk in given) == text.removesuffix("\ufffd")
    if case.exact:
        assert tuple(number for chunk in given for number in chunk.ids) == ids


def _filler(count: Callable[[str], int], tokens: int) -> str:
    """Text of nearly this number of tokens, and never more."""
    words = 1
    while count("seven " * (2 * words)) <= tokens:
        words *= 2
    for step in (words // 2**n for n in range(1, words.bit_length())):
        words += step if count("seven " * (words + step)) <= tokens else 0
    return "seven " * words
