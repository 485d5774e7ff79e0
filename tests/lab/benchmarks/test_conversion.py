"""The bench of conversions: one conversion in a process without torch, and the page that keeps it."""

from pathlib import Path

import pytest

from agent.errors import SetupError
from lab.benchmarks.conversion import measure
from lab.cli.conversion import page
from tests.agent.models.case import write_small


def test_a_conversion_is_measured_in_a_process_without_torch(tmp_path: Path):
    write_small(tmp_path / "small.gguf")
    figures = measure(tmp_path / "small.gguf")
    assert (figures.model, figures.adapter, figures.quantization) == ("small.gguf", False, "int8")
    assert 0 < figures.again_seconds < figures.seconds
    assert 20 < figures.peak_mb < 250
    assert figures.served_mb > 0.05
    assert "| small.gguf, 0 MB | none | int8 |" in page([figures])


def test_what_cannot_be_converted_is_said(tmp_path: Path):
    (tmp_path / "no.gguf").write_bytes(b"no")
    with pytest.raises(SetupError, match="not a GGUF file"):
        measure(tmp_path / "no.gguf")
