"""From played rollouts to what a trainer takes: advantages, rows with a weight for each token, pieces of like length.

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
from train.rl.rollouts import Played

LENGTH: Final = "overlong"
"""Name of the part that punishes length."""
_TOO_LONG: Final[tuple[BudgetName, ...]] = ("policy_tokens", "context")


@dataclass(frozen=True)
class Row:
    """One context. The three tuples have an entry for each token."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    """Of each token in the loss; 0 where the policy did not sample it here."""
    logprobs: tuple[float, ...]
    """The engine's, 0 where the weight is."""
    advantage: float
    group: int


@dataclass(frozen=True)
class Scored:
    """A rollout's reward as plain numbers, so that processes can exchange it."""

    group: int
    parts: Mapping[str, float] | None
    """None: masked."""


def scored(played: Played, learning: Learning) -> Scored:
    """What a rollout is worth, with the penalty for its length."""
    over = learning.overlong
    if played.rewarded is None or (over is not None and over.mask and _was_cut(played)):
        return Scored(played.group, None)
    parts = dict(played.rewarded.parts)
    if over is not None and not over.mask and over.penalty:
        length = torch.tensor([played.policy_tokens])
        penalty = overlong_penalty(length, longest=over.longest, buffer=over.buffer)
        parts[LENGTH] = over.penalty * penalty.item()
    return Scored(played.group, parts)


def totals(all_scored: Sequence[Scored], weights: Mapping[str, float]) -> list[float | None]:
    """The reward of each rollout: the sum of its parts, each by its weight (1 where it has none); None: masked."""
    return [
        None if one.parts is None else sum(weights.get(name, 1.0) * value for name, value in one.parts.items())
        for one in all_scored
    ]


def advantages(all_scored: Sequence[Scored], learning: Learning, weights: Mapping[str, float]) -> torch.Tensor:
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


def worth_learning(all_scored: Sequence[Scored], learning: Learning, weights: Mapping[str, float]) -> list[bool]:
    """Which rollouts stand in a group whose rewards are not all equal, and are not masked."""
    groups = torch.tensor([one.group for one in all_scored])
    if learning.name == "gdpo":
        counted = [name for name in _names(all_scored) if weights.get(name, 1.0)]
        return informative(_parts(all_scored, counted), groups).tolist()
    return informative(rewards_of(totals(all_scored, weights)), groups).tolist()


def rows_of(
    played: Sequence[Played],
    worth: Sequence[Scored],
    advantage: Sequence[float],
    *,
    level: Literal["token", "sequence"],
    all_rows: bool,
) -> tuple[list[Row], float]:
    """The rows that are computed, and what their sum is divided by (of these rollouts alone).

    Args:
        played: rollouts.
        worth: of each.
        advantage: of each.
        level: `token`: every policy token weighs 1; `sequence`: those of a rollout weigh 1 together.
        all_rows: also those whose advantage is 0: a KL term looks at them, too.
    """
    rows: list[Row] = []
    whole = 0.0
    for one, value, gain in zip(played, worth, advantage, strict=True):
        tokens = one.policy_tokens
        if value.parts is None or not tokens:
            continue
        whole += tokens if level == "token" else 1.0
        if not gain and not all_rows:
            continue
        weight = 1.0 if level == "token" else 1.0 / tokens
        for sample in one.samples:
            if any(sample.mask):
                own = tuple(weight if trained else 0.0 for trained in sample.mask)
                rows.append(_trimmed(Row(sample.ids, own, sample.logprobs, gain, one.group)))
    return rows, whole


def split(rows: Sequence[Row], *, minibatches: int, pieces: int) -> list[list[Row]]:
    """The rows of each piece, those of a minibatch together: whole groups a minibatch, like lengths a piece.

    There are always `minibatches * pieces`; where there are too few rows, some are empty.
    """
    order = {group: place for place, group in enumerate(dict.fromkeys(row.group for row in rows))}
    shares: list[list[Row]] = [[] for _ in range(minibatches)]
    for row in rows:
        shares[order[row.group] % minibatches].append(row)
    return [piece for share in shares for piece in _pieces(share, pieces)]


def filled(rows: Sequence[Row], number: int, *, pad: int) -> list[Row]:
    """A piece with so many rows at least; those that are added weigh nothing."""
    shortest = min((row.ids for row in rows), key=len, default=(pad,) * 2)
    nothing = (0.0,) * len(shortest)
    return [*rows, *[Row(shortest, nothing, nothing, 0.0, 0)] * (number - len(rows))]


def tensors(rows: Sequence[Row], *, pad: int, device: torch.device) -> dict[str, torch.Tensor]:
    """A piece in the trainer's form. It is cut where its first row is sampled first, so only the right is padded.

    A piece without rows becomes one of a single row that weighs nothing.

    Returns:
        prompt_ids and prompt_mask, [rows, prompt]; completion_ids, completion_mask, tool_mask (the weights) and
        sampling_per_token_logps, [rows, completion]; advantages, [rows].
    """
    there = filled(rows, 1, pad=pad)
    cut = max(
        1, min((next(at for at, w in enumerate(row.weights) if w) for row in there if any(row.weights)), default=1)
    )
    length = max(2, *(len(row.ids) - cut for row in there))  # TRL takes one column for figures of whole rows
    ids = torch.full((len(there), length), pad)
    mask, weights, logprobs = torch.zeros((3, len(there), length)).unbind()
    for at, row in enumerate(there):
        size = len(row.ids) - cut
        ids[at, :size] = torch.tensor(row.ids[cut:])
        mask[at, :size] = 1
        weights[at, :size] = torch.tensor(row.weights[cut:])
        logprobs[at, :size] = torch.tensor(row.logprobs[cut:])
    prompt = torch.tensor([row.ids[:cut] for row in there])
    made = {
        "prompt_ids": prompt,
        "prompt_mask": torch.ones_like(prompt),
        "completion_ids": ids,
        "completion_mask": mask.long(),
        "tool_mask": weights,
        "sampling_per_token_logps": logprobs,
        "advantages": torch.tensor([row.advantage for row in there]),
    }
    return {name: tensor.to(device) for name, tensor in made.items()}


def _pieces(rows: Sequence[Row], number: int) -> list[list[Row]]:
    """Rows of like length together, each piece with about the same number of tokens."""
    waiting = sorted(rows, key=lambda row: len(row.ids))
    made: list[list[Row]] = []
    for left in range(number, 0, -1):
        share = sum(len(row.ids) for row in waiting) / left
        piece: list[Row] = []
        while waiting and (not piece or left == 1 or sum(len(row.ids) for row in piece) < share):
            piece.append(waiting.pop(0))
        made.append(piece)
    return made


def _trimmed(row: Row) -> Row:
    """Without what stands behind the last token that counts: nothing looks back from there."""
    end = max(at for at, weight in enumerate(row.weights) if weight) + 1
    return Row(row.ids[:end], row.weights[:end], row.logprobs[:end], row.advantage, row.group)


def _was_cut(played: Played) -> bool:
    stopped = played.trace.stopped
    return stopped is not None and stopped.budget in _TOO_LONG


def _names(all_scored: Sequence[Scored]) -> list[str]:
    return next((list(one.parts) for one in all_scored if one.parts is not None), [])


def _parts(all_scored: Sequence[Scored], names: Sequence[str]) -> torch.Tensor:
    rows = [None if one.parts is None else [one.parts[name] for name in names] for one in all_scored]
    return parts_of(rows, number=len(names))
