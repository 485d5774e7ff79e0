"""Tables here are worked by hand, as the comments show; none comes from the code that it tests."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from train.common import advantages as module  # noqa: E402 - only where torch is
from train.common.advantages import EPSILON  # noqa: E402

pytestmark = pytest.mark.train
advantages: Any = module
"""Untyped here: torch's stubs leave half of a tensor's methods out."""
Tensor = Any

HALF = math.sqrt(0.5)
NONE = (None, None, None)
REWARDS = advantages.rewards_of([1.0, 0.0, 0.0, None, 0.5, 0.5, 0.5, 0.5, 2.0, *NONE, 3.0, 1.0, None, None])
GROUPS = torch.arange(4).repeat_interleave(4)


def near(found: Tensor, expected: Sequence[float], within: float = 1e-5) -> bool:
    return torch.allclose(found, torch.tensor(list(expected), dtype=found.dtype), atol=within, rtol=0)


def test_grpo_equals_the_table() -> None:
    # group 0: mean 1/3, variance (4/9 + 1/9 + 1/9) / 2 = 1/3; group 3: mean 2, variance (1 + 1) / 1 = 2
    first = math.sqrt(1 / 3)
    table = [2 / 3 / first, -1 / 3 / first, -1 / 3 / first, 0] + [0] * 8 + [1 / math.sqrt(2), -1 / math.sqrt(2), 0, 0]
    assert near(advantages.grpo(REWARDS, GROUPS, epsilon=0), table)


def test_grpo_adds_a_small_number_to_the_deviation() -> None:
    found = advantages.grpo(advantages.rewards_of([3.0, 1.0]), torch.tensor([7, 7]))
    assert near(found, [1 / (math.sqrt(2) + EPSILON), -1 / (math.sqrt(2) + EPSILON)], within=1e-7)


def test_grpo_without_the_deviation_equals_the_table() -> None:
    table = [2 / 3, -1 / 3, -1 / 3, 0] + [0] * 8 + [1, -1, 0, 0]
    assert near(advantages.grpo(REWARDS, GROUPS, scale=False), table)


PARTS = advantages.parts_of([(1, 0), (0, 0), (1, 1), (0, 0), (1, 1), (1, 1), (1, 0), None], number=2)
PAIRS = torch.arange(4).repeat_interleave(2)


def test_gdpo_equals_the_table() -> None:
    # In a pair whose part differs by 1 its values become +-(1/2)/sqrt(1/2) = +-sqrt(1/2); no other part counts.
    # Sums: +-sqrt(1/2), +-2 sqrt(1/2), 0, 0, 0. Seven of them, mean 0, variance (1/2 + 1/2 + 2 + 2) / 6 = 5/6.
    deviation = math.sqrt(5 / 6)
    table = [HALF / deviation, -HALF / deviation, 2 * HALF / deviation, -2 * HALF / deviation, 0, 0, 0, 0]
    assert near(advantages.gdpo(PARTS, PAIRS, epsilon=0), table)


def test_gdpo_with_weights_equals_the_table() -> None:
    # Weight 2 on the second part: sums +-sqrt(1/2), +-3 sqrt(1/2); variance (1/2 + 1/2 + 9/2 + 9/2) / 6 = 10/6.
    deviation = math.sqrt(10 / 6)
    table = [HALF / deviation, -HALF / deviation, 3 * HALF / deviation, -3 * HALF / deviation, 0, 0, 0, 0]
    assert near(advantages.gdpo(PARTS, PAIRS, weights=[1, 2], epsilon=0), table)


def test_gdpo_distinguishes_what_the_sum_of_the_rewards_does_not() -> None:
    # Both rows of a group have the sum 1, and the parts are of different size: GRPO sees nothing, GDPO neither (each part
    # has the same weight after it is normalised); with three rows the rare part counts more than the common one.
    parts = advantages.parts_of([(1, 0), (1, 0), (0, 1)], number=2)
    group = torch.zeros(3, dtype=torch.long)
    assert advantages.grpo(parts.sum(1), group).tolist() == [0, 0, 0]
    # part 1: mean 2/3, variance 1/3: sqrt(1/3), sqrt(1/3), -2 sqrt(1/3); part 2 is its opposite: all sums are 0
    assert near(advantages.gdpo(parts, group), [0, 0, 0])
    # with weights 2 and 1 the sums are sqrt(1/3) * (1, 1, -2), of variance 1
    assert near(
        advantages.gdpo(parts, group, weights=[2, 1], epsilon=0), [math.sqrt(1 / 3)] * 2 + [-2 * math.sqrt(1 / 3)]
    )


def test_a_group_without_variance_is_exactly_0_after_the_batch_is_normalised() -> None:
    parts = torch.tensor([[0.1, 0.7], [0.1, 0.7], [0.3, 0.1], [0.2, 0.9], [0.7, 0.3], [0.3, 0.1]])
    found = advantages.gdpo(parts, torch.tensor([0, 0, 1, 1, 1, 1]))
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2:].abs().min() > 0


def test_rewards_that_differ_by_rounding_are_no_variance() -> None:
    rewards = advantages.rewards_of([0.1 + 0.2, 0.3, 0.3 + 3e-8])
    group = torch.zeros(3, dtype=torch.long)
    assert advantages.grpo(rewards, group).tolist() == [0, 0, 0]
    assert not advantages.informative(rewards, group).any()


def test_a_group_that_differs_in_a_part_without_weight_alone_teaches_nothing() -> None:
    parts = advantages.parts_of([(1, 0), (0, 0), (1, 0.3), (1, 0.1), (1, 0.2), (0, 0), (0, 0)], number=2)
    found = advantages.gdpo(parts, torch.tensor([0, 0, 1, 1, 1, 2, 2]), weights=[1, 0])
    assert found[2:].tolist() == [0] * 5
    uneven = advantages.gdpo(parts[[0, 1, 1, 2, 3]], torch.tensor([0, 0, 0, 1, 1]), weights=[1, 0])
    assert uneven[3:].tolist() == [0, 0]
    assert found[0] > 0 > found[1]


def test_a_weight_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="2 parts and 1 weights"):
        advantages.gdpo(PARTS, PAIRS, weights=[1])


def test_dynamic_sampling_keeps_the_groups_that_teach() -> None:
    kept = [True, True, True, False] + [False] * 8 + [True, True, False, False]
    assert advantages.informative(REWARDS, GROUPS).tolist() == kept


def test_a_group_counts_by_its_parts_where_parts_are_given() -> None:
    parts = advantages.parts_of([(1, 0), (0, 1), (1, 1), (1, 1), None, (1, 0)], number=2)
    assert advantages.informative(parts, torch.tensor([0, 0, 1, 1, 2, 2])).tolist() == [True, True] + [False] * 4


def test_the_penalty_of_length_equals_the_table() -> None:
    # 12 tokens are free, the next 8 cost 1/8 each
    found = advantages.overlong_penalty(torch.tensor([0, 12, 14, 16, 20, 25]), longest=20, buffer=8)
    assert found.tolist() == [0, 0, -0.25, -0.5, -1, -1]


def test_without_a_buffer_the_penalty_is_a_step() -> None:
    assert advantages.overlong_penalty(torch.tensor([20, 21]), longest=20, buffer=0).tolist() == [0, -1]
    with pytest.raises(ValueError, match="does not fit"):
        advantages.overlong_penalty(torch.tensor([1]), longest=2, buffer=3)


MASK = torch.tensor([[True, False, True, True]])


def test_gae_with_lambda_1_is_the_return_minus_the_value() -> None:
    rewards, values = torch.tensor([[0, 0, 0, 1.0]]), torch.tensor([[0.5, 9, 0.25, 0.5]])
    found, returns = advantages.gae(rewards, values, MASK)
    assert found.tolist() == [[0.5, 0, 0.75, 0.5]]
    assert returns.tolist() == [[1, 0, 1, 1]]


def test_gae_equals_the_table_and_does_not_discount_over_the_environment() -> None:
    rewards, values = torch.tensor([[0, 7, 0, 1.0]]), torch.tensor([[0.5, float("nan"), 0.25, 0.5]])
    # last: 1 - 1/2 = 1/2; before it: 1/2 * 1/2 - 1/4 = 0, + 1/4 * 1/2 = 1/8;
    # first: 1/2 * 1/4 - 1/2 = -3/8, + 1/4 * 1/8 = -11/32
    found, returns = advantages.gae(rewards, values, MASK, gamma=0.5, lam=0.5)
    assert found.tolist() == [[-11 / 32, 0, 0.125, 0.5]]
    assert returns.tolist() == [[5 / 32, 0, 0.375, 1]]


def test_the_outcome_is_paid_at_the_last_policy_token_and_kl_at_each() -> None:
    mask = torch.tensor([[True, False, True, False], [True, True, True, True], [False] * 4])
    kl = torch.tensor([[1.0, 9, 2, 9], [1.0, 1, 1, 1], [5.0, 5, 5, 5]])
    found = advantages.token_rewards(advantages.rewards_of([1.0, None, 3.0]), mask, kl=kl, beta=0.5)
    assert found.tolist() == [[-0.5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert advantages.token_rewards(advantages.rewards_of([1.0, None, 3.0]), mask)[0].tolist() == [0, 0, 1, 0]


def test_whitening_looks_at_policy_tokens_only() -> None:
    mask = torch.tensor([[True, False, True]])
    # 1 and 3: mean 2, deviation sqrt(2)
    found = advantages.whitened(torch.tensor([[1.0, 50, 3]]), mask, epsilon=0)
    assert near(found[0], [-HALF, 0, HALF])
    assert advantages.whitened(torch.tensor([[1.0, 50, 3]]), torch.tensor([[True, False, False]])).tolist() == [
        [0, 0, 0]
    ]


Rows = list[tuple[int, list[float] | None]]
_number = st.integers(-4, 4).map(lambda n: n / 4)
_rows: st.SearchStrategy[Rows] = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.lists(_number, min_size=2, max_size=2))),
    min_size=1,
    max_size=12,
)


def tensors(rows: Rows) -> tuple[Tensor, Tensor]:
    return advantages.parts_of([row for _, row in rows], number=2), torch.tensor([group for group, _ in rows])


def every(parts: Tensor, groups: Tensor, epsilon: float = EPSILON) -> Tensor:
    """GRPO with and without the deviation, and GDPO: [3, rollouts]."""
    total = parts.sum(1)
    return torch.stack(
        [
            advantages.grpo(total, groups, epsilon=epsilon),
            advantages.grpo(total, groups, scale=False),
            advantages.gdpo(parts, groups, epsilon=epsilon),
        ]
    )


@given(_rows, st.integers(0, 2**31))
def test_the_order_of_the_rollouts_changes_nothing(rows: Rows, seed: int) -> None:
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    there = every(*tensors([rows[at] for at in order]))
    assert torch.allclose(there, every(*tensors(rows))[:, order], atol=1e-6)


@given(_rows, _number)
def test_a_constant_added_to_every_reward_changes_nothing(rows: Rows, shift: float) -> None:
    parts, groups = tensors(rows)
    assert torch.allclose(every(parts + shift, groups), every(parts, groups), atol=1e-5)


@given(_rows, st.sampled_from([0.125, 0.5, 2.0, 8.0]))
def test_the_scale_of_the_rewards_counts_only_where_nothing_divides(rows: Rows, factor: float) -> None:
    parts, groups = tensors(rows)
    before, after = every(parts, groups, epsilon=0), every(parts * factor, groups, epsilon=0)
    assert torch.allclose(after[[0, 2]], before[[0, 2]], atol=1e-5)
    assert torch.allclose(after[1], before[1] * factor, atol=1e-5)


@given(_rows, st.sampled_from([0.125, 4.0]))
def test_the_scale_of_one_part_changes_nothing_in_gdpo(rows: Rows, factor: float) -> None:
    parts, groups = tensors(rows)
    scaled = parts * torch.tensor([factor, 1.0])
    assert torch.allclose(
        advantages.gdpo(scaled, groups, epsilon=0), advantages.gdpo(parts, groups, epsilon=0), atol=1e-5
    )


@given(_rows, st.lists(st.integers(0, 5), max_size=4))
def test_masked_rollouts_change_nothing_for_the_others_and_have_advantage_0(rows: Rows, masked: list[int]) -> None:
    more: Rows = [*rows, *((group, None) for group in masked)]
    found = every(*tensors(more))
    assert torch.equal(found[:, : len(rows)], every(*tensors(rows)))
    assert not found[:, len(rows) :].any()
    assert found.isfinite().all()


@given(_rows)
def test_every_group_of_grpo_sums_to_0_and_follows_its_rewards(rows: Rows) -> None:
    parts, groups = tensors(rows)
    rewards = parts.sum(1)
    found = advantages.grpo(rewards, groups)
    for group in groups.unique().tolist():
        here = (groups == group) & ~rewards.isnan()
        assert abs(found[here].sum().item()) < 1e-4
        order = rewards[here].argsort()
        assert (found[here][order].diff() >= -1e-6).all()


_masks = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=3)


@given(_masks, st.integers(0, 2**31))
def test_gae_is_the_same_as_if_the_environment_had_written_nothing(policy: list[list[bool]], seed: int) -> None:
    """In every row, whatever wrote the same place of the others."""
    drawn = torch.Generator().manual_seed(seed)
    masks = torch.tensor(policy)
    rewards, values = (torch.randn(masks.shape, generator=drawn) for _ in range(2))
    found, returns = advantages.gae(rewards, values, masks, gamma=0.9, lam=0.8)
    for row, mask in enumerate(masks):
        alone = mask.new_ones((1, int(mask.sum())))
        own = (rewards[row][mask][None], values[row][mask][None])
        short, short_returns = advantages.gae(*own, alone, gamma=0.9, lam=0.8)
        assert torch.allclose(found[row][mask], short[0])
        assert torch.allclose(returns[row][mask], short_returns[0])
    assert not found[~masks].any()
    assert not returns[~masks].any()
