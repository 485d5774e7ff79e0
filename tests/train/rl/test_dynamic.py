import random

import pytest

pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st

from train.rl.recipe import Learning
from train.rl.run import BatchNotFilled, DynamicSampling

pytestmark = pytest.mark.train


def rolled_out(rounds: DynamicSampling, *, ranks: int, teaches: float, seed: int = 0) -> tuple[list[int], int]:
    """A step whose groups teach something with this probability: groups that each process keeps, and all of them."""
    rng = random.Random(seed)
    kept, total = [0] * ranks, 0
    while any(sizes := rounds.sizes(kept)):
        assert all(0 <= size <= rounds.wanted for size in sizes)
        assert all(not size for size, have in zip(sizes, kept, strict=True) if have == rounds.wanted)
        found = [sum(rng.random() < teaches for _ in range(size)) for size in sizes]
        kept = [min(rounds.wanted, have + new) for have, new in zip(kept, found, strict=True)]
        total += sum(sizes)
        rounds.ended(0, groups=sum(sizes), found=sum(found), kept=kept)
    return kept, total


@given(st.integers(1, 64), st.integers(1, 4), st.floats(0.3, 1.0), st.integers(0, 10_000))
def test_the_batch_is_full_whichever_groups_teach_nothing(wanted: int, ranks: int, teaches: float, seed: int) -> None:
    patient = Learning(name="dapo", resample_patience=200)
    rounds = DynamicSampling(patient, wanted)
    kept, _ = rolled_out(rounds, ranks=ranks, teaches=teaches, seed=seed)
    assert kept == [wanted] * ranks
    assert rounds.filled(kept) == 1.0


@given(st.integers(1, 64), st.integers(1, 4), st.integers(0, 5), st.floats(0.0, 1.0), st.integers(0, 10_000))
def test_a_number_of_rounds_is_never_exceeded_and_a_smaller_batch_is_reported(
    wanted: int, ranks: int, most: int, teaches: float, seed: int
) -> None:
    rounds = DynamicSampling(Learning(name="dapo", resample=most), wanted)
    kept, _ = rolled_out(rounds, ranks=ranks, teaches=teaches, seed=seed)
    assert rounds.round <= 1 + most
    assert rounds.filled(kept) == sum(kept) / (wanted * ranks)
    assert rounds.filled(kept) == 1.0 or rounds.round == 1 + most


def test_where_nothing_teaches_the_run_stops_after_its_patience_with_what_to_do() -> None:
    rounds = DynamicSampling(Learning(name="dapo", resample_patience=3), 32)
    with pytest.raises(BatchNotFilled, match="4 rounds in a row had no group whose rewards differ") as raised:
        rolled_out(rounds, ranks=2, teaches=0.0)
    assert rounds.round == 4
    assert "the batch has 0 of 64 groups" in str(raised.value)
    assert "set `resample` to a number of rounds" in str(raised.value)


def test_a_round_with_one_group_that_teaches_starts_the_patience_again() -> None:
    rounds = DynamicSampling(Learning(name="dapo", resample_patience=2), 4)
    for found, kept in ((0, 0), (0, 0), (1, 1), (0, 1), (0, 1)):
        rounds.ended(0, groups=4, found=found, kept=[kept])
    with pytest.raises(BatchNotFilled, match="has 1 of 4 groups"):
        rounds.ended(0, groups=4, found=0, kept=[1])


def test_few_groups_that_teach_make_rounds_larger_and_not_more_numerous() -> None:
    rounds = DynamicSampling(Learning(name="dapo"), 32)
    rounds.ended(0, groups=32, found=24, kept=[24])
    assert rounds.sizes([24]) == [11]  # 8 missing, and three of four teach
    rounds.ended(0, groups=11, found=7, kept=[31])
    assert rounds.sizes([31]) == [2]


def test_without_dynamic_sampling_there_is_one_round_whatever_it_taught() -> None:
    rounds = DynamicSampling(Learning(name="grpo"), 8)
    assert rounds.sizes([0, 0]) == [8, 8]
    rounds.ended(0, groups=16, found=16, kept=[8, 8])
    assert rounds.sizes([8, 8]) == [0, 0]
