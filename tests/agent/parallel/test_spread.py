"""The same function here, in processes and on Ray: order, errors, what is read ahead, and what is left at the end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import pytest

from agent.errors import SetupError, SourceError
from agent.parallel.spread import HERE, On, Spread, mapped, spread_of
from agent.parallel.workers import WorkerLost
from agent.settings import CairnSettings
from tests.spreads import closing, die, fail, first_dies, hold, odd, square, waits, where

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


@pytest.mark.parametrize("on", ON)
def test_what_ended_is_given_before_a_lost_worker_is_reported(on: On, tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "pipe")
    seen: list[int] = []
    with Spread(workers=2, on=on) as spread:
        with pytest.raises(WorkerLost):
            seen.extend(spread.ended(first_dies, ((number, pipe) for number in count())))  # it ends: no more is begun
        assert {1, 2, 3} <= set(seen)
        assert sorted(spread.ended(square, range(9))) == [number * number for number in range(9)]


def test_results_come_as_they_end_and_here_in_their_order(tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "pipe")
    assert list(HERE.ended(square, range(5))) == [0, 1, 4, 9, 16]
    found: list[int] = []
    with Spread(workers=2) as spread:
        for number in spread.ended(waits, [(0, pipe), (1, pipe)]):
            if number == 1:
                pipe.write_text("go on", encoding="utf-8")
            found.append(number)
    assert found == [1, 0]


def held(spread: Spread, pipe: Path) -> TextIO:
    """Begin what never ends, and be interrupted."""
    lines: list[TextIO] = []

    def items() -> Iterator[Path]:
        yield pipe
        lines.append(pipe.open(encoding="utf-8"))
        assert int(lines[0].readline()) != os.getpid()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), spread:
        list(spread.ended(hold, items()))
    return lines[0]


def test_who_is_busy_is_stopped_at_the_end(tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with held(Spread(workers=2), pipe) as line:
        assert not line.read(), "until the worker is gone"


@pytest.mark.slow
@ray_warns
def test_on_a_ray_of_another_program_what_was_begun_is_stopped_and_the_ray_goes_on(tmp_path: Path):
    import ray

    os.mkfifo(pipe := tmp_path / "pipe")
    with Spread(workers=2, on="ray") as first:
        assert list(first.mapped(square, [1, 2])) == [1, 4]
        with held(Spread(workers=2, on="ray"), pipe) as line:
            assert not line.read()
        assert ray.is_initialized()
        assert list(first.mapped(square, [3])) == [9]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_workers_end_with_the_process_that_started_them(name: str, tmp_path: Path):
    os.mkfifo(pipe := tmp_path / "pipe")
    script = f"""
from pathlib import Path
from agent.parallel.spread import mapped
from tests.spreads import hold
list(mapped(hold, [Path({str(pipe)!r})], workers=2))
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    with pipe.open(encoding="utf-8") as line:
        assert int(line.readline()) != process.pid
        process.send_signal(getattr(signal, name))
        assert process.wait(60) != 0
        assert not line.read()


def test_what_a_worker_keeps_is_closed_at_its_end(tmp_path: Path):
    file = tmp_path / "file"
    with Spread(workers=2) as spread:
        assert list(spread.mapped(closing, [file])) == [False]
    assert file.read_text(encoding="utf-8") == "closed"


def test_an_error_that_cannot_be_sent_is_reported_in_words_and_every_one_says_where_it_was_raised():
    with Spread(workers=2) as spread:
        with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
            list(spread.mapped(odd, [1]))
        with pytest.raises(SourceError) as caught:
            list(spread.mapped(fail, [3]))
        assert "in fail" in caught.value.__notes__[0]


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


def test_no_workers_can_do_no_work():
    with pytest.raises(SetupError, match="at least 1"):
        Spread(workers=0)


@pytest.mark.parametrize(
    ("said", "here"), [({}, True), ({"workers": 2}, False), ({"work": "ray"}, False), ({"ray_address": "auto"}, True)]
)
def test_the_settings_say_where(said: dict[str, Any], here: bool):
    make: Callable[..., CairnSettings] = CairnSettings
    assert spread_of(make(**said)).here is here
