"""Programs that run beside a test."""

import sys

import pytest

from tests.processes import running


def test_a_program_that_says_a_lot_is_not_held_up():
    code = "print('x' * 1_000_000, flush=True)\nprint('ready', flush=True)\ninput()"
    with running([sys.executable, "-c", code]) as program:
        assert program.wait_for(lambda: "ready" in program.said)
    assert program.process.poll() is not None


def test_a_program_that_ends_too_early_is_an_error_with_what_it_said():
    code = "import sys\nsys.exit('there is no such file')"
    with (
        running([sys.executable, "-c", code]) as program,
        pytest.raises(AssertionError, match="there is no such file"),
    ):
        program.wait_for(lambda: "ready" in program.said)
