"""Turns of real rollouts, and what the first of them that observes the answer is paid, worked out on paper."""

import pytest

torch = pytest.importorskip("torch")

from agent.trace.samples import to_samples  # noqa: E402 - only where torch is
from tests.train.rewards.rollouts import TASK, rollout, said  # noqa: E402
from tests.train.rl.small import recipe  # noqa: E402
from train.rewards.task import Task  # noqa: E402
from train.rl.batch import RolloutReward, credit_figures, informative_rollouts, turn_advantages  # noqa: E402
from train.rl.turns import TurnCredit, first_hit, hit_credit, token_turns, turn_count  # noqa: E402

TARN, LINA = "<search>Tarn Harbour</search>", "<search>Lina Orr</search>"
"""Only what the second finds names Trieste."""
LATE = rollout("multisearch", TARN, LINA, said("Rome"))


def test_a_turn_ends_with_its_observation_and_the_last_one_with_the_rollout() -> None:
    (sample,) = to_samples(LATE)
    turns = token_turns(LATE, "main")
    texts = ["", "", ""]
    for id, turn, trained in zip(sample.ids, turns, sample.mask, strict=True):
        texts[turn] += chr(id) if trained else ""
    assert texts == [TARN, LINA, said("Rome")]
    assert turn_count(LATE) == 3


def test_a_forced_answer_is_in_the_turn_behind_the_last_observation() -> None:
    trace = rollout("multisearch", TARN, "<think>I wonder")
    assert turn_count(trace) == 2


def test_a_branch_is_in_the_turn_whose_plan_it_fills() -> None:
    plan = "<search>\nA: Tarn Harbour (web)\nB: birthplace of #A (web)\nA -> B\n</search>"
    trace = rollout("cairn", TARN.replace("Tarn", "A: Old"), plan, "Lina Orr</fill>", said("Rome"))
    branch = next(iter(trace.branches))
    sample = next(one for one in to_samples(trace) if one.branch == branch)
    turns = token_turns(trace, branch)
    assert {turn for turn, trained in zip(turns, sample.mask, strict=True) if trained} == {1}
    assert len(turns) == len(sample.ids)


def test_the_first_hit_is_the_turn_whose_passages_first_hold_a_gold_answer() -> None:
    assert first_hit(LATE, TASK) == 1
    assert first_hit(rollout("multisearch", LINA, TARN, said("Rome")), TASK) == 0
    assert first_hit(rollout("multisearch", TARN, said("Trieste")), TASK) is None


def test_an_answer_in_the_policys_own_words_is_no_hit() -> None:
    trace = rollout("multisearch", "<think>Trieste</think><search>Tarn Harbour Trieste</search>", said("Rome"))
    assert first_hit(trace, TASK) is None


@pytest.mark.parametrize(
    "task",
    [
        Task(question="Was the engineer born in Trieste?", answers=("no", "Trieste")),
        Task(question="Where was she born?", answers=("Trieste",), options=("Trieste", "Rome")),
        Task(question="Where was she born?", answers=("Trieste",), unanswerable=True),
    ],
    ids=["in the question", "an option", "unanswerable"],
)
def test_what_passages_hold_by_chance_is_no_hit(task: Task) -> None:
    assert first_hit(rollout("multisearch", LINA, said("Rome")), task) is None


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ("Rome", (0.5, 0.5, 0.0)),
        ("Trieste", (0.0, 0.0, 0.0)),
        # F1 is 2 * 1 * 1/2 / (1 + 1/2) = 2/3, so a third of the half is left
        ("Old Trieste", (0.5 / 3, 0.5 / 3, 0.0)),
    ],
)
def test_turns_up_to_the_hit_get_a_share_of_what_the_answer_misses(answer: str, paid: tuple[float, ...]) -> None:
    trace = rollout("multisearch", TARN, LINA, said(answer))
    credit = hit_credit(trace, TASK, share=0.5)
    assert credit.rewards == pytest.approx(paid)
    wrong = float(answer != "Trieste")
    assert credit.figures == {"first_hit_share": 1.0, "first_hit_wrong_share": wrong, "first_hit_turn": 2.0}


def test_a_rollout_that_never_observed_the_answer_gets_nothing() -> None:
    credit = hit_credit(rollout("multisearch", TARN, said("Rome")), TASK, share=0.5)
    assert credit.rewards == (0.0, 0.0)
    assert credit.figures["first_hit_share"] == 0


def _one(group: int, reward: float | None, *turns: float, **figures: float) -> RolloutReward:
    return RolloutReward(group, None if reward is None else {"answer": reward}, TurnCredit(turns, figures))


HITS = recipe(learning={"divide_by_std": False, "credit": {"first_hit": 0.5}}).learning


def test_each_turn_is_compared_with_the_same_turn_of_the_group() -> None:
    """Turns get .5 .5 0, 0 0 (0) and 1 1 (1): their means are 1/2, 1/2 and 1/3."""
    ones = [_one(0, 0.0, 0.5, 0.5, 0.0), _one(0, 0.0, 0.0, 0.0), _one(0, 1.0, 0.0, 0.0), _one(0, None)]
    found = turn_advantages(ones, HITS, {})
    assert found[0] == pytest.approx((0.0, 0.0, -1 / 3))
    assert found[1:] == [(-0.5, -0.5), (0.5, 0.5), (0.0,)]


def test_a_group_whose_answers_are_all_wrong_learns_from_who_observed_the_answer() -> None:
    ones = [_one(0, 0.0, 0.5, 0.0), _one(0, 0.0, 0.0), _one(1, 0.0, 0.0), _one(1, 0.0, 0.0)]
    assert turn_advantages(ones, HITS, {}) == [(0.25, 0.0), (-0.25,), (0.0,), (0.0,)]
    assert informative_rollouts(ones, HITS, {}) == [True, True, False, False]
    assert not any(informative_rollouts(ones, recipe().learning, {}))


def test_without_hits_the_advantages_are_those_of_the_algorithm() -> None:
    ones = [_one(0, reward, 0.0, 0.0) for reward in (0.0, 0.3, 1.0)]
    own = recipe(learning={"credit": {"first_hit": 0.5}}).learning
    plain = turn_advantages(ones, recipe().learning, {})
    assert turn_advantages(ones, own, {}) == [value * 2 for value in plain]


def test_a_figure_is_the_mean_over_the_rollouts_that_have_it() -> None:
    ones = [_one(0, 0.0, share=1.0, turn=2.0), _one(0, 1.0, share=0.0), _one(0, None, share=1.0)]
    assert credit_figures(ones) == {"share": 0.5, "turn": 2.0}
