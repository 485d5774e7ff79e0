"""A linear layer with a low-rank adapter in one step of autograd: what peft computes, reading memory fewer times.

peft casts the input for every layer, multiplies a whole output by the scaling and adds it. Here the scaling is in the
narrow middle, sums are made by the matrix products themselves, and layers with one input keep it once.
"""

from types import MethodType
from typing import Any

import torch
from torch.autograd.function import once_differentiable


class _LowRank(torch.autograd.Function):
    """From x, its layer's weight and bias, and A and B of the adapter, to x W' + bias + scaling (x A') B'."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        """Compute rows of any shape [..., in] in the type of `x`; a and b may have another one."""
        rows = x.reshape(-1, x.shape[-1])
        narrow = (rows @ a.to(x.dtype).t()).mul_(scaling)
        out = rows @ weight.t() if bias is None else torch.addmm(bias, rows, weight.t())
        out.addmm_(narrow, b.to(x.dtype).t())
        ctx.save_for_backward(rows, narrow, weight, a, b)
        ctx.scaling, ctx.shape = scaling, x.shape
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - what `once_differentiable` gives
        ctx: Any, *grads: torch.Tensor
    ) -> tuple[torch.Tensor | None, None, None, torch.Tensor, torch.Tensor, None]:
        """The gradients of x, a and b; the layer's own weights stay as they are."""
        rows, narrow, weight, a, b = ctx.saved_tensors
        grad = grads[0].to(rows.dtype).reshape(-1, grads[0].shape[-1])
        inner = (grad @ b.to(rows.dtype)).mul_(ctx.scaling)
        of_a, of_b = (inner.t() @ rows).to(a.dtype), (grad.t() @ narrow).to(b.dtype)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = (grad @ weight).addmm_(inner, a.to(rows.dtype)).view(ctx.shape)
        return of_x, None, None, of_a, of_b, None


def use_low_rank(model: torch.nn.Module) -> int:
    """Have every linear layer with an adapter of peft's compute this way, where it is a plain one.

    Returns:
        How many do.
    """
    from peft.tuners.lora import Linear

    found = [layer for layer in model.modules() if isinstance(layer, Linear) and _is_plain(layer)]
    for layer in found:
        layer.forward = MethodType(_forward, layer)
    return len(found)


def _is_plain(layer: Any) -> bool:
    base = layer.get_base_layer()
    dropped = any(not isinstance(dropout, torch.nn.Identity) for dropout in layer.lora_dropout.values())
    return type(base) is torch.nn.Linear and not base.weight.requires_grad and not dropped and not layer.lora_variant


def _forward(layer: Any, x: torch.Tensor, *said: Any, **also: Any) -> torch.Tensor:
    base, active = layer.get_base_layer(), layer.active_adapters
    if layer.disable_adapters or layer.merged or len(active) != 1 or active[0] not in layer.lora_A:
        return type(layer).forward(layer, x, *said, **also)
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else base.weight.dtype
    weight, bias = base.weight, base.bias
    if weight.dtype != dtype:
        weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    name = active[0]
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    with torch.autocast(kind, enabled=False):
        return _LowRank.apply(x.to(dtype), weight, bias, a, b, layer.scaling[name])
