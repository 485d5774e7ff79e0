"""From rollouts to what a trainer takes: advantages, rows with weights by token, micro-batches of like length.

Branches are rows of their own; their tokens count as their rollout's. A masked rollout has no row, and no share in any
mean. The weights say how the loss is averaged, so that the trainer only adds up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch

from agent.trace import BudgetName
from train.common.advantages import gdpo, grpo, informative, overlong_penalty, parts_of, rewards_of
from train.rl.recipe import Learning
from train.rl.rollouts import RolloutResult

LENGTH: Final = "overlong"
"""Name of the part that punishes length."""
_TOO_LONG: Final[tuple[BudgetName, ...]] = ("policy_tokens", "context")


@dataclass(frozen=True)
class WeightedRow:
    """One context. The four tuples have an entry for each token."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    """Of each token in the loss; 0 where the policy did not sample it here."""
    logprobs: tuple[float, ...]
    """The engine's, 0 where the weight is."""
    advantages: tuple[float, ...]
    """0 where the weight is."""
    group: int


@dataclass(frozen=True)
class RolloutReward:
    """A rollout's reward as plain numbers, so that processes can exchange it."""

    group: int
    parts: Mapping[str, float] | None
    """None: masked."""


def rollout_reward(result: RolloutResult, learning: Learning) -> RolloutReward:
    """The reward of a rollout, with the penalty for its length."""
    over = learning.overlong
    if result.rewarded is None or (over is not None and over.mask and _was_cut(result)):
        return RolloutReward(result.group, None)
    parts = dict(result.rewarded.parts)
    if over is not None and not over.mask and over.penalty:
        length = torch.tensor([result.policy_tokens])
        penalty = overlong_penalty(length, longest=over.longest, buffer=over.buffer)
        parts[LENGTH] = over.penalty * penalty.item()
    return RolloutReward(result.group, parts)


def totals(all_scored: Sequence[RolloutReward], weights: Mapping[str, float]) -> list[float | None]:
    """The reward of each rollout: the sum of its parts, each by its weight (1 where it has none); None: masked."""
    return [
        None if one.parts is None else sum(weights.get(name, 1.0) * value for name, value in one.parts.items())
        for one in all_scored
    ]


def advantages(all_scored: Sequence[RolloutReward], learning: Learning, weights: Mapping[str, float]) -> torch.Tensor:
    """The advantage of each rollout, [rollouts]; 0 where it is masked, or its group has no variance.

    Args:
        all_scored: of the whole batch, over all processes.
        learning: the algorithm and its settings.
        weights: of the reward's parts, where they are not 1.
    """
    if all(one.parts is None for one in all_scored):
        return torch.zeros(len(all_scored))
    groups = torch.tensor([one.group for one in all_scored])
    names = _names(all_scored)
    if learning.name == "gdpo":
        return gdpo(_parts(all_scored, names), groups, weights=[weights.get(name, 1.0) for name in names])
    return grpo(rewards_of(totals(all_scored, weights)), groups, scale=learning.divide_by_std)


def informative_rollouts(
    all_scored: Sequence[RolloutReward], learning: Learning, weights: Mapping[str, float]
) -> list[bool]:
    """Which rollouts are in a group whose rewards are not all equal, and are not masked."""
    groups = torch.tensor([one.group for one in all_scored])
    if learning.name == "gdpo":
        counted = [name for name in _names(all_scored) if weights.get(name, 1.0)]
        return informative(_parts(all_scored, counted), groups).tolist()
    return informative(rewards_of(totals(all_scored, weights)), groups).tolist()


def rows_of(
    results: Sequence[RolloutResult],
    rewards: Sequence[RolloutReward],
    advantages: Sequence[tuple[float, ...]],
    *,
    level: Literal["token", "sequence"],
    all_rows: bool,
) -> tuple[list[WeightedRow], float]:
    """The rows that are computed, and what their sum is divided by (of these rollouts alone).

    Args:
        results: rollouts.
        rewards: of each.
        advantages: of each; one alone holds for all of its tokens.
        level: `token`: every policy token weighs 1; `sequence`: those of a rollout weigh 1 together.
        all_rows: also those whose advantages are all 0: a KL term looks at them, too.
    """
    rows: list[WeightedRow] = []
    whole = 0.0
    for one, reward, own in zip(results, rewards, advantages, strict=True):
        tokens = one.policy_tokens
        if reward.parts is None or not tokens:
            continue
        whole += tokens if level == "token" else 1.0
        weight = 1.0 if level == "token" else 1.0 / tokens
        for sample in one.samples:
            values = tuple(own[0] if trained else 0.0 for trained in sample.mask)
            if any(sample.mask) and (any(values) or all_rows):
                weights = tuple(weight if trained else 0.0 for trained in sample.mask)
                rows.append(_trimmed(WeightedRow(sample.ids, weights, sample.logprobs, values, one.group)))
    return rows, whole


def split(rows: Sequence[WeightedRow], *, minibatches: int, micro_batches: int) -> list[list[WeightedRow]]:
    """The rows of each micro-batch, minibatch by minibatch: whole groups a minibatch, like lengths a micro-batch.

    There are always `minibatches * micro_batches`; where there are too few rows, some are empty.
    """
    order = {group: place for place, group in enumerate(dict.fromkeys(row.group for row in rows))}
    shares: list[list[WeightedRow]] = [[] for _ in range(minibatches)]
    for row in rows:
        shares[order[row.group] % minibatches].append(row)
    return [rows for share in shares for rows in _micro_batches(share, micro_batches)]


def filled(rows: Sequence[WeightedRow], number: int, *, pad: int) -> list[WeightedRow]:
    """A micro-batch with at least `number` rows; those that are added weigh nothing."""
    shortest = min((row.ids for row in rows), key=len, default=(pad,) * 2)
    nothing = (0.0,) * len(shortest)
    return [*rows, *[WeightedRow(shortest, nothing, nothing, nothing, 0)] * (number - len(rows))]


def tensors(rows: Sequence[WeightedRow], *, pad: int, device: torch.device) -> dict[str, torch.Tensor]:
    """A micro-batch in the trainer's form. It is cut where its first row is sampled first, so only the right is padded.

    A micro-batch without rows becomes one of a single row that weighs nothing.

    Returns:
        prompt_ids and prompt_mask, [rows, prompt]; completion_ids, completion_mask, tool_mask (the weights),
        sampling_per_token_logps and advantages, [rows, completion].
    """
    there = filled(rows, 1, pad=pad)
    cut = max(
        1, min((next(at for at, w in enumerate(row.weights) if w) for row in there if any(row.weights)), default=1)
    )
    length = max(2, *(len(row.ids) - cut for row in there))  # TRL takes one column for figures of whole rows
    ids = torch.full((len(there), length), pad)
    mask, weights, logprobs, advantages = torch.zeros((4, len(there), length)).unbind()
    for at, row in enumerate(there):
        size = len(row.ids) - cut
        ids[at, :size] = torch.tensor(row.ids[cut:])
        mask[at, :size] = 1
        weights[at, :size] = torch.tensor(row.weights[cut:])
        logprobs[at, :size] = torch.tensor(row.logprobs[cut:])
        advantages[at, :size] = torch.tensor(row.advantages[cut:])
    prompt = torch.tensor([row.ids[:cut] for row in there])
    made = {
        "prompt_ids": prompt,
        "prompt_mask": torch.ones_like(prompt),
        "completion_ids": ids,
        "completion_mask": mask.long(),
        "tool_mask": weights,
        "sampling_per_token_logps": logprobs,
        "advantages": advantages,
    }
    return {name: tensor.to(device) for name, tensor in made.items()}


def _micro_batches(rows: Sequence[WeightedRow], number: int) -> list[list[WeightedRow]]:
    """Rows of like length together, each micro-batch with about the same number of tokens."""
    waiting = sorted(rows, key=lambda row: len(row.ids))
    made: list[list[WeightedRow]] = []
    for left in range(number, 0, -1):
        share = sum(len(row.ids) for row in waiting) / left
        batch: list[WeightedRow] = []
        while waiting and (not batch or left == 1 or sum(len(row.ids) for row in batch) < share):
            batch.append(waiting.pop(0))
        made.append(batch)
    return made


def _trimmed(row: WeightedRow) -> WeightedRow:
    """Without what follows the last token that counts: nothing looks back from there."""
    end = max(at for at, weight in enumerate(row.weights) if weight) + 1
    return WeightedRow(row.ids[:end], row.weights[:end], row.logprobs[:end], row.advantages[:end], row.group)


def _was_cut(result: RolloutResult) -> bool:
    stopped = result.trace.stopped
    return stopped is not None and stopped.budget in _TOO_LONG


def _names(all_scored: Sequence[RolloutReward]) -> list[str]:
    return next((list(one.parts) for one in all_scored if one.parts is not None), [])


def _parts(all_scored: Sequence[RolloutReward], names: Sequence[str]) -> torch.Tensor:
    rows = [None if one.parts is None else [one.parts[name] for name in names] for one in all_scored]
    return parts_of(rows, number=len(names))
