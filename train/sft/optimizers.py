"""The two optimizers of supervised training: Muon for the matrices inside the layers, AdamW for all the rest.

Muon's update of a matrix costs far more than adding gradients does, and would be the same work in every process: each
one does it for its share of the matrices, and hands on what came out.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import torch

from train.common.precision import has_bf16
from train.common.process_group import ProcessGroup
from train.common.recipe import SftOptimizer

_MOMENTUM: Final = "momentum_buffer"


class Optimizers:
    """Both, with one schedule, and the weights that they train."""

    def __init__(self, model: torch.nn.Module, settings: SftOptimizer, process_group: ProcessGroup) -> None:
        named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        self.weights = [weight for _, weight in named]
        ends = _ends(model) if settings.muon_lr else set[int]()
        inner = {name for name, weight in named if weight.ndim == 2 and settings.muon_lr and id(weight) not in ends}
        self._matrices = [weight for name, weight in named if name in inner]
        others = [weight for name, weight in named if name not in inner]
        self._settings = settings
        self._process_group = process_group
        mine = {id(weight) for weight in process_group.share(self._matrices)}
        self._of_others = [weight for weight in self._matrices if id(weight) not in mine]
        self._all: list[tuple[torch.optim.Optimizer, float]] = []
        if self._matrices:
            self._muon = Muon(self._matrices, lr=settings.muon_lr, weight_decay=settings.weight_decay)
            self._all.append((self._muon, settings.muon_lr))
        decay = 0.0 if self._matrices else settings.weight_decay
        adamw = torch.optim.AdamW(others, lr=settings.adamw_lr, betas=(0.9, 0.98), weight_decay=decay)
        self._all.append((adamw, settings.adamw_lr))

    @property
    def all(self) -> list[torch.optim.Optimizer]:
        return [optimizer for optimizer, _ in self._all]

    def step(self, *, step: int, tokens: int) -> None:
        """Change the weights by their gradients, which are the same in every process, and let go of these."""
        rate = _rate(self._settings, step=step, tokens=tokens)
        torch.nn.utils.clip_grad_norm_(self.weights, self._settings.clip)
        for weight in self._of_others:
            weight.grad = None
        for optimizer, peak in self._all:
            for group in optimizer.param_groups:
                group["lr"] = peak * rate
            optimizer.step()
            optimizer.zero_grad()
        if self._matrices:
            self._process_group.broadcast([weight.data for weight in self._matrices])

    def bytes(self) -> float:
        """What it will keep beside weights and gradients: one value a weight for Muon, two for AdamW."""
        muon = 4 * sum(weight.numel() for weight in self._matrices)
        return float(muon + 8 * (sum(weight.numel() for weight in self.weights) - muon // 4))

    def consolidate(self) -> None:
        """Have all of Muon's momentum in every process, before a state is saved; every process must call it."""
        if not self._matrices:
            return
        states = [self._muon.state[weight] for weight in self._matrices]
        held = zip(states, self._matrices, strict=True)
        self._process_group.broadcast([state.setdefault(_MOMENTUM, torch.zeros_like(weight)) for state, weight in held])

    def state(self) -> list[dict[str, Any]]:
        """What `load` takes; whole if it was brought together after the last step."""
        return [optimizer.state_dict() for optimizer in self.all]

    def load(self, state: list[dict[str, Any]]) -> None:
        """Go on from there, in any number of processes."""
        for (optimizer, _), kept in zip(self._all, state, strict=True):
            optimizer.load_state_dict(kept)


def _ends(model: torch.nn.Module) -> set[int]:
    """Embeddings, and the matrix that makes logits where it is another one: Muon is for what lies between them."""
    found = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    output: Any = getattr(model, "get_output_embeddings", lambda: None)()
    return {id(module.weight) for module in (*found, *([] if output is None else [output]))}


def _rate(settings: SftOptimizer, *, step: int, tokens: int) -> float:
    """Warm-up, then the peak, then a cosine down to `final_lr`, as a share of the peak."""
    warm = min(1.0, (step + 1) / max(1, settings.warmup_steps))
    fallen = max(0.0, min(1.0, tokens / settings.tokens) - (1 - settings.decay)) / settings.decay
    left = 0.5 * (1 + math.cos(math.pi * fallen))
    return warm * (settings.final_lr + (1 - settings.final_lr) * left)


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
