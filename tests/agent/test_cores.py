"""How many cores there are to use, on systems that report it and on systems that do not."""

import os

import pytest

from agent.cores import cores


def test_a_process_that_may_use_some_cores_only_counts_those(monkeypatch: pytest.MonkeyPatch):
    def some(_pid: int) -> set[int]:
        return {0, 2, 5}

    monkeypatch.setattr(os, "sched_getaffinity", some, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert cores() == 3


@pytest.mark.parametrize(("there", "counted"), [(6, 6), (None, 1)])
def test_where_the_system_does_not_report_which_all_are_counted(
    there: int | None, counted: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: there)
    assert cores() == counted
