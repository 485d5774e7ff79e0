"""torch's Muon, which makes its updates in bfloat16 whatever the device; here in float32 where that is faster."""

from collections.abc import Callable
from typing import Any

import torch

from train.common.precision import has_bf16


class Muon(torch.optim.Muon):
    """Muon (Jordan et al., 2024), its updates scaled to the size of AdamW's (Liu et al., 2025).

    On an x86 processor with AVX2 alone an update took 15 times as long in bfloat16 as in float32. State and settings
    are torch's own, so that a training goes on on another machine.
    """

    def __init__(self, weights: list[torch.nn.Parameter], *, lr: float, weight_decay: float) -> None:
        super().__init__(weights, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the weights that have a gradient."""
        weights = [(weight, group) for group in self.param_groups for weight in group["params"]]
        if closure is not None or has_bf16() or any(weight.device.type != "cpu" for weight, _ in weights):
            return super().step(closure)
        for weight, group in weights:
            if weight.grad is not None:
                self._change(weight, weight.grad, group)
        return None

    def _change(self, weight: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        momentum = state["momentum_buffer"]
        momentum.lerp_(gradient, 1 - group["momentum"])
        direction = gradient.lerp(momentum, group["momentum"])
        update = orthogonal(direction, group["ns_coefficients"], steps=group["ns_steps"], eps=group["eps"])
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.add_(update, alpha=-0.2 * group["lr"] * max(weight.shape) ** 0.5)


def orthogonal(matrix: torch.Tensor, odd: tuple[float, float, float], *, steps: int, eps: float) -> torch.Tensor:
    """A matrix with about the same singular vectors and singular values near 1, in its own precision.

    Newton-Schulz iterations; args as torch's Muon keeps them.

    Args:
        matrix: [rows, columns].
        odd: coefficients of the first, third and fifth power.
        steps: iterations.
        eps: the least norm that it is divided by.
    """
    first, third, fifth = odd
    if matrix.shape[0] > matrix.shape[1]:  # products of the shorter side
        return orthogonal(matrix.T, odd, steps=steps, eps=eps).T
    made = matrix / matrix.norm().clamp(min=eps)
    for _ in range(steps):
        square = made @ made.T
        made = first * made + (third * square + fifth * square @ square) @ made
    return made
