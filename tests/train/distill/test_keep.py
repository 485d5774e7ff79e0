import asyncio
from collections.abc import Sequence

import pytest

from agent.protocols import protocol_named
from agent.sources.questions import GoldQuestion
from agent.trace import Trace
from tests.train.distill.made import questions, rollouts
from tests.train.rewards.rollouts import EVIDENCE, NEXT, QUERY, TASK, broken, rollout, said
from train.distill.keep import KeepRules, KeepVerdict, judge
from train.rewards import reward_of

GOLD = TASK.as_question()
RIGHT = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))


def verdicts(
    *traces: Trace, questions: Sequence[GoldQuestion] = (GOLD,), check: KeepRules | None = None
) -> list[KeepVerdict]:
    return asyncio.run(judge(traces, questions, check or KeepRules()))


def why_not(trace: Trace, check: KeepRules | None = None) -> str:
    (verdict,) = verdicts(trace, check=check)
    return verdict.why_not


def test_what_is_right_supported_and_well_formed_is_kept() -> None:
    assert not why_not(RIGHT)


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (broken("evidence", QUERY, said("Trieste")), "a search or the engine failed"),
        (rollout("evidence", QUERY, NEXT, EVIDENCE + said("Rome")), "the answer is wrong"),
        (rollout("evidence", QUERY, "never an answer"), "it did not end with an answer of its own"),
        (rollout("evidence", QUERY, said("Trieste")), "it is not in the form of its protocol"),
        (
            rollout(
                "evidence",
                QUERY,
                "<original_evidence>Lina Orr won a prize in Oslo.</original_evidence>" + said("Trieste"),
            ),
            "a claim is not found in what it cites",
        ),
    ],
    ids=["broken", "wrong", "endless", "bare", "invented"],
)
def test_what_is_no_example_to_learn_from_is_not_kept_and_the_reason_is_given(trace: Trace, why: str) -> None:
    assert why_not(trace) == why


def test_wrong_answers_and_invented_claims_are_kept_where_that_is_requested() -> None:
    wrong = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Rome"))
    assert not why_not(wrong, KeepRules(right=False))
    invented = "<original_evidence>Lina Orr won a prize in Oslo.</original_evidence>"
    assert not why_not(rollout("evidence", QUERY, invented + said("Trieste")), KeepRules(supported=False))


def test_a_question_that_is_not_in_the_list_is_kept_only_where_no_gold_is_needed() -> None:
    (verdict,) = verdicts(RIGHT, questions=[])
    assert verdict.why_not == "its question is not in the list"
    (verdict,) = verdicts(RIGHT, questions=[], check=KeepRules(right=False))
    assert not verdict.why_not


def test_a_part_of_a_reward_must_reach_its_bound() -> None:
    reward = reward_of("evidence", {"reader": "cover"})
    assert not why_not(RIGHT, KeepRules(reward=reward, least={"evidence": 0.9, "total": 2.0}))
    assert why_not(RIGHT, KeepRules(reward=reward, least={"total": 9.0})) == "total of the reward is below 9"


def test_rollouts_under_a_protocol_of_ones_own_are_read_as_it_has_them() -> None:
    own = protocol_named("evidence").model_copy(update={"name": "mine"})
    trace = RIGHT.model_copy(update={"protocol": "mine"})
    reward = reward_of("evidence", {"reader": "cover"})
    assert not why_not(trace, KeepRules(protocol=own, reward=reward, least={"total": 2.0}))


def test_of_one_question_the_best_different_ones_are_kept() -> None:
    long = rollout("evidence", QUERY, "Again. <search>Tarn Harbour builder</search>", NEXT, EVIDENCE + said("Trieste"))
    found = verdicts(long, RIGHT, RIGHT.model_copy(update={"id": "again"}))
    assert [verdict.why_not for verdict in found] == [
        "others of its question are better",
        "",
        "the same was kept already",
    ]
    assert [verdict.why_not for verdict in verdicts(long, RIGHT, check=KeepRules(each=2))] == ["", ""]


@pytest.mark.slow
def test_most_rollouts_of_the_shipped_checkpoint_are_kept_and_every_kept_one_is_right() -> None:
    found = verdicts(*rollouts(), questions=questions())
    kept = [verdict for verdict in found if not verdict.why_not]
    assert len(kept) > 0.6 * len(found)
    for verdict in kept:
        assert verdict.question is not None
        assert verdict.trace.answer in verdict.question.answers
        assert all(claim.check in ("verbatim", "close") for claim in verdict.trace.claims)
