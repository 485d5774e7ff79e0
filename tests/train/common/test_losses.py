"""Tables here are worked by hand, as the comments show."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from train.common import losses as module  # noqa: E402 - only where torch is

pytestmark = pytest.mark.train
losses: Any = module
"""Untyped here: torch's stubs leave half of a tensor's methods out."""

EVERY = torch.ones((1, 4), dtype=torch.bool)


def logs(*ratios: float) -> Any:
    return torch.tensor([[math.log(ratio) for ratio in ratios]])


def test_one_clip_equals_the_table() -> None:
    # advantage 1: the ratio up to 1.2; advantage -1: the ratio from 0.8
    found = losses.policy_loss(logs(0.5, 1.5, 0.5, 1.5), torch.zeros(1, 4), torch.tensor([[1.0, 1, -1, -1]]), EVERY)
    assert torch.allclose(found.losses, torch.tensor([[-0.5, -1.2, 0.8, 1.5]]))
    assert (found.clipped_low.item(), found.clipped_high.item()) == (0.25, 0.25)


def test_two_clips_equal_the_table() -> None:
    found = losses.policy_loss(
        logs(1.25, 1.5, 0.85, 0.5), torch.zeros(1, 4), torch.tensor([[1.0, 1, -1, -1]]), EVERY, low=0.1, high=0.28
    )
    assert torch.allclose(found.losses, torch.tensor([[-1.25, -1.28, 0.9, 0.9]]))
    assert (found.clipped_low.item(), found.clipped_high.item()) == (0.5, 0.25)


def test_a_row_may_share_one_advantage() -> None:
    new, mask = torch.zeros(2, 3), torch.ones((2, 3), dtype=torch.bool)
    found = losses.policy_loss(new, new, torch.tensor([[2.0], [-1.0]]), mask).losses
    assert found.tolist() == [[-2, -2, -2], [1, 1, 1]]


def test_a_token_counts_as_much_as_another_or_a_row_as_much_as_another() -> None:
    mask = torch.tensor([[True, True, True, False], [True, False, False, False], [False] * 4])
    by_token = torch.tensor([[1.0, 1, 4, 50], [6, 50, 50, 50], [50.0] * 4])
    assert losses.averaged(by_token, mask).item() == 12 / 4
    assert losses.averaged(by_token, mask, "sequence").item() == (6 / 3 + 6) / 2


def test_a_step_in_parts_is_the_whole_step() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    by_token = torch.arange(9.0).view(3, 3)
    for level in ("token", "sequence"):
        whole = losses.normaliser(mask, level)
        parts = [losses.averaged(by_token[rows], mask[rows], level, over=whole) for rows in ([0], [1, 2])]
        assert torch.isclose(sum(parts, torch.zeros(())), losses.averaged(by_token, mask, level))


def test_no_policy_token_at_all_is_a_loss_of_0() -> None:
    nothing = torch.zeros((2, 3), dtype=torch.bool)
    for level in ("token", "sequence"):
        assert losses.averaged(torch.full((2, 3), 7.0), nothing, level).item() == 0


def test_the_value_loss_equals_the_table() -> None:
    values, old, returns = torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 1.0]])
    mask = torch.ones((1, 2), dtype=torch.bool)
    assert losses.value_loss(values, old, returns, mask).tolist() == [[0, 2]]
    # the first may gain only by moving 0.5 from the old value: (0.5 - 1)^2 / 2
    assert losses.value_loss(values, old, returns, mask, clip=0.5).tolist() == [[0.125, 2]]


def test_kl_estimates_equal_the_table() -> None:
    new, reference, mask = logs(0.5, 0.5), logs(0.25, 1.0), torch.ones((1, 2), dtype=torch.bool)
    two = math.log(2)
    assert torch.allclose(losses.kl(new, reference, mask, "k1"), torch.tensor([[two, -two]]))
    assert torch.allclose(losses.kl(new, reference, mask, "k2"), torch.tensor([[two * two / 2, two * two / 2]]))
    # ratios of the reference to the policy: 1/2 and 2
    assert torch.allclose(losses.kl(new, reference, mask), torch.tensor([[0.5 - 1 + two, 2 - 1 - two]]))


def test_the_unbiased_estimates_average_to_the_divergence() -> None:
    policy, reference = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.3, 0.5])
    exact = (policy * (policy / reference).log()).sum()
    mask = torch.ones((1, 3), dtype=torch.bool)
    for estimator in ("k1", "k3"):
        by_token = losses.kl(policy.log()[None], reference.log()[None], mask, estimator)
        assert torch.isclose((policy * by_token[0]).sum(), exact)


def test_entropy_is_that_of_the_distribution() -> None:
    logits = torch.tensor([[[0.0, 0.0, 0.0, 0.0], [50.0, 0, 0, 0], [1.0, 2, 3, 4]]])
    found = losses.entropy(logits, torch.tensor([[True, True, False]]))
    assert torch.allclose(found, torch.tensor([[math.log(4), 0, 0]]), atol=1e-6)


def test_a_policy_that_is_very_far_away_still_has_a_gradient_that_is_a_number() -> None:
    new = torch.tensor([[150.0, -150.0]], requires_grad=True)
    mask = torch.ones((1, 2), dtype=torch.bool)
    total = losses.policy_loss(new, torch.zeros(1, 2), -mask.float(), mask).losses.sum()
    (total + losses.kl(new, torch.zeros(1, 2), mask).sum()).backward()
    assert torch.isfinite(total)
    assert new.grad is not None
    assert new.grad.isfinite().all()


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from(["token", "sequence"]), st.integers(0, 2**31))
def test_what_the_environment_wrote_has_a_gradient_of_exactly_0(policy: list[bool], level: str, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    mask = torch.tensor(policy).view(2, 3)
    new, values = ((torch.randn((2, 3), generator=random) * 40).requires_grad_() for _ in range(2))
    old, reference, given_ = (torch.randn((2, 3), generator=random) for _ in range(3))
    parts = (
        losses.policy_loss(new, old, given_, mask).losses,
        losses.kl(new, reference, mask, "k2"),
        losses.value_loss(values, old, given_, mask, clip=0.2),
    )
    total: Any = sum(losses.averaged(part, mask, level) for part in parts)
    total.backward()
    for given_to in (new, values):
        assert given_to.grad is not None
        assert not given_to.grad[~mask].any()
        assert given_to.grad.isfinite().all()


def test_what_is_no_number_at_a_token_of_the_environment_spoils_nothing() -> None:
    mask = torch.tensor([[True, False]])
    new, values = (torch.tensor([[0.5, bad]], requires_grad=True) for bad in (math.nan, math.inf))
    given_ = torch.tensor([[1.0, math.nan]])
    parts = (
        losses.policy_loss(new, given_, given_, mask).losses,
        losses.kl(new, given_, mask),
        losses.value_loss(values, given_, given_, mask, clip=0.2),
    )
    total: Any = sum(losses.averaged(part, mask) for part in parts)
    total.backward()
    assert torch.isfinite(total)
    for given_to in (new, values):
        assert given_to.grad is not None
        assert given_to.grad[0, 0] != 0
        assert given_to.grad[0, 1] == 0


@given(st.integers(0, 2**31))
def test_before_the_first_update_the_gradient_is_that_of_reinforce(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    mask = torch.tensor([[True, False, True]])
    new = torch.randn((1, 3), generator=random).requires_grad_()
    given_ = torch.randn((1, 3), generator=random)
    losses.averaged(losses.policy_loss(new, new.detach(), given_, mask).losses, mask).backward()
    assert new.grad is not None
    assert torch.allclose(new.grad, torch.where(mask, -given_ / 2, 0.0))


def test_what_is_to_be_kept_costs_what_its_row_has_lost() -> None:
    """Old log-probabilities are -1 everywhere; the last token of each row is the environment's."""
    old, mask = torch.full((4, 4), -1.0), torch.tensor([[True, True, True, False]] * 4)
    new = torch.tensor(
        [
            [-1.5, -1.25, -0.5, -9.0],  # lost .5 and .25, won .5: the row has sunk by .25
            [-1.5, -1.25, -0.25, -9.0],  # won .75: as likely as before
            [-2.0, -1.0, -1.0, -9.0],  # is to become less likely
            [-1.5, -9.0, -0.75, -9.0],  # its second turn is to; the rest has sunk by .25
        ]
    ).requires_grad_()
    advantages = torch.tensor([[1.0] * 4, [1.0] * 4, [-1.0] * 4, [0.0, -1.0, 0.0, 0.0]])
    found = losses.likelihood_loss(new, old, advantages, mask)
    assert found.losses.tolist() == [[0.5, 0.25, 0, 0], [0] * 4, [0] * 4, [0.5, 0, 0, 0]]
    assert found.fallen.tolist() == [True, False, False, True]
    assert found.kept.sum(dim=1).tolist() == [3, 3, 0, 2]
    found.losses.sum().backward()
    assert new.grad.tolist() == [[-1, -1, 0, 0], [0] * 4, [0] * 4, [-1, 0, 0, 0]]
