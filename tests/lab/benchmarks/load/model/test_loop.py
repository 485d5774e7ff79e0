"""What the event loop's wakes cost, separated from what its tokens cost."""

import pytest

from lab.benchmarks.load.model.loop import LoopWork, wake_and_token

FEW, MANY = (
    LoopWork(9_000, 10_000, 9_000 * 3e-4 + 10_000 * 5e-5),
    LoopWork(20_000, 90_000, 20_000 * 3e-4 + 90_000 * 5e-5),
)


def test_few_streams_and_many_separate_wakes_from_tokens():
    assert wake_and_token(FEW, MANY) == pytest.approx((3e-4, 5e-5))


@pytest.mark.parametrize(
    ("few", "expected"),
    [
        (LoopWork(18_000, 20_000, 1.0), (0.0, 10.5 / 90_000)),
        (LoopWork(9_000, 10_000, 9.0), (10.5 / 20_000, 0.0)),
        (LoopWork(20_000, 90_000, 10.5), (0.0, 10.5 / 90_000)),
        (LoopWork(0, 0, 0.0), (0.0, 10.5 / 90_000)),
    ],
    ids=["wakes for less than nothing", "tokens for less than nothing", "all the same", "nothing seen"],
)
def test_where_they_cannot_be_separated_the_load_of_many_says_it_all(few: LoopWork, expected: tuple[float, float]):
    assert wake_and_token(few, MANY) == pytest.approx(expected)
