"""Losses of policy-gradient training by token, their averages, KL estimators and schedules: pure functions on tensors.

Every function looks at policy tokens only: elsewhere its values are 0, and so are the gradients, exactly, whatever
stands there. Advantages come from `train.common.advantages`.
"""

from dataclasses import dataclass
from typing import Literal

import torch

Level = Literal["token", "sequence"]
Estimator = Literal["k1", "k2", "k3"]
_FURTHEST = 20.0
"""Log ratios beyond it count as this: their exponential would soon be infinite, and its gradient no number."""


@dataclass(frozen=True)
class Clipped:
    """A clipped loss of [rows, length], and how often a clip held it, as shares of the policy tokens."""

    losses: torch.Tensor
    clipped_low: torch.Tensor
    clipped_high: torch.Tensor


def policy_loss(
    new: torch.Tensor,
    old: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    *,
    low: float = 0.2,
    high: float | None = None,
) -> Clipped:
    """The clipped surrogate, by token: -min(ratio * A, clip(ratio, 1 - low, 1 + high) * A) (PPO, 1707.06347, eq. 7).

    Args:
        new: [rows, length], log-probabilities under the weights that are trained.
        old: [rows, length], under the weights that sampled.
        advantages: [rows, length], or [rows, 1] where a row's tokens share one.
        mask: [rows, length].
        low: lower clip.
        high: upper clip, where it is another one (DAPO's clip-higher); the lower one if none is given.
    """
    ratio = torch.where(mask, new - old, 0.0).clamp(-_FURTHEST, _FURTHEST).exp()
    most = 1 + (low if high is None else high)
    given = torch.where(mask, advantages, 0.0)
    losses = -torch.minimum(ratio * given, ratio.clamp(1 - low, most) * given)
    tokens = mask.sum().clamp(min=1)
    return Clipped(
        losses=torch.where(mask, losses, 0.0),
        clipped_low=((ratio < 1 - low) & (given < 0)).sum() / tokens,
        clipped_high=((ratio > most) & (given > 0)).sum() / tokens,
    )


@dataclass(frozen=True)
class Sunk:
    """What `likelihood_loss` finds."""

    losses: torch.Tensor
    """[rows, length]"""
    kept: torch.Tensor
    """[rows, length], true for a token whose likelihood must not sink."""
    fallen: torch.Tensor
    """[rows], true where that of the row's kept tokens together has fallen."""


def likelihood_loss(new: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor) -> Sunk:
    """LLDS (2512.04220): what is not to be unlearned costs max(0, old - new) by token, where its row has sunk.

    Kept are policy tokens with an advantage of 0 or more. A row costs something only if the sum of their
    log-probabilities has fallen, and then only at the tokens that fell. The paper's trajectory is a row here: a branch
    is looked at alone.

    Args:
        new: [rows, length], log-probabilities under the weights that are trained.
        old: [rows, length], under the weights that sampled.
        advantages: [rows, length].
        mask: [rows, length].
    """
    kept = mask & (advantages >= 0)
    lost = torch.where(kept, old.detach() - new, 0.0)
    fallen = lost.detach().sum(dim=1) > 0
    return Sunk(torch.where(fallen[:, None], lost.clamp(min=0.0), 0.0), kept, fallen)


def value_loss(
    values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor, *, clip: float | None = None
) -> torch.Tensor:
    """Half of the squared error by token, [rows, length]; the larger one of two where the change is clipped.

    Args:
        values: [rows, length], what the value head says now.
        old: [rows, length], what it said when the rollouts were read.
        returns: [rows, length], from `train.common.advantages.gae`.
        mask: [rows, length].
        clip: how far a value may go from the old one before its loss no longer falls; None: anywhere.
    """
    values, old, returns = (torch.where(mask, given, 0.0) for given in (values, old, returns))
    errors = (values - returns) ** 2
    if clip is not None:
        held = old + (values - old).clamp(-clip, clip)
        errors = torch.maximum(errors, (held - returns) ** 2)
    return 0.5 * errors


def averaged(
    losses: torch.Tensor, mask: torch.Tensor, level: Level = "token", *, over: float | None = None
) -> torch.Tensor:
    """One number of a loss by token; 0 where there is no policy token at all.

    Args:
        losses: [rows, length].
        mask: [rows, length]; rows without a policy token have no share.
        level: `token`: the mean of all policy tokens (DAPO), so that each of a long row counts as much as one of a
            short row. `sequence`: the mean of each row, then the mean of the rows (GRPO as printed).
        over: what to divide by instead of the number of tokens or rows here: that of the whole step, where the rows
            are a part of one (see `normaliser`).
    """
    here = torch.where(mask, losses, 0.0)
    whole = normaliser(mask, level) if over is None else over
    if level == "sequence":
        here = here / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return here.sum() / max(1.0, whole)


def normaliser(mask: torch.Tensor, level: Level = "token") -> float:
    """What `averaged` divides by: the number of policy tokens, or of rows that have any."""
    return float((mask.sum() if level == "token" else mask.any(dim=1).sum()).item())


def kl(new: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor, estimator: Estimator = "k3") -> torch.Tensor:
    """An estimate of KL(policy, reference) by sampled token, [rows, length] (joschu.net/blog/kl-approx.html).

    Args:
        new: [rows, length], log-probabilities under the policy that sampled, or close to it.
        reference: [rows, length].
        mask: [rows, length].
        estimator: `k1`: log ratio, unbiased, of both signs; `k2`: half of its square; `k3`: ratio - 1 - log ratio of
            the reference to the policy, unbiased and never negative (GRPO's).
    """
    ahead = torch.where(mask, new - reference, 0.0)
    if estimator == "k1":
        return ahead
    if estimator == "k2":
        return 0.5 * ahead**2
    return torch.expm1(-ahead.clamp(-_FURTHEST, _FURTHEST)) + ahead


def entropy(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Entropy in nats of the distribution that each policy token is drawn from, [rows, length].

    Args:
        logits: [rows, length, tokens], those that the token at the same place was drawn from.
        mask: [rows, length].
    """
    logs = torch.where(mask[..., None], logits, 0.0).log_softmax(dim=-1)
    return torch.where(mask, -(logs.exp() * logs).sum(dim=-1), 0.0)
