"""From rollouts to what a trainer takes: advantages, rows with weights by token, micro-batches of like length.

Branches are rows of their own; their tokens count as their rollout's. A masked rollout has no row, and no share in any
mean. The weights say how the loss is averaged, so that the trainer only adds up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, Literal

import torch

from agent.trace import BudgetName
from agent.trace.samples import Sample
from train.common.advantages import (
    by_turn,
    discounted,
    gdpo,
    grpo,
    informative,
    overlong_penalty,
    parts_of,
    rewards_of,
    tree_grpo,
)
from train.rl.credit import CreditSettings
from train.rl.recipe import Learning
from train.rl.rollouts import RolloutResult
from train.rl.turns import TurnCredit, hit_credit, token_turns

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
    credit: TurnCredit = field(default_factory=TurnCredit)
    """Of its turns."""
    tree: int = 0
    """Of its group's, where rollouts grow in trees."""


def rollout_reward(result: RolloutResult, learning: Learning) -> RolloutReward:
    """The reward of a rollout, with the penalty for its length."""
    over = learning.overlong
    if result.rewarded is None or (over is not None and over.mask and _was_cut(result)):
        return RolloutReward(result.group, None, tree=result.tree)
    parts = dict(result.rewarded.parts)
    if over is not None and not over.mask and over.penalty:
        length = torch.tensor([result.policy_tokens])
        penalty = overlong_penalty(length, longest=over.longest, buffer=over.buffer)
        parts[LENGTH] = over.penalty * penalty.item()
    credit = learning.credit
    if credit is not None and credit.first_hit:
        return RolloutReward(result.group, parts, hit_credit(result.trace, result.ask.task, share=credit.first_hit))
    if credit is not None and credit.tree:
        figures = {"shared_token_share": result.prefix.tokens / max(1, result.policy_tokens)}
        return RolloutReward(result.group, parts, TurnCredit(figures=figures), result.tree)
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
    rewards = rewards_of(totals(all_scored, weights))
    if learning.credit is not None and learning.credit.tree is not None:
        trees = torch.tensor([one.tree for one in all_scored])
        return tree_grpo(rewards, groups, trees, scale=learning.divide_by_std)
    return grpo(rewards, groups, scale=learning.divide_by_std)


def turn_advantages(
    all_scored: Sequence[RolloutReward], learning: Learning, weights: Mapping[str, float]
) -> list[tuple[float, ...]]:
    """The advantage of each turn of each rollout. Where there is one alone, it holds for all of the rollout's tokens.

    Args:
        all_scored: of the whole batch, over all processes.
        learning: the algorithm and its settings.
        weights: of the reward's parts, where they are not 1.
    """
    if learning.credit is None or not learning.credit.by_turn:
        return [(value,) for value in advantages(all_scored, learning, weights).tolist()]
    groups = torch.tensor([one.group for one in all_scored])
    rewards, gain = _turn_rewards(all_scored, learning.credit, weights), learning.credit.information_gain
    if gain is not None:
        found = discounted(rewards, groups, discount=gain.discount, scale=learning.divide_by_std)
    else:
        found = by_turn(rewards, groups, scale=learning.divide_by_std)
    turns = [max(1, len(one.credit.rewards)) for one in all_scored]
    return [tuple(row[:number]) for row, number in zip(found.tolist(), turns, strict=True)]


def credit_figures(all_scored: Sequence[RolloutReward]) -> dict[str, float]:
    """What the monitors see of the credit for turns: each figure's mean over the rollouts that have it."""
    seen = [one.credit.figures for one in all_scored if one.parts is not None]
    names = dict.fromkeys(name for figures in seen for name in figures)
    return {name: fmean(figures[name] for figures in seen if name in figures) for name in names}


def informative_rollouts(
    all_scored: Sequence[RolloutReward], learning: Learning, weights: Mapping[str, float]
) -> list[bool]:
    """Which rollouts are in a group whose rewards are not all equal, in any turn, and are not masked."""
    groups = torch.tensor([one.group for one in all_scored])
    if learning.credit is not None and learning.credit.by_turn:
        rewards = _turn_rewards(all_scored, learning.credit, weights)
        if learning.credit.information_gain is None:
            return informative(rewards, groups).tolist()
        turns = informative(rewards.reshape(-1), groups.repeat_interleave(rewards.shape[1]))
        return turns.reshape(rewards.shape).any(dim=1).tolist()
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
        advantages: of each, by turn; one alone holds for all of its tokens.
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
            values = _by_token(one, sample, own)
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


def by_length(lengths: Sequence[int], *, most: int) -> list[list[int]]:
    """The places of rows by length, in groups that take at most `most` tokens when they are padded, or a single row."""
    groups: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if groups and lengths[at] * (len(groups[-1]) + 1) <= most:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


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


def _by_token(result: RolloutResult, sample: Sample, own: tuple[float, ...]) -> tuple[float, ...]:
    """The advantage of each token of a row, from those of the rollout's turns."""
    turns = token_turns(result.trace, sample.branch) if len(own) > 1 else (0,) * len(sample.mask)
    return tuple(own[turn] if trained else 0.0 for turn, trained in zip(turns, sample.mask, strict=True))


def _turn_rewards(
    all_scored: Sequence[RolloutReward], credit: CreditSettings, weights: Mapping[str, float]
) -> torch.Tensor:
    """What each turn gets, [rollouts, turns]; a row of nan where the rollout is masked.

    Of first hits: the rollout's reward and the turn's own; where a rollout has ended, its row goes on with its reward
    alone, so that every turn of a group has a mean over all of its rollouts. Of information gains: the turn's own, in
    the last turn the rollout's reward, and nan behind that.
    """
    outcomes = rewards_of(totals(all_scored, weights))
    longest = max((len(one.credit.rewards) for one in all_scored), default=0)
    table = outcomes[:, None].repeat(1, max(1, longest))
    for at, one in enumerate(all_scored):
        own = torch.tensor(one.credit.rewards)
        if credit.information_gain is None or one.parts is None:
            table[at, : len(own)] += own
        else:
            table[at, : len(own)] = own
            table[at, max(0, len(own) - 1)] = outcomes[at]
            table[at, max(1, len(own)) :] = torch.nan
    return table


def _was_cut(result: RolloutResult) -> bool:
    stopped = result.trace.stopped
    return stopped is not None and stopped.budget in _TOO_LONG


def _names(all_scored: Sequence[RolloutReward]) -> list[str]:
    return next((list(one.parts) for one in all_scored if one.parts is not None), [])


def _parts(all_scored: Sequence[RolloutReward], names: Sequence[str]) -> torch.Tensor:
    rows = [None if one.parts is None else [one.parts[name] for name in names] for one in all_scored]
    return parts_of(rows, number=len(names))
