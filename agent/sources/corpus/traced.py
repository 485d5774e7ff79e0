"""A transformer recorded as one graph, which runs without Python: threads that encode are not in each other's way.

Only where the graph gives what the model itself gives, also on texts of other lengths; else the model stays as it is.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final

from agent.sources.corpus.libraries import need

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_READ: Final = (["a short text", "and a second one that is somewhat longer than that"], ["one"], ["x " * 40] * 3)
"""The first is recorded, the others must give the same."""
_NEAR: Final = 1e-3
"""Share of the largest number by which the two may differ."""

Features = dict[str, Any]


def traced(model: Any) -> Callable[[Features], Features]:
    """Give what makes sentence embeddings of features: the recorded graph, or the model where that cannot be."""
    torch, logs = need("torch"), need("transformers.utils.logging")
    if model.device.type != "cpu":
        return model
    told = logs.get_verbosity()
    logs.set_verbosity_error()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of what a recording cannot see; that is looked at below
            return _record(torch, model)
    except (RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError):
        return model  # recording is for speed only
    finally:
        logs.set_verbosity(told)


def _record(torch: Any, model: Any) -> Callable[[Features], Features]:
    first, *rest = list(model)
    inner = first.auto_model
    names = [name for name in _INPUTS if name in model.preprocess(list(_READ[0]))]

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.inner = inner

        def forward(self, *tensors: Any) -> Any:
            return self.inner(**dict(zip(names, tensors, strict=True))).last_hidden_state

    def tensors(features: Features) -> tuple[Any, ...]:
        return tuple(features[name] for name in names)

    hidden = Hidden().eval()
    graph = torch.jit.trace(hidden, tensors(model.preprocess(list(_READ[0]))), strict=False, check_trace=False)

    def run(features: Features) -> Features:
        made = dict(features) | {"token_embeddings": graph(*tensors(features))}
        for module in rest:
            made = module(made)
        return made

    for texts in _READ:
        ours, theirs = (f(dict(model.preprocess(list(texts))))["sentence_embedding"] for f in (run, model))
        if not ours.shape == theirs.shape or (ours - theirs).abs().max() > _NEAR * theirs.abs().max():
            raise ValueError("the recording depends on the texts that it was made of")
    return run
