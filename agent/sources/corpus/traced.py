"""A transformer recorded as one graph, which runs without Python: threads that encode are not in each other's way.

Where the family of the model is known, the graph reads texts packed into rows instead of padded. Each of both is used
only where it gives what the model itself gives, also on texts of other lengths; else the model stays as it is.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent.sources.corpus.libraries import need
from agent.sources.corpus.packed import Packing

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_READ: Final = (["a short text", "and a second one that is somewhat longer than that"], ["one"], ["x " * 40, "y z"] * 3)
"""The first is recorded, the others must give the same."""
_NEAR: Final = 1e-3
"""Share of the largest number by which the graph and the model may differ."""
_NEAR_IN_HALF: Final = 2e-2
"""The same in half precision, where the order of a sum is seen in its last digits."""
_FIRST_POSITION: Final[dict[str, Callable[[Any], int]]] = {
    "bert": lambda config: 0,
    "roberta": lambda config: config.pad_token_id + 1,
    "xlm-roberta": lambda config: config.pad_token_id + 1,
}
"""Families that take positions and a mask of pairs → the position of a text's first token."""

Features = dict[str, Any]
Run = Callable[[Features], Features]


def traced(model: Any) -> Run:
    """Give what makes sentence embeddings of features: the recorded graph, or the model where that cannot be."""
    torch, logs = need("torch"), need("transformers.utils.logging")
    if model.device.type != "cpu":
        return model
    verbosity = logs.get_verbosity()
    logs.set_verbosity_error()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of what a recording cannot see; that is looked at below
            return _tried(torch, model, _record_packed) or _tried(torch, model, _record) or model
    finally:
        logs.set_verbosity(verbosity)


def _tried(torch: Any, model: Any, record: Callable[[Any, Any], Callable[[Features], Any]]) -> Run | None:
    """The whole model by its recorded transformer; None where that is not possible: recording is for speed only."""
    try:
        hidden = record(torch, model)

        def run(features: Features) -> Features:
            made = dict(features) | {"token_embeddings": hidden(features)}
            for module in list(model)[1:]:
                made = module(made)
            return made

        return run if all(_same(torch, model, run, texts) for texts in _READ) else None
    except (RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError):
        return None


def _same(torch: Any, model: Any, run: Run, texts: list[str]) -> bool:
    ours, theirs = (f(dict(model.preprocess(list(texts))))["sentence_embedding"] for f in (run, model))
    near = _NEAR if model.dtype == torch.float32 else _NEAR_IN_HALF
    return ours.shape == theirs.shape and bool((ours - theirs).abs().max() <= near * theirs.abs().max())


def _record(torch: Any, model: Any) -> Callable[[Features], Any]:
    """The transformer on padded texts."""
    example = model.preprocess(list(_READ[0]))
    names = [name for name in _INPUTS if name in example]
    graph = _graph(torch, model, {name: example[name] for name in names})
    return lambda features: graph(*(features[name] for name in names))


def _record_packed(torch: Any, model: Any) -> Callable[[Features], Any]:
    """The transformer on packed texts.

    Raises:
        KeyError: the family of the model is not known.
    """
    config = model[0].auto_model.config
    first = _FIRST_POSITION[config.model_type](config)

    def inputs(features: Features, packing: Packing) -> dict[str, Any]:
        tokens = {name: packing.pack(features[name]) for name in ("input_ids", "token_type_ids") if name in features}
        return tokens | {"attention_mask": packing.mask(), "position_ids": packing.positions(first)}

    def packed(features: Features) -> Any:
        packing = Packing(features["attention_mask"])
        return packing.unpack(graph(*inputs(features, packing).values()))

    example = model.preprocess(list(_READ[0]))
    graph = _graph(torch, model, inputs(example, Packing(example["attention_mask"])))
    return packed


def _graph(torch: Any, model: Any, example: Mapping[str, Any]) -> Callable[..., Any]:
    """Record the transformer on these named tensors; the graph takes others in their order."""
    inner, names = model[0].auto_model, list(example)

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.inner = inner

        def forward(self, *tensors: Any) -> Any:
            return self.inner(**dict(zip(names, tensors, strict=True))).last_hidden_state

    return torch.jit.trace(Hidden().eval(), tuple(example.values()), strict=False, check_trace=False)
