"""What the event loop needs for itself, told from what its tokens cost."""

import pytest

from server.load.model.loop import Work, share_and_token


def test_one_stream_and_many_tell_share_and_token_apart():
    one, many = Work(10.0, 200, 0.03 * 10 + 200 * 8e-5), Work(60.0, 50_000, 0.03 * 60 + 50_000 * 8e-5)
    assert share_and_token(one, many) == pytest.approx((0.03, 8e-5))


@pytest.mark.parametrize("one", [Work(10.0, 200, 0.0), Work(60.0, 50_000, 4.0)], ids=["too little", "all the same"])
def test_where_they_cannot_be_told_apart_the_load_says_it_all(one: Work):
    assert share_and_token(one, Work(60.0, 50_000, 4.0)) == pytest.approx((0.0, 8e-5))
