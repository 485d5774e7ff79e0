"""bfloat16 is for processors that compute it: on others it takes several times as long."""

import platform

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch

from train.common import precision
from train.common.precision import computes_bf16

pytestmark = pytest.mark.train


@pytest.mark.parametrize(
    ("wanted", "device", "able", "computes"),
    [
        (True, "cpu", {"avx512_bf16": True, "amx_bf16": False}, True),
        (True, "cpu", {"avx512_bf16": False, "amx_bf16": True}, True),
        (True, "cpu", {"avx2": True, "avx512_bf16": False}, False),
        (False, "cpu", {"avx512_bf16": True}, False),
        (True, "cuda", {"avx512_bf16": False}, True),
    ],
)
def test_bfloat16_is_computed_where_the_processor_has_it(
    wanted: bool, device: str, able: dict[str, bool], computes: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert computes_bf16(wanted, torch.device(device)) is computes


def test_a_recipe_that_is_not_followed_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    precision._say_once.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        computes_bf16(True, torch.device("cpu"))
    assert [record.message for record in caplog.records] == [precision._SLOW]  # pyright: ignore[reportPrivateUsage]
