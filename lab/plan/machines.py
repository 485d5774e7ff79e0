"""Kinds of GPU in plain figures, as their makers' data sheets have them. Which ones a run gets is not decided here."""

from dataclasses import dataclass
from typing import Final

from agent.errors import SetupError


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    memory: float
    """Bytes."""
    flops: float
    """A second, in bfloat16 with sums in float32, dense."""
    bandwidth: float
    """Bytes a second, of its memory."""
    link: float
    """Bytes a second and direction, to the other GPUs of its machine."""


GPUS: Final = {
    "A100-80G": Gpu(80e9, 312e12, 2.04e12, 300e9),
    "H100": Gpu(80e9, 989e12, 3.35e12, 450e9),
    "H800": Gpu(80e9, 989e12, 3.35e12, 200e9),
    "H200": Gpu(141e9, 989e12, 4.8e12, 450e9),
    "RTX-4090": Gpu(24e9, 165e12, 1.01e12, 20e9),
}


def gpu_named(name: str) -> Gpu:
    """The kind with this name.

    Raises:
        SetupError: there is none.
    """
    if name not in GPUS:
        raise SetupError(f"there is no figure of a GPU {name!r}; there are: {', '.join(GPUS)}")
    return GPUS[name]
