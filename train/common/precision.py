"""In which type a training computes: what its recipe wants, where the processor has arithmetic for it."""

import logging
import platform
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import torch

_log = logging.getLogger(__name__)
_SLOW: Final = (
    "this processor has no arithmetic for bfloat16, and would take several times as long with it: what is computed is "
    "computed in float32"
)


def computes_bf16(wanted: bool, device: torch.device) -> bool:
    """Whether to compute in bfloat16; where a recipe wants it and the processor cannot, a sentence says so once.

    On an x86 processor with AVX2 alone a matrix product took 6 times as long in bfloat16 as in float32 (docs/log.md).

    Args:
        wanted: `bf16` of the recipe.
        device: where it is computed.
    """
    if not wanted or device.type != "cpu" or has_bf16():
        return wanted
    _say_once()
    return False


@cache
def _say_once() -> None:
    _log.warning(_SLOW)


def has_bf16() -> bool:
    """Whether this processor computes in bfloat16."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True  # torch knows the names of x86's instructions alone
    able: Mapping[str, Any] = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
