"""Where the keys and values of a batch stand: two tensors a layer with room to grow, written in place.

Columns are tokens. All rows end at the same column, so a new token is one column for all of them, and a row that joins
is written before it. A cache that grows by concatenation is copied whole for every token.

A room is used again where its rows have gone or have to be moved: to touch new memory costs more than to copy.
"""

from typing import Any, Final

import transformers
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, [rows, heads, tokens, width] both."""

AHEAD: Final = 128
"""Columns that are made before they are needed: tokens, until the rows are copied to a new room."""
KEPT_BYTES: Final = 256 << 20
"""Of a room that is kept when its last row has gone, at most."""
_Cache: Final[Any] = transformers.Cache
_DynamicLayer: Final[Any] = transformers.cache_utils.DynamicLayer
"""The package is typed in parts only."""


class KvBuffer:
    """Keys and values of all rows. How many there are, and how long each is, is the caller's to know."""

    def __init__(self) -> None:
        self._layers: list[_Layer] = []
        self._cache: Any = None
        self._end = 0
        """Column behind the last token of every row."""

    def join(self, layers: Layers, *, rows: int, longest: int) -> None:
        """Write the keys and values of one more row behind `rows` of them, the longest of which has so many tokens."""
        length = layers[0][0].shape[2]
        if not self._layers:
            self._layers = [_Layer(keys, values) for keys, values in layers]
            self._cache = _Cache(layers=self._layers)
        slots = self._layers[0].slots
        if rows == slots or length > self._end:
            self._move(rows, longest, slots=slots * 2 if rows == slots else slots, end=max(length + AHEAD, self._end))
        for layer, pair in zip(self._layers, layers, strict=True):
            for room, new in zip(layer.room, pair, strict=True):
                room[rows, :, self._end - length : self._end] = new[0]

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
            (layer.room[0][row : row + 1, :, span].clone(), layer.room[1][row : row + 1, :, span].clone())
            for layer in self._layers
        ]

    def replace(self, place: int, row: int, length: int) -> None:
        """Write a row over another one."""
        span = slice(self._end - length, self._end)
        for layer in self._layers:
            for room in layer.room:
                room[place, :, span] = room[row, :, span]

    def clear(self) -> None:
        """Forget the rows, and let go of the memory where it is much, or a GPU's, whose allocator keeps it anyway."""
        self._end = 0
        on_cpu = all(layer.room[0].device.type == "cpu" for layer in self._layers)
        if not on_cpu or sum(layer.bytes for layer in self._layers) > KEPT_BYTES:
            self._layers, self._cache = [], None

    def _move(self, rows: int, longest: int, *, slots: int, end: int) -> None:
        """Make the rows end at another column, in a new room where this one is too small."""
        for layer in self._layers:
            layer.move(rows, slice(self._end - longest, self._end), slots=slots, end=end)
        self._end = end


class _Layer(_DynamicLayer):
    """One layer's room; to the model a cache like any other, of the rows and columns that are open."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        """Make room for one row like this one, and nothing in it."""
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.room = (keys[:, :, :0], values[:, :, :0])
        self._open = (0, slice(0, 0))

    @property
    def slots(self) -> int:
        return self.room[0].shape[0]

    @property
    def columns(self) -> int:
        return self.room[0].shape[2]

    @property
    def bytes(self) -> int:
        return sum(room.nbytes for room in self.room)

    def move(self, rows: int, span: slice, *, slots: int, end: int) -> None:
        """Copy these columns of the first rows to where they end at `end`, in a room with more behind it.

        What is before a row's beginning is never looked at, and must be a number all the same: hence zeros in a new
        room. In one that was used it is one.
        """
        start = end - (span.stop - span.start)
        wide = end + AHEAD <= self.columns
        moved: list[Tensor] = []
        for room in self.room:
            kept = room[:rows, :, span]
            if wide and slots <= self.slots:
                new, kept = room, kept.clone()  # both places may share columns
            else:
                columns = self.columns if wide else end + AHEAD
                new = room.new_zeros((slots, room.shape[1], columns, room.shape[3]))
            new[:rows, :, start:end] = kept
            moved.append(new)
        self.room = (moved[0], moved[1])

    def open(self, rows: int, start: int, end: int) -> None:
        self._open = (rows, slice(start, end + 1))
        self.keys, self.values = (room[:rows, :, start:end] for room in self.room)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the one new token of each row; gives all that is open, with it."""
        rows, span = self._open
        for room, new in zip(self.room, (key_states, value_states), strict=True):
            room[:rows, :, span.stop - 1] = new[:, :, 0]
        self.keys, self.values = (room[:rows, :, span] for room in self.room)
        return self.keys, self.values
