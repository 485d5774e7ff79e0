"""What is promised of the server under load, and which of it a measurement did not find. It measures nothing."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lab.benchmarks.load.measure import LoadFigures
    from lab.benchmarks.load.streams import StreamLoad

ADDED_MS: Final = 10
"""Of a token, 99 in a hundred."""
REFUSED_MS: Final = 50
"""Of a refusal, 99 in a hundred."""
CANCEL_MS: Final = 1000
"""Until policy or search is let go, the longest."""
GROWTH: Final = 0.05
"""Of the server's memory, while the load goes on: more is not flat."""


def growth(load: "StreamLoad") -> float:
    """By which share the memory grew while the load went on, by its slope."""
    return load.rss_mb_slope * load.seconds / 60 / load.rss_mb if load.rss_mb else 0.0


def missed(figures: "LoadFigures") -> list[str]:
    """A sentence for each promise that was not kept."""
    loads = {"paced": figures.paced} | ({"embedded": figures.embedded} if figures.embedded else {})
    flood, leaving = figures.flood, figures.leaving
    kept = {
        f"added to a token, p99 {figures.paced.added_ms_p99:.2f} ms (bound {ADDED_MS})": (
            figures.paced.added_ms_p99 < ADDED_MS
        ),
        f"nothing was refused of {flood.requests} requests": flood.refused > 0,
        f"refused in {flood.refused_ms_p99:.1f} ms, p99 (bound {REFUSED_MS})": flood.refused_ms_p99 < REFUSED_MS,
        f"{flood.refused_without_retry_after} refusals without Retry-After": not flood.refused_without_retry_after,
        f"{flood.accepted_lost} of {flood.accepted} accepted answers lost": not flood.accepted_lost,
        f"{flood.others} requests were neither accepted nor refused": not flood.others,
        f"{leaving.disconnects - leaving.cancelled} disconnects were not heard of": (
            leaving.cancelled == leaving.disconnects
        ),
        f"let go {leaving.cancel_ms_max:.0f} ms after its client had left (bound {CANCEL_MS})": (
            leaving.cancel_ms_max < CANCEL_MS
        ),
    }
    for name, load in loads.items():
        kept[f"{name}: {load.lost} of {load.answers} streams lost"] = not load.lost
        kept[f"{name}: {load.interleaved} streams interleaved"] = not load.interleaved
        kept[f"{name}: memory grew by {growth(load):.1%} (bound {GROWTH:.0%})"] = growth(load) < GROWTH
    return [sentence for sentence, held in kept.items() if not held]
