import pytest

from agent.loop.budgets import Budgets
from tests.train.rewards import rollouts
from tests.train.rewards.rollouts import EVIDENCE, NEXT, QUERY, broken, lossy, rollout, said
from train.safety.figures import Watched, figures_of, reasons_of

RIGHT = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))
AGAIN = rollout("evidence", QUERY, "Once more. <search>Tarn Harbour, its builder</search>", said("Rome"))
NOWHERE = rollout("evidence", "Who knows. <search>nothing of the kind</search>", said("Rome"))
BROKEN = broken("evidence", QUERY, said("Rome"))
LOSSY = lossy("evidence", QUERY, said("Rome"))
LONG = rollout("evidence", "and so on " * 40, budgets=Budgets(policy_tokens=10))


def watched(trace: object, **parts: float) -> Watched:
    assert isinstance(trace, rollouts.Trace)
    return Watched(trace, parts or None, sum(parts.values()))


def test_searches_are_counted_and_so_are_those_that_find_nothing() -> None:
    figures = figures_of([watched(RIGHT, answer=1.0), watched(NOWHERE, answer=0.0)])
    assert figures["search/mean"] == pytest.approx(1.5)
    assert figures["search/empty_share"] == pytest.approx(1 / 3)
    assert figures["search/failed_share"] == 0


def test_a_query_with_the_same_content_words_is_a_duplicate_in_its_own_rollout_only() -> None:
    assert figures_of([watched(AGAIN, answer=0.0)])["search/duplicate_share"] == pytest.approx(1 / 2)
    assert figures_of([watched(RIGHT, answer=1.0)] * 2)["search/duplicate_share"] == 0


def test_what_a_broken_source_did_to_a_rollout_is_not_counted_against_the_policy() -> None:
    figures = figures_of([watched(RIGHT, answer=1.0), watched(BROKEN)])
    assert figures["answer/closed_share"] == 1
    assert figures["length/mean"] == RIGHT.usage.policy_tokens
    assert figures["search/failed_share"] > 0
    assert figures["masked/share"] == pytest.approx(1 / 2)


def test_searches_that_a_fused_source_failed_in_are_counted_and_their_rollouts_are_not_the_policys_doing() -> None:
    figures = figures_of([watched(RIGHT, answer=1.0), watched(LOSSY)])
    assert figures["search/lost_share"] == pytest.approx(1 / 3)
    assert figures["search/failed_share"] == 0
    assert figures["search/mean"] == 2


def test_a_masked_rollout_has_a_reason() -> None:
    judged = watched(RIGHT)
    assert reasons_of([judged, watched(BROKEN), watched(BROKEN), watched(RIGHT, answer=1.0)]) == {
        "a search or the engine failed": 2,
        "a judge, a reader or an embedder failed": 1,
    }


def test_a_rollout_that_runs_into_its_limit_is_counted() -> None:
    figures = figures_of([watched(LONG, answer=0.0), watched(RIGHT, answer=1.0)])
    assert figures["length/limit_share"] == pytest.approx(1 / 2)
    assert figures["answer/closed_share"] == pytest.approx(1 / 2)


def test_each_part_of_the_reward_is_reported_with_its_extremes_and_masked_ones_have_no_share() -> None:
    seen = [watched(RIGHT, answer=1.0, format=0.4), watched(AGAIN, answer=0.0, format=0.4), watched(BROKEN)]
    figures = figures_of(seen)
    assert figures["reward/answer"] == pytest.approx(0.5)
    assert (figures["reward/answer_lowest"], figures["reward/answer_highest"]) == (0, 1)
    assert figures["reward/total"] == pytest.approx(0.9)
    assert figures["reward/total_std"] == pytest.approx(0.5)


def test_the_total_is_what_is_learned_from_and_a_rollout_may_be_masked_for_its_length() -> None:
    weighed = Watched(RIGHT, {"answer": 1.0, "format": 0.5}, total=1.1)
    cut = Watched(LONG, None, too_long=True)
    figures = figures_of([weighed, cut])
    assert figures["reward/total"] == pytest.approx(1.1)
    assert figures["masked/share"] == pytest.approx(1 / 2)
    assert reasons_of([weighed, cut]) == {"it is longer than may be": 1}


def test_a_figure_of_nothing_is_left_out() -> None:
    figures = figures_of([watched(BROKEN)])
    assert not [name for name in figures if name.startswith(("reward/", "answer/", "length/"))]
    assert figures_of([]) == {"rollouts": 0}


def test_who_says_that_it_does_not_know_is_counted() -> None:
    unknown = rollout("evidence", QUERY, NEXT, EVIDENCE + said("I do not know"))
    assert figures_of([watched(RIGHT, answer=1.0), watched(unknown, answer=0.0)])["answer/unknown_share"] == 1 / 2
