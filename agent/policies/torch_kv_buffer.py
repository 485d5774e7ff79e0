"""The keys and values of a batch: two tensors per layer with free columns to grow into, written in place.

Columns are tokens. All rows end at the same column, so a new token is one column for all of them, and a row that joins
is written before it. A cache that grows by concatenation is copied whole for every token.

A buffer is used again when its rows are gone or must move: touching new memory costs more than copying.
"""

from typing import Any, Final

import transformers
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, [rows, heads, tokens, width] both."""

AHEAD: Final = 128
"""Columns that are made before they are needed: tokens, until the rows are copied to a new buffer."""
KEPT_BYTES: Final = 256 << 20
"""The largest buffer that is kept when its last row is gone."""
_Cache: Final[Any] = transformers.Cache
_DynamicLayer: Final[Any] = transformers.cache_utils.DynamicLayer
"""The package is typed in parts only."""


class KvBuffer:
    """Keys and values of all rows. The caller knows how many there are, and how long each is."""

    def __init__(self) -> None:
        self._layers: list[_Layer] = []
        self._cache: Any = None
        self._end = 0
        """Column behind the last token of every row."""

    def join(self, layers: Layers, *, rows: int, longest: int) -> None:
        """Write the keys and values of one more row behind `rows` of them; the longest has `longest` tokens."""
        length = layers[0][0].shape[2]
        if not self._layers:
            self._layers = [_Layer(keys, values) for keys, values in layers]
            self._cache = _Cache(layers=self._layers)
        slots = self._layers[0].slots
        if rows == slots or length > self._end:
            self._move(rows, longest, slots=slots * 2 if rows == slots else slots, end=max(length + AHEAD, self._end))
        for layer, pair in zip(self._layers, layers, strict=True):
            for buffer, new in zip(layer.buffers, pair, strict=True):
                buffer[rows, :, self._end - length : self._end] = new[0]

    def opened(self, *, rows: int, longest: int) -> Any:
        """The cache of the first rows, which takes one more token of each."""
        if self._end == self._layers[0].columns:
            self._move(rows, longest, slots=self._layers[0].slots, end=longest)
        for layer in self._layers:
            layer.open(rows, self._end - longest, self._end)
        self._end += 1
        return self._cache

    def take(self, row: int, length: int) -> Layers:
        """A copy of one row."""
        span = slice(self._end - length, self._end)
        return [
            (layer.buffers[0][row : row + 1, :, span].clone(), layer.buffers[1][row : row + 1, :, span].clone())
            for layer in self._layers
        ]

    def replace(self, place: int, row: int, length: int) -> None:
        """Write a row over another one."""
        span = slice(self._end - length, self._end)
        for layer in self._layers:
            for buffer in layer.buffers:
                buffer[place, :, span] = buffer[row, :, span]

    def clear(self) -> None:
        """Forget the rows, and free the memory where it is much, or a GPU's, whose allocator keeps it anyway."""
        self._end = 0
        on_cpu = all(layer.buffers[0].device.type == "cpu" for layer in self._layers)
        if not on_cpu or sum(layer.bytes for layer in self._layers) > KEPT_BYTES:
            self._layers, self._cache = [], None

    def _move(self, rows: int, longest: int, *, slots: int, end: int) -> None:
        """Make the rows end at another column, in a new buffer where this one is too small."""
        for layer in self._layers:
            layer.move(rows, slice(self._end - longest, self._end), slots=slots, end=end)
        self._end = end


class _Layer(_DynamicLayer):
    """One layer's buffers; to the model a cache like any other, of the rows and columns that are open."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        """Allocate for one row like this one, and write nothing."""
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.buffers = (keys[:, :, :0], values[:, :, :0])
        self._open = (0, slice(0, 0))

    @property
    def slots(self) -> int:
        return self.buffers[0].shape[0]

    @property
    def columns(self) -> int:
        return self.buffers[0].shape[2]

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self.buffers)

    def move(self, rows: int, span: slice, *, slots: int, end: int) -> None:
        """Copy these columns of the first rows to where they end at `end`, in a buffer with free columns behind it.

        Columns before a row's beginning are masked, but must be numbers: hence zeros in a new buffer.
        """
        start = end - (span.stop - span.start)
        wide = end + AHEAD <= self.columns
        moved: list[Tensor] = []
        for buffer in self.buffers:
            kept = buffer[:rows, :, span]
            if wide and slots <= self.slots:
                new, kept = buffer, kept.clone()  # both places may share columns
            else:
                columns = self.columns if wide else end + AHEAD
                new = buffer.new_zeros((slots, buffer.shape[1], columns, buffer.shape[3]))
            new[:rows, :, start:end] = kept
            moved.append(new)
        self.buffers = (moved[0], moved[1])

    def open(self, rows: int, start: int, end: int) -> None:
        self._open = (rows, slice(start, end + 1))
        self.keys, self.values = (buffer[:rows, :, start:end] for buffer in self.buffers)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the one new token of each row; gives all that is open, with it."""
        rows, span = self._open
        for buffer, new in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[:rows, :, span.stop - 1] = new[:, :, 0]
        self.keys, self.values = (buffer[:rows, :, span] for buffer in self.buffers)
        return self.keys, self.values
