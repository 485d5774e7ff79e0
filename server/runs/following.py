"""A run as a stream of events with ids: from any place in it, over any number of connections, on any replica.

An id is a place: how many steps were seen, and how many characters of the text after them. The same place can be
found again wherever the run is read, so nothing is lost or doubled when a connection is cut.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from agent.trace import Trace
from server.http.encoding import as_json, dumped
from server.http.stream import Put
from server.runs.card import RunCard
from server.runs.manager import RunManager
from server.runs.restore import read_trace
from server.store import StoreError
from server.store.records import OpenBlock, RunRow

POLL_SECONDS: Final = 0.5
"""How often the store is read for a run of another replica."""
_ID: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(~)?(\.end)?", re.ASCII)


@dataclass(frozen=True)
class StreamPosition:
    """Where a reader is in a run."""

    steps: int = 0
    chars: int = 0
    over: bool = False
    """Its end was seen."""
    loose: bool = False
    """The last step was shown before it was stored: if its server dies, the store has another one of that number."""

    def __str__(self) -> str:
        return f"{self.steps}.{self.chars}{'~' if self.loose else ''}{'.end' if self.over else ''}"

    @classmethod
    def of(cls, id: str) -> Self:
        """The place of an event's id; empty is the beginning.

        Raises:
            ValueError: there is no such id.
        """
        if not id:
            return cls()
        found = _ID.fullmatch(id)
        if found is None:
            raise ValueError(id)
        return cls(int(found[1]), int(found[2]), over=bool(found[4]), loose=bool(found[3]))


@dataclass(frozen=True)
class View:
    """What may be seen of a run at one moment."""

    row: RunRow
    steps: Sequence[tuple[int, str]]
    """(number, JSON) of those after the reader's place."""
    total: int
    """Steps in all."""
    stored: int
    """How many of them the store has."""
    open_block: OpenBlock


async def follow(
    run_manager: RunManager, run: str, place: StreamPosition, put: Put, *, stops: Callable[[], bool] = lambda: False
) -> bool:
    """Put every event after `place` as it comes, down to the end of the run.

    Args:
        run_manager: of this server.
        run: its id.
        place: where the reader is.
        put: takes events.
        stops: whether this server ends: it is not held up by the runs of others.

    Returns:
        Whether the end was sent; otherwise the reader may come again, from where it was.

    Raises:
        StoreError: the run cannot be read; the reader may come again from where it was.
    """
    reader = _Reader(place, put)
    if place.loose and run_manager.live(run) is None:
        reader.reset()
    while (view := await _view(run_manager, run, after=reader.place.steps)) is not None:
        if reader.place.steps > view.total:
            reader.reset()
            continue
        reader.see(view)
        if not view.row.running:
            reader.end(view.row)
            return True
        if stops() and run_manager.live(run) is None:
            break
        await _more(run_manager, run, reader.place)
    return False


class _Reader:
    """One connection's way through a run."""

    def __init__(self, place: StreamPosition, put: Put) -> None:
        self.place = place
        self._put = put
        self._resumes = True
        """The first look: what is open is sent whole, so that the client need not have kept its part."""

    def reset(self) -> None:
        """The client saw what was never stored and is lost: it begins again."""
        self.place = StreamPosition()
        self._put(frame("reset", "{}", id=self.place))

    def see(self, view: View) -> None:
        for seq, step in view.steps:
            self.place = StreamPosition(seq, loose=seq > view.stored)
            self._put(frame("step", step, id=self.place))
        chars, pieces = view.open_block.chars, view.open_block.pieces
        if chars < self.place.chars or (self._resumes and chars):
            self.place = replace(self.place, chars=chars)
            shown = [{"role": role, "text": text} for role, text in pieces]
            self._put(frame("snapshot", as_json(shown), id=self.place))
        else:
            for role, text in _rest(pieces, self.place.chars):
                self.place = replace(self.place, chars=self.place.chars + len(text))
                self._put(frame("delta", as_json({"role": role, "text": text}), id=self.place))
        self._resumes = False

    def end(self, row: RunRow) -> None:
        self.place = replace(self.place, over=True)
        self._put(frame("end", RunCard.of(row).model_dump_json(), id=self.place))


def frame(event: str, data: str, *, id: StreamPosition | None = None) -> bytes:
    """One event; `data` is JSON on one line."""
    named = f"id: {id}\n" if id is not None else ""
    return f"{named}event: {event}\ndata: {data}\n\n".encode()


def in_order(trace: Trace) -> list[str]:
    """The steps of a trace as JSON, in the order in which they happened."""
    return [dumped(step) for step in sorted(trace.steps, key=lambda step: step.seconds)]


def _steps_of(stored: str) -> list[str]:
    """The steps of a run that was kept as a whole; none where another Cairn wrote it: its card is sent all the same."""
    try:
        return in_order(read_trace(stored))
    except StoreError:
        return []


async def _view(run_manager: RunManager, run: str, *, after: int) -> View | None:
    if live := run_manager.live(run):
        return View(live.row(), live.steps(after=after), live.shown, live.stored, live.open_block)
    look = await run_manager.store.reads.look(run, after=after)
    if look is None:
        return None
    if not look.total and not look.row.running and (stored := await run_manager.store.reads.trace(run)):
        steps = list(enumerate(_steps_of(stored), start=1))
        return View(look.row, steps[after:], len(steps), len(steps), look.open_block)
    return View(look.row, look.steps, look.total, look.total, look.open_block)


async def _more(run_manager: RunManager, run: str, place: StreamPosition) -> None:
    """Wait until there may be more to see than at `place`."""
    live = run_manager.live(run)
    if live is None:
        await asyncio.sleep(POLL_SECONDS)
    elif not live.over and (live.shown, live.open_block.chars) == (place.steps, place.chars):
        await live.changed()


def _rest(pieces: Sequence[tuple[str, str]], chars: int) -> list[tuple[str, str]]:
    """The pieces without their first characters."""
    rest: list[tuple[str, str]] = []
    for role, text in pieces:
        if chars < len(text):
            rest.append((role, text[chars:]))
        chars = max(0, chars - len(text))
    return rest
