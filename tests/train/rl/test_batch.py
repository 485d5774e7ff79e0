from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agent.sources.questions import GoldQuestion  # noqa: E402
from agent.trace import Stopped, Trace  # noqa: E402
from agent.trace.samples import Sample  # noqa: E402 - only where torch is
from tests.train.rl.small import recipe  # noqa: E402
from train.rewards.base import Rewarded  # noqa: E402
from train.rewards.task import Task  # noqa: E402
from train.rl.batch import (  # noqa: E402
    RolloutReward,
    WeightedRow,
    advantages,
    filled,
    informative_rollouts,
    rollout_reward,
    rows_of,
    split,
    tensors,
)
from train.rl.rollouts import RolloutResult  # noqa: E402
from train.rl.tasks import Ask, protocols_of  # noqa: E402

pytestmark = pytest.mark.train

SMALL = recipe()
QUESTION = GoldQuestion(id="1", question="who?", answers=("x",))
ASK = Ask(QUESTION, Task.of(QUESTION), protocols_of(SMALL)[0], {})


def _sample(mask: str, branch: str = "main") -> Sample:
    """A row whose mask is spelled with 1 and 0."""
    trained = tuple(letter == "1" for letter in mask)
    return Sample(branch, tuple(range(5, 5 + len(mask))), trained, tuple(-0.5 if on else 0.0 for on in trained))


def _result(
    *masks: str,
    group: int = 0,
    total: float | None = 1.0,
    budget: str | None = None,
    parts: dict[str, float] | None = None,
) -> RolloutResult:
    """A rollout with a row for each mask."""
    stopped = Stopped(reason="forced" if budget else "answered", budget=budget)  # type: ignore[arg-type]
    trace = Trace(id="t", question="who?", protocol="multisearch", policy="p", steps=[stopped])
    rewarded = None if total is None else Rewarded(parts or {"answer": total})
    rows = tuple(_sample(mask, "main" if not at else f"1.{at}") for at, mask in enumerate(masks))
    return RolloutResult(ASK, group, trace, rows if rewarded else (), rewarded)


def _rows(
    results: list[RolloutResult], advantage: list[float], level: str = "token", all_rows: bool = True
) -> tuple[list[WeightedRow], float]:
    rewards = [rollout_reward(one, SMALL.learning) for one in results]
    return rows_of(results, rewards, [(one,) for one in advantage], level=level, all_rows=all_rows)  # type: ignore[arg-type]


def test_every_policy_token_weighs_the_same_when_tokens_are_averaged() -> None:
    rows, whole = _rows([_result("00111"), _result("0011", "000011")], [1.0, -1.0])
    assert whole == 7
    assert [row.weights for row in rows] == [(0, 0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 0, 1, 1)]
    assert [row.advantages for row in rows] == [(0, 0, 1, 1, 1), (0, 0, -1, -1), (0, 0, 0, 0, -1, -1)]


def test_a_rollout_weighs_one_with_its_branches_when_rollouts_are_averaged() -> None:
    rows, whole = _rows([_result("00111"), _result("0011", "000011")], [1.0, -1.0], level="sequence")
    assert whole == 2
    assert [sum(row.weights) for row in rows] == pytest.approx([1.0, 0.5, 0.5])


def test_a_masked_rollout_has_no_row_and_no_share() -> None:
    rows, whole = _rows([_result("011"), _result("0111111", total=None)], [1.0, 0.0])
    assert (len(rows), whole) == (1, 2)


def test_rows_without_an_advantage_count_but_are_not_computed() -> None:
    rows, whole = _rows([_result("011"), _result("01111")], [1.0, 0.0], all_rows=False)
    assert (len(rows), whole) == (1, 6)


def test_a_row_ends_with_its_last_token_that_is_trained() -> None:
    rows, _ = _rows([_result("0110100")], [1.0])
    assert rows[0].weights == (0, 1, 1, 0, 1)
    assert rows[0].ids == (5, 6, 7, 8, 9)


def test_length_is_counted_in_tokens_of_the_policy_in_all_rows() -> None:
    learning = recipe(learning={"overlong": {"longest": 8, "buffer": 4, "penalty": 2.0}}).learning
    long = rollout_reward(_result("0000000000111", "000111"), learning)
    assert long.parts == {"answer": 1.0, "overlong": pytest.approx(2.0 * -0.5)}
    short = rollout_reward(_result("0000000000000000000000001"), learning)
    assert short.parts == {"answer": 1.0, "overlong": 0.0}


@pytest.mark.parametrize(
    ("budget", "masked"), [("policy_tokens", True), ("context", True), ("rounds", False), (None, False)]
)
def test_rollouts_that_their_length_ended_can_be_masked(budget: str | None, masked: bool) -> None:
    learning = recipe(learning={"overlong": {"longest": 8, "mask": True}}).learning
    assert (rollout_reward(_result("011", budget=budget), learning).parts is None) == masked


def _list(tensor: Any) -> Any:
    return tensor.tolist()


def test_advantages_take_the_weights_of_the_parts() -> None:
    ones = [RolloutReward(0, {"a": 1.0, "b": 0.0}), RolloutReward(0, {"a": 0.0, "b": 1.0})]
    no_std = recipe(learning={"divide_by_std": False}).learning
    assert _list(advantages(ones, no_std, {})) == [0, 0]
    assert _list(advantages(ones, no_std, {"b": 3.0})) == [-1, 1]
    gdpo = recipe(learning={"name": "gdpo"}).learning
    assert advantages(ones, gdpo, {"b": 3.0})[0] < 0 < advantages(ones, gdpo, {"b": 3.0})[1]


def test_a_batch_of_which_nothing_is_left_has_no_advantages() -> None:
    assert _list(advantages([], recipe().learning, {})) == []
    gdpo = recipe(learning={"name": "gdpo"}).learning
    assert _list(advantages([RolloutReward(0, None), RolloutReward(0, None)], gdpo, {})) == [0, 0]


def test_groups_that_teach_nothing_are_found() -> None:
    dapo = recipe(learning={"name": "dapo"}).learning
    ones = [
        RolloutReward(0, {"a": 1.0}),
        RolloutReward(0, {"a": 1.0}),
        RolloutReward(1, {"a": 1.0}),
        RolloutReward(1, {"a": 0.0}),
        RolloutReward(1, None),
    ]
    assert informative_rollouts(ones, dapo, {}) == [False, False, True, True, False]


def test_a_part_without_weight_makes_no_group_worth_learning_from() -> None:
    gdpo = recipe(learning={"name": "gdpo"}).learning
    ones = [RolloutReward(0, {"a": 1.0, "b": 0.0}), RolloutReward(0, {"a": 1.0, "b": 1.0}), RolloutReward(0, None)]
    assert informative_rollouts(ones, gdpo, {}) == [True, True, False]
    assert informative_rollouts(ones, gdpo, {"b": 0.0}) == [False, False, False]
    assert informative_rollouts(ones[2:], gdpo, {}) == [False]


def test_pieces_hold_every_row_once_and_minibatches_whole_groups() -> None:
    rows = [WeightedRow((1,) * size, (1.0,) * size, (0.0,) * size, (1.0,) * size, size % 3) for size in range(1, 20)]
    micro_batches = split(rows, minibatches=2, micro_batches=3)
    assert len(micro_batches) == 6
    assert sorted(len(row.ids) for rows in micro_batches for row in rows) == list(range(1, 20))
    groups = [{row.group for rows in half for row in rows} for half in (micro_batches[:3], micro_batches[3:])]
    assert not groups[0] & groups[1]
    for half in (micro_batches[:3], micro_batches[3:]):
        ends = [(min(len(r.ids) for r in piece), max(len(r.ids) for r in piece)) for piece in half if piece]
        assert all(left[1] <= right[0] for left, right in pairwise(ends))


def test_too_few_rows_leave_pieces_that_weigh_nothing() -> None:
    micro_batches = split([WeightedRow((1, 2), (0.0, 1.0), (0.0, -1.0), (0.0, 1.0), 0)], minibatches=2, micro_batches=2)
    assert sorted(len(rows) for rows in micro_batches) == [0, 0, 0, 1]
    empty = tensors([], pad=0, device=torch.device("cpu"))
    assert empty["tool_mask"].sum() == 0
    assert empty["completion_ids"].shape == (1, 2)


def test_a_piece_is_padded_on_the_right_alone_and_attends_to_all_that_is_real() -> None:
    rows, _ = _rows([_result("00101"), _result("0011111")], [1.0, -1.0])
    made = tensors(rows, pad=99, device=torch.device("cpu"))
    assert _list(made["prompt_ids"]) == [[5, 6], [5, 6]]
    assert _list(made["completion_ids"]) == [[7, 8, 9, 99, 99], [7, 8, 9, 10, 11]]
    assert _list(made["completion_mask"]) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert _list(made["tool_mask"]) == [[1, 0, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert _list(made["sampling_per_token_logps"])[0] == [-0.5, 0, -0.5, 0, 0]
    assert _list(made["advantages"]) == [[1, 0, 1, 0, 0], [-1, -1, -1, -1, -1]]


def test_rows_that_fill_a_piece_change_nothing_of_the_others() -> None:
    rows, _ = _rows([_result("00101"), _result("0011111")], [1.0, -1.0])
    device = torch.device("cpu")
    alone, more = tensors(rows, pad=99, device=device), tensors(filled(rows, 4, pad=99), pad=99, device=device)
    assert more["tool_mask"].shape[0] == 4
    assert more["tool_mask"][2:].sum() == 0
    assert all(_list(more[name][:2]) == _list(alone[name]) for name in alone)
    assert filled(rows, 1, pad=99) == rows
    assert tensors(filled([], 3, pad=0), pad=0, device=device)["completion_ids"].shape == (3, 2)
