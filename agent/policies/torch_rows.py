"""The arithmetic of the `transformers` engine: rows of a batch with their keys and values, and how a token is drawn.

Rows are padded on the left. They join and leave between two tokens, and no other row's keys and values are copied for
it (`torch_kv_buffer`). No threads, no requests, no text.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

import torch
import transformers
from torch import Tensor

from agent.policies.base import Sampling
from agent.policies.token_context import Sampled
from agent.policies.torch_kv_buffer import KvBuffer, Layers

_DynamicCache: Final[Any] = transformers.DynamicCache
"""The package is typed in parts only."""


@dataclass(frozen=True)
class Cache:
    """What the model has computed for the beginning of one context; it is never written to."""

    ids: tuple[int, ...]
    layers: Layers

    @cached_property
    def bytes(self) -> int:
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)

    def common(self, ids: Sequence[int]) -> "Cache":
        """As much of it as serves for `ids`; the last of them is never part of it: its logits are still wanted."""
        most = min(len(self.ids), len(ids) - 1)
        if self.ids[:most] == tuple(ids[:most]):  # nearly always, and much faster than to look for the place
            same = most
        else:
            same = next(at for at in range(most) if self.ids[at] != ids[at])
        if same == len(self.ids):
            return self
        return Cache(self.ids[:same], [(keys[:, :, :same], values[:, :, :same]) for keys, values in self.layers])


EMPTY: Final = Cache((), [])


class BatchRows:
    """A batch of contexts that all grow by one token at a time."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._cache_argument = cache_argument(model)
        self._device = device
        self._lengths: list[int] = []
        self._buffer = KvBuffer()

    def __len__(self) -> int:
        return len(self._lengths)

    def extend(self, cache: Cache, ids: Sequence[int]) -> tuple[Cache, Tensor]:
        """Read more of one context, outside of the batch.

        Returns:
            The longer cache, and the logits of what follows, [vocabulary] in float32.
        """
        layers = _dynamic(cache.layers)
        past = len(cache.ids)
        logits = self._forward(
            torch.tensor([ids], device=self._device),
            torch.arange(past, past + len(ids), device=self._device)[None],
            None,
            layers,
        )
        return Cache((*cache.ids, *ids), _pairs(layers)), logits[0]

    def extend_all(self, parts: Sequence[tuple[Cache, Sequence[int]]]) -> list[tuple[Cache, Tensor]]:
        """Read more of several contexts at once, outside of the batch; see `extend`.

        What is known of each stands at the right of the padding, and so does what is new.
        """
        if len(parts) == 1:
            return [self.extend(*parts[0])]
        pasts, news = [len(cache.ids) for cache, _ in parts], [len(ids) for _, ids in parts]
        past, new = max(pasts), max(news)
        ids = torch.zeros((len(parts), new), dtype=torch.long)
        positions = torch.zeros_like(ids)
        mask = torch.zeros((len(parts), past + new), dtype=torch.long)
        for row, (cache, more) in enumerate(parts):
            ids[row, new - len(more) :] = torch.tensor(more)
            positions[row, new - len(more) :] = torch.arange(pasts[row], pasts[row] + len(more))
            mask[row, past - len(cache.ids) : past] = 1
            mask[row, past + new - len(more) :] = 1
        layers = _side_by_side([cache.layers for cache, _ in parts], longest=past)
        logits = self._forward(ids.to(self._device), positions.to(self._device), mask.to(self._device), layers)
        pairs = _pairs(layers)
        return [
            (Cache((*cache.ids, *more), _cut_out(pairs, row, known=past, past=pasts[row], new=news[row])), logits[row])
            for row, (cache, more) in enumerate(parts)
        ]

    def join(self, cache: Cache) -> None:
        """Make a context the last row."""
        self._buffer.join(cache.layers, rows=len(self), longest=max(self._lengths, default=0))
        self._lengths.append(len(cache.ids))

    def step(self, ids: Sequence[int]) -> Tensor:
        """Append one token to each row; gives the logits of what follows, [rows, vocabulary] in float32."""
        lengths = torch.tensor(self._lengths, device=self._device)
        longest = max(self._lengths)
        mask = None
        if min(self._lengths) < longest:
            mask = (torch.arange(longest + 1, device=self._device)[None] >= longest - lengths[:, None]).long()
        cache = self._buffer.opened(rows=len(self), longest=longest)
        logits = self._forward(torch.tensor(ids, device=self._device)[:, None], lengths[:, None], mask, cache)
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def take(self, row: int) -> Layers:
        """What was computed for a row, as a copy of its own."""
        return self._buffer.take(row, self._lengths[row])

    def keep(self, rows: Sequence[int]) -> None:
        """Remove all other rows. The kept ones are in this order; only a row that changes places is copied.

        Args:
            rows: where one stands behind its place in this list, its place is free by then.
        """
        for place, row in enumerate(rows):
            if place != row:
                self._buffer.replace(place, row, self._lengths[row])
        self._lengths = [self._lengths[row] for row in rows]
        if not rows:
            self._buffer.clear()

    def drop(self) -> None:
        """Remove all rows, and the buffer with what a failure may have left in it."""
        self._lengths = []
        self._buffer = KvBuffer()

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: Any) -> Tensor:
        """Read tokens, either one of each row or some of one row; their keys and values are added to the cache.

        Args:
            ids: [rows, tokens].
            positions: of the tokens in their contexts, [rows, tokens].
            mask: 1 where a column of the cache, or the token itself, belongs to the row, [rows, columns + 1]; None:
                everything does.
            cache: of transformers.

        Returns:
            Logits of what follows the last token of each row, in float32, [rows, vocabulary].
        """
        out = self._model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: cache},
        )
        return out.logits[:, -1].float()


def cache_argument(model: Any) -> str:
    """The name of the argument that takes a cache: `cache`, before transformers 5.24 `past_key_values`."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def closed_up(stays: Sequence[bool]) -> list[int]:
    """The rows that stay, in the order that moves the fewest: the last ones take the places that are free."""
    count = sum(stays)
    behind = (row for row in range(count, len(stays)) if stays[row])
    return [row if stays[row] else next(behind) for row in range(count)]


def choose(logits: Tensor, sampling: Sequence[Sampling], draws: Sequence[torch.Generator]) -> list[Sampled]:
    """The next token of each row, with its log-probability before temperature, top-k and top-p.

    Args:
        logits: [rows, vocabulary] in float32.
        sampling: of each row.
        draws: random numbers of each row.
    """
    logprobs = logits.log_softmax(-1)
    chosen = cast(list[int], logits.argmax(-1).tolist())  # pyright: ignore[reportUnknownMemberType]
    for how, rows in _alike(sampling):
        for row, number in zip(rows, draw(logits[rows], how, [draws[row] for row in rows]), strict=True):
            chosen[row] = number
    index = torch.tensor(chosen, device=logits.device)[:, None]
    logs = cast(list[float], logprobs.gather(-1, index)[:, 0].tolist())  # pyright: ignore[reportUnknownMemberType]
    return list(zip(chosen, logs, strict=True))


def draw(logits: Tensor, sampling: Sampling, draws: Sequence[torch.Generator]) -> list[int]:
    """A token for each row by one random number: where it falls in the cumulated probabilities of what may be drawn.

    Args:
        logits: [rows, vocabulary] in float32.
        sampling: of all rows, with a temperature above 0; top-k and top-p leave a part of the vocabulary.
        draws: of each row, on the CPU, so that a seed means the same on every device.
    """
    scaled, order = logits / sampling.temperature, None
    if sampling.top_k or sampling.top_p < 1:
        scaled, order = scaled.topk(min(sampling.top_k or logits.shape[-1], logits.shape[-1]))
    reached = scaled.softmax(-1).cumsum(-1)
    last = torch.full((len(reached), 1), reached.shape[-1] - 1, device=logits.device)
    if sampling.top_p < 1:
        last = last.minimum((reached < sampling.top_p).sum(-1, keepdim=True))
    numbers = torch.tensor([[torch.rand((), generator=generator).item()] for generator in draws], device=logits.device)
    place = last.minimum((reached <= numbers * reached.gather(-1, last)).sum(-1, keepdim=True))
    if order is not None:
        place = order.gather(-1, place)
    return cast(list[int], place[:, 0].tolist())  # pyright: ignore[reportUnknownMemberType]


def _alike(sampling: Sequence[Sampling]) -> list[tuple[Sampling, list[int]]]:
    """The rows that are drawn, by how: nothing but the seed may differ within a part."""
    parts: dict[Sampling, list[int]] = {}
    for row, how in enumerate(sampling):
        if how.temperature > 0:
            parts.setdefault(replace(how, seed=0), []).append(row)
    return list(parts.items())


def _dynamic(layers: Layers) -> Any:
    cache = _DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


def _side_by_side(contexts: Sequence[Layers], *, longest: int) -> Any:
    """A cache with a row for each context, padded on the left; of several, at least one with something known."""
    cache = _DynamicCache()
    known = [layers for layers in contexts if layers]
    if not longest:
        return cache
    for number, pair in enumerate(known[0]):
        padded: list[Tensor] = []
        for side, like in enumerate(pair):
            rows = like.new_zeros((len(contexts), like.shape[1], longest, like.shape[3]))
            for row, layers in enumerate(contexts):
                if layers:
                    one = layers[number][side]
                    rows[row, :, longest - one.shape[2] :] = one[0]
            padded.append(rows)
        cache.update(*padded, number)
    return cache


def _cut_out(layers: Layers, row: int, *, known: int, past: int, new: int) -> Layers:
    """A copy of one row without its padding: the last `past` of the `known` columns, and the last `new` of all."""

    def cut(whole: Tensor) -> Tensor:
        one = whole[row : row + 1]
        return torch.cat([one[:, :, known - past : known], one[:, :, one.shape[2] - new :]], dim=2)

    return [(cut(keys), cut(values)) for keys, values in layers]


def _pairs(cache: Any) -> Layers:
    return [(layer.keys, layer.values) for layer in cache.layers]
