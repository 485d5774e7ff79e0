"""Plain batched generation ends each row where its own turn ends, whichever row is first in the batch."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

import torch
import transformers

from agent.policies.base import Sampling
from agent.policies.hub_form import open_hub_form
from lab.benchmarks.plain_rollouts import PlainPolicy
from tests.train.rl.small import HUB

pytestmark = pytest.mark.train

WARM = Sampling(temperature=1.0)
EVEN, NEVER = frozenset(range(0, 4096, 2)), frozenset[int]()


async def said(policy: PlainPolicy, prompt: Sequence[int], ends: frozenset[int], tokens: int) -> list[int]:
    batches = policy.sample(prompt, WARM, ends=ends, max_tokens=tokens)
    return [number async for batch in batches for number, _ in batch]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_each_row_ends_where_its_own_turn_does(first: int):
    form = open_hub_form(str(HUB))
    models: Any = transformers.AutoModelForCausalLM
    model = models.from_pretrained(form.folder, dtype=torch.float32).eval()
    turns = [((5, 6, 7), EVEN, 30), ((8, 9), NEVER, 30), ((20, 21, 22, 23), NEVER, 9)]
    turns = turns[first:] + turns[:first]
    policy = PlainPolicy(model, form)
    policy.rollouts = len(turns)

    async def scene() -> list[list[int]]:
        return await asyncio.gather(*(said(policy, *turn) for turn in turns))

    for (_, ends, tokens), row in zip(turns, asyncio.run(scene()), strict=True):
        if ends is EVEN:
            assert all(number % 2 for number in row[:-1])
            assert row[-1] % 2 == 0
        else:
            stopped = model.config.eos_token_id in row
            assert len(row) == tokens or stopped
            assert len(row) <= tokens
