"""The same function here, in processes and on Ray: order, errors, and what is read ahead."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.errors import SetupError, SourceError
from agent.settings import CairnSettings
from agent.spread import On, Spread, WorkerLost, mapped, spread_of
from tests.spreads import die, fail, square, where

ray_warns = pytest.mark.filterwarnings("ignore")  # Ray's own, about its own libraries
ON: list[Any] = ["local", pytest.param("ray", marks=[pytest.mark.slow, ray_warns])]


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """No test leaves a Ray behind."""
    yield
    import ray

    assert not ray.is_initialized()


def test_one_local_worker_is_this_process_and_starts_nothing():
    with Spread() as spread:
        assert spread.here
        assert {process for _, process, _ in spread.mapped(where, range(5))} == {os.getpid()}


@pytest.mark.parametrize("on", ON)
def test_order_errors_and_lost_workers_are_the_same_wherever_the_work_is_done(on: On):
    with Spread(workers=2, on=on) as spread:
        assert list(spread.mapped(square, range(25))) == [number * number for number in range(25)]
        assert list(spread.mapped(square, [])) == []
        found = list(spread.mapped(where, range(8)))
        assert [number for number, _, _ in found] == list(range(8))
        assert os.getpid() not in {process for _, process, _ in found}
        assert {cores for *_, cores in found} == {"1"}
        with pytest.raises(SourceError, match="there is no 3") as caught:
            list(spread.mapped(fail, range(9)))
        assert (caught.value.kind, caught.value.retry_after) == ("quota", 2.0)
        with pytest.raises(WorkerLost, match="fewer than 2"):
            list(spread.mapped(die, range(9)))


def test_items_are_read_as_they_are_needed():
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    with Spread(workers=2) as spread:
        assert next(spread.mapped(square, items())) == 0
        assert len(read) <= 5


def test_work_that_is_given_up_ends():
    found = mapped(square, range(1000), workers=2)
    assert next(found) == 0
    found.close()


def test_nobody_can_do_no_work():
    with pytest.raises(SetupError, match="at least one"):
        Spread(workers=0)


@pytest.mark.parametrize(
    ("said", "here"), [({}, True), ({"workers": 2}, False), ({"work": "ray"}, False), ({"ray_address": "auto"}, True)]
)
def test_the_settings_say_where(said: dict[str, Any], here: bool):
    make: Callable[..., CairnSettings] = CairnSettings
    assert spread_of(make(**said)).here is here
