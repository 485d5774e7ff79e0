"""A circuit breaker: a backend that fails again and again is left alone for a while. It keeps count, nothing more.

Closed: every request may pass. Open: none may. When its time is over, one try goes through (half-open): if it is
answered the breaker closes, if not it opens again. What a try that began under an earlier state reports changes
nothing.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True)
class Permit:
    """The leave to try once; handed back with how the try ended."""

    epoch: int
    probe: bool = False


class Breaker:
    """Times are of whatever clock the caller reads; they are passed in."""

    def __init__(self, *, failures: int, seconds: float) -> None:
        """Open for `seconds` after N failures in a row."""
        self._failures = failures
        self._seconds = seconds
        self._row = 0.0
        self._until: float | None = None
        self._probing = False
        self._epoch = 0

    def state(self, now: float) -> State:
        if self._until is None:
            return "closed"
        return "open" if now < self._until else "half-open"

    def closed_for(self, now: float) -> float | None:
        """Seconds until the next try may go through; None: one may go now. 0 while another is just trying."""
        match self.state(now):
            case "closed":
                return None
            case "open":
                assert self._until is not None
                return self._until - now
            case "half-open":
                return 0.0 if self._probing else None

    def enter(self, now: float) -> Permit:
        """Begin a try; only where `closed_for` says None."""
        assert self.closed_for(now) is None, "the breaker is open"
        if self.state(now) == "closed":
            return Permit(self._epoch)
        self._probing = True
        return Permit(self._epoch, probe=True)

    def answered(self, turn: Permit) -> None:
        """The backend is alive."""
        if turn.epoch != self._epoch:
            return
        self._row = 0.0
        if turn.probe:
            self._until = None
            self._next_state()

    def failed(self, turn: Permit, now: float, *, weight: float = 1.0) -> None:
        """The backend is not well: one more in the row, or a part of one where that is not so sure."""
        if turn.epoch != self._epoch:
            return
        self._row += weight
        if turn.probe or self._row >= self._failures:
            self.open(turn, now, seconds=self._seconds)

    def open(self, turn: Permit, now: float, *, seconds: float) -> None:
        """Leave it alone at once, and for so long."""
        if turn.epoch != self._epoch:
            return
        self._until = now + seconds
        self._next_state()

    def left(self, turn: Permit) -> None:
        """The try came to no end, because no one waited for it any more: it says nothing."""
        if turn.epoch == self._epoch and turn.probe:
            self._probing = False

    def _next_state(self) -> None:
        self._epoch += 1
        self._probing = False
