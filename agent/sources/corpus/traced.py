"""A transformer recorded as one graph, which runs without Python: threads that encode are not in each other's way.

Where the family of the model is known, the graph reads texts packed into rows instead of padded. Each of both is used
only where it gives what the model itself gives, also on texts of other lengths; else the model stays as it is.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent.sources.corpus.libraries import need

ROW: Final = 48
"""Tokens of a row, or those of the longest text: two or three questions. In longer rows attention costs more than the
padding that they save."""

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


class Packing:
    """Where the tokens of a batch lie in rows.

    Texts laid end to end, so that little of what a transformer calculates is padding. A mask keeps the texts of a row
    apart, and each begins at its own first position (packing without contamination, Krell et al. 2021,
    arXiv:2107.02027).
    """

    def __init__(self, attention_mask: Any) -> None:
        """Lay out a batch.

        Args:
            attention_mask: shape (texts, tokens of the longest); other than 0 where there is a token.
        """
        self._torch: Any = need("torch")
        self._real = attention_mask.bool()
        counts: list[int] = self._real.sum(1).tolist()
        self._width = max(max(counts), min(ROW, sum(counts)))
        rows, first = _fit(counts, self._width)
        self._shape = (rows, self._width)
        within = (self._real.long().cumsum(1) - 1)[self._real]
        starts = self._torch.tensor(first).repeat_interleave(self._torch.tensor(counts))
        self._places = starts + within
        self._within = within
        self._texts = self._torch.arange(1, len(counts) + 1).repeat_interleave(self._torch.tensor(counts))

    def pack(self, tokens: Any) -> Any:
        """Shape (texts, longest) to (rows, row); 0 where there is nothing."""
        return self._laid(tokens[self._real])

    def positions(self, first: int) -> Any:
        """Shape (rows, row): the place of each token in its text, counted from `first`."""
        return self._laid(self._within + first)

    def mask(self) -> Any:
        """Shape (rows, 1, row, row): true where two tokens are of one text. What is empty sees only what is empty."""
        texts = self._laid(self._texts)
        return (texts[:, :, None] == texts[:, None, :])[:, None]

    def unpack(self, hidden: Any) -> Any:
        """Shape (rows, row, dim) to (texts, longest, dim); 0 where there is no token."""
        made = hidden.new_zeros((*self._real.shape, hidden.shape[-1]))
        made[self._real] = hidden.flatten(0, 1)[self._places]
        return made

    def _laid(self, values: Any) -> Any:
        rows = values.new_zeros(self._shape[0] * self._shape[1])
        rows[self._places] = values
        return rows.view(self._shape)


def _fit(counts: Sequence[int], width: int) -> tuple[int, list[int]]:
    """How many rows there are, and the first place of each text, counted through all rows: first fit, longest first."""
    used: list[int] = []
    first = [0] * len(counts)
    for text in sorted(range(len(counts)), key=lambda text: -counts[text]):
        row = next((row for row, there in enumerate(used) if there + counts[text] <= width), len(used))
        if row == len(used):
            used.append(0)
        first[text] = row * width + used[row]
        used[row] += counts[text]
    return len(used), first
