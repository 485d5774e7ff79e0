"""Advantages of GRPO, GDPO, DAPO and PPO as pure functions on tensors; no model, no trainer, no library but torch.

A rollout's reward is a number, or nan where the rollout is masked (an infrastructure failure). A masked rollout has no
share in any mean or deviation, and advantage 0. A group without variance (up to rounding) has advantage exactly 0.
`groups` names each rollout's group by any whole number; a group need not be complete, nor lie together.
"""

from collections.abc import Sequence

import torch

EPSILON = 1e-4
"""Added to every standard deviation, as in TRL's trainer."""
_ROUNDING = 1e-6
"""A group spreads if its rewards differ by more than this share of the largest of them."""


def rewards_of(rewards: Sequence[float | None]) -> torch.Tensor:
    """Rewards as a float32 tensor, [rollouts], with nan for the masked ones."""
    return torch.tensor([float("nan") if reward is None else reward for reward in rewards], dtype=torch.float32)


def parts_of(parts: Sequence[Sequence[float] | None], *, number: int) -> torch.Tensor:
    """The parts of rewards as a float32 tensor, [rollouts, number], with a row of nan for each masked rollout."""
    empty = [float("nan")] * number
    rows = [empty if row is None else list(row) for row in parts]
    return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), number)


def grpo(rewards: torch.Tensor, groups: torch.Tensor, *, scale: bool = True, epsilon: float = EPSILON) -> torch.Tensor:
    """Reward minus the group's mean, over the group's standard deviation (DeepSeekMath, 2402.03300, section 4.1).

    Args:
        rewards: [rollouts], nan where masked.
        groups: [rollouts], whole numbers.
        scale: whether to divide by the deviation (of the sample, n - 1); Reasoning-Search and Dr. GRPO do not.
        epsilon: added to the deviation.

    Returns:
        [rollouts]
    """
    means, deviations = _group_statistics(rewards, groups)
    advantages = rewards.double() - means
    if scale:
        advantages = advantages / (deviations + epsilon)
    return torch.where(informative(rewards, groups), advantages, 0.0).to(rewards.dtype)


def tree_grpo(
    rewards: torch.Tensor,
    groups: torch.Tensor,
    trees: torch.Tensor,
    *,
    scale: bool = True,
    epsilon: float = EPSILON,
) -> torch.Tensor:
    """The advantage inside of a rollout's tree plus the one over all trees of its question (Tree-GRPO, 2509.21240).

    Each is `grpo`'s. A tree without variance adds 0.

    Args:
        rewards: [rollouts], nan where masked.
        groups: [rollouts], whole numbers.
        trees: [rollouts], whole numbers; trees of other groups may have the same.
        scale: as in `grpo`.
        epsilon: as in `grpo`.

    Returns:
        [rollouts]
    """
    own = torch.unique(torch.stack([groups, trees], dim=1), dim=0, return_inverse=True)[1]
    inside, over = (grpo(rewards, by, scale=scale, epsilon=epsilon) for by in (own, groups))
    return inside + over


def by_turn(
    rewards: torch.Tensor, groups: torch.Tensor, *, scale: bool = True, epsilon: float = EPSILON
) -> torch.Tensor:
    """Each turn against the same turn of the group's other rollouts: `grpo` of every column.

    Turn-level advantages as TSPO (2601.22776) has them for its first-occurrence reward. Where the turns of each rollout
    get the same, they are those of `grpo`.

    Args:
        rewards: [rollouts, turns], a row of nan where masked.
        groups: [rollouts], whole numbers.
        scale: as in `grpo`.
        epsilon: as in `grpo`.

    Returns:
        [rollouts, turns]
    """
    columns = [grpo(column, groups, scale=scale, epsilon=epsilon) for column in rewards.unbind(dim=1)]
    return torch.stack(columns, dim=1)


def discounted(
    rewards: torch.Tensor,
    groups: torch.Tensor,
    *,
    discount: float = 1.0,
    scale: bool = True,
    epsilon: float = EPSILON,
) -> torch.Tensor:
    """All turns of a group normalised together; a turn's advantage is its own and what follows (IGPO, 2510.14967).

    With n(k) the normalised reward of turn k, its advantage is the sum over j >= k of discount^(j - k) * n(j).

    Args:
        rewards: [rollouts, turns], nan where a rollout has no such turn (behind its last) or is masked.
        groups: [rollouts], whole numbers.
        discount: of each turn.
        scale: as in `grpo`.
        epsilon: as in `grpo`.

    Returns:
        [rollouts, turns], 0 where there is no turn.
    """
    number, turns = rewards.shape
    own = grpo(rewards.reshape(-1), groups.repeat_interleave(turns), scale=scale, epsilon=epsilon)
    own = own.reshape(number, turns).double()
    for turn in range(turns - 2, -1, -1):
        own[:, turn] += discount * own[:, turn + 1]
    return torch.where(rewards.isnan(), 0.0, own).to(rewards.dtype)


def gdpo(
    parts: torch.Tensor,
    groups: torch.Tensor,
    *,
    weights: Sequence[float] | None = None,
    epsilon: float = EPSILON,
) -> torch.Tensor:
    """Each part normalised on its own inside its group, the weighted sum of them, normalised over the batch.

    Source: GDPO as used by MultiSearch (2605.13534). The batch is all that is given here: several processes gather
    their rewards first. Groups without variance count in the batch's deviation (with 0), and stay at 0.

    Args:
        parts: [rollouts, parts]; a rollout with nan in any part is masked.
        groups: [rollouts], whole numbers.
        weights: one for each part; 1 where none are given.
        epsilon: added to every deviation.

    Returns:
        [rollouts]
    """
    masked = parts.isnan().any(dim=1)
    whole = torch.where(masked[:, None], torch.nan, parts)
    columns = [grpo(column, groups, epsilon=epsilon) for column in whole.unbind(dim=1)]
    weighed = torch.tensor([1.0] * len(columns) if weights is None else list(weights), dtype=torch.float64)
    if len(weighed) != len(columns):
        raise ValueError(f"{len(columns)} parts and {len(weighed)} weights")
    sums = torch.stack(columns, dim=1).double() @ weighed.to(parts.device)
    present = sums[~masked]
    if len(present) < 2 or present.std() <= _ROUNDING * weighed.abs().max():
        return torch.zeros_like(sums, dtype=parts.dtype)
    advantages = (sums - present.mean()) / (present.std() + epsilon)
    counted = whole[:, (weighed != 0).to(parts.device)]
    return torch.where(informative(counted, groups), advantages, 0.0).to(parts.dtype)


def informative(rewards: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Which rollouts can teach something: not masked, and in a group whose rewards are not all equal.

    This is DAPO's dynamic sampling (2503.14476, equation 11) for any reward: the other groups are sampled again.

    Args:
        rewards: [rollouts], or [rollouts, parts], where a group counts if any part spreads in it.
        groups: [rollouts], whole numbers.

    Returns:
        [rollouts], true where kept.
    """
    if rewards.ndim == 2:
        masked = rewards.isnan().any(dim=1)
        whole = torch.where(masked[:, None], torch.nan, rewards)
        columns = [informative(column, groups) for column in whole.unbind(dim=1)]
        return torch.stack(columns).any(dim=0) if columns else torch.zeros_like(masked)
    masked = rewards.isnan()
    number, place = _places(groups)
    edge = torch.full((number,), torch.inf, dtype=torch.float64, device=rewards.device)
    values = rewards.double()
    highest = (-edge).scatter_reduce(0, place, torch.where(masked, -torch.inf, values), "amax")
    lowest = edge.scatter_reduce(0, place, torch.where(masked, torch.inf, values), "amin")
    largest = torch.maximum(highest.abs(), lowest.abs())
    spreads = (highest > lowest) & (highest - lowest > _ROUNDING * largest)
    return spreads[place] & ~masked


def overlong_penalty(lengths: torch.Tensor, *, longest: int, buffer: int) -> torch.Tensor:
    """DAPO's soft punishment of length (2503.14476, equation 13): 0, then down to -1 over the last `buffer` tokens.

    Args:
        lengths: [rollouts], tokens that the policy sampled; what the environment wrote does not count.
        longest: length from which the penalty is -1.
        buffer: tokens before it over which the penalty grows; 0 makes it a step just above `longest`.

    Returns:
        [rollouts], from -1 to 0.
    """
    if not 0 <= buffer <= longest:
        raise ValueError(f"a buffer of {buffer} tokens does not fit into {longest}")
    over = lengths.float() - (longest - buffer)
    if buffer == 0:
        return -(over > 0).float()
    return -(over / buffer).clamp(0.0, 1.0)


def policy_mask(mask: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
    """The loss mask without the rows of masked rollouts.

    Args:
        mask: [rows, length], true for a token that the policy sampled.
        rewards: [rows], nan where the row's rollout is masked.
    """
    return mask & ~rewards.isnan()[:, None]


def token_rewards(
    rewards: torch.Tensor, mask: torch.Tensor, *, kl: torch.Tensor | None = None, beta: float = 0.0
) -> torch.Tensor:
    """PPO's rewards by token: the outcome at each row's last policy token, minus `beta` times the KL at each of them.

    Args:
        rewards: [rows], nan where masked; such a row is 0 everywhere.
        mask: [rows, length].
        kl: [rows, length], an estimate of the divergence from the reference at each token; others than the policy's
            are not looked at.
        beta: weight of it.

    Returns:
        [rows, length]
    """
    trained = policy_mask(mask, rewards)
    columns = torch.arange(mask.shape[1], device=mask.device)
    last = torch.where(trained, columns, -1).amax(dim=1, keepdim=True)
    outcome = torch.where(trained & (columns == last), rewards[:, None], 0.0)
    if kl is None or beta == 0:
        return outcome
    return outcome - torch.where(trained, beta * kl, 0.0)


def gae(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, *, gamma: float = 1.0, lam: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimation (1506.02438) over policy tokens only: the environment's are skipped.

    The state after a policy token is the next policy token, however much the environment wrote between them: nothing
    is discounted over its tokens, and neither their values nor their rewards are looked at. A row ends for good at its
    last policy token (value 0 after it).

    Args:
        rewards: [rows, length].
        values: [rows, length], the value head's estimate before each token was sampled.
        mask: [rows, length], true for a policy token of a rollout that is not masked.
        gamma: discount of a token.
        lam: weight of longer returns; 1 is the return itself minus the value.

    Returns:
        Advantages and returns (advantage + value), both [rows, length], 0 where the mask is false.
    """
    values = values.detach()
    advantages = torch.zeros_like(values)
    after = values.new_zeros(len(values))
    running = torch.zeros_like(after)
    for column in reversed(mask.any(dim=0).nonzero().flatten().tolist()):
        here, value = mask[:, column], values[:, column]
        surprise = rewards[:, column] + gamma * after - value
        running = torch.where(here, surprise + gamma * lam * running, running)
        after = torch.where(here, value, after)
        advantages[:, column] = torch.where(here, running, 0.0)
    return advantages, torch.where(mask, advantages + values, 0.0)


def whitened(advantages: torch.Tensor, mask: torch.Tensor, *, epsilon: float = 1e-8) -> torch.Tensor:
    """Mean 0 and deviation 1 over all policy tokens; 0 elsewhere, and everywhere if there are fewer than two.

    Args:
        advantages: [rows, length].
        mask: [rows, length].
        epsilon: added to the deviation.
    """
    chosen = advantages[mask]
    if len(chosen) < 2:
        return torch.zeros_like(advantages)
    return torch.where(mask, (advantages - chosen.mean()) / (chosen.std() + epsilon), 0.0)


def _places(groups: torch.Tensor) -> tuple[int, torch.Tensor]:
    """The number of groups, and which of them each rollout is in, counted from 0."""
    names, place = torch.unique(groups, return_inverse=True)
    return len(names), place


def _group_statistics(rewards: torch.Tensor, groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation (n - 1) of each rollout's group, both [rollouts] in float64; 0 where nothing is left of it."""
    number, place = _places(groups)
    present = ~rewards.isnan()
    values = torch.where(present, rewards.double(), 0.0)
    nothing = torch.zeros(number, dtype=torch.float64, device=rewards.device)
    counts = nothing.index_add(0, place, present.double())
    means = nothing.index_add(0, place, values) / counts.clamp(min=1)
    squares = torch.where(present, (values - means[place]) ** 2, 0.0)
    variances = nothing.index_add(0, place, squares) / (counts - 1).clamp(min=1)
    return means[place], variances.sqrt()[place]
