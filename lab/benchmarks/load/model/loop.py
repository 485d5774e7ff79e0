"""What the server's event loop costs: each time that it wakes up, and each token that it passes on."""

from dataclasses import dataclass

from lab.benchmarks.load.process import Running


@dataclass(frozen=True)
class LoopWork:
    """What the event loop did for a while."""

    wakes: int
    """Times that it had slept and went on."""
    tokens: int
    """That it passed on."""
    cpu_seconds: float


def wake_and_token(few: LoopWork, many: LoopWork) -> tuple[float, float]:
    """Seconds of a wake and of a token: two equations, of a load of few streams and of one of many.

    The loop wakes up for nearly each token of few streams, and for several tokens of many; where a wake is dear, as in
    a virtual machine, a token of many costs a fraction of one of few. Neither is negative.
    """
    between = few.wakes * many.tokens - many.wakes * few.tokens
    if between:
        wake = (few.cpu_seconds * many.tokens - many.cpu_seconds * few.tokens) / between
        token = (many.cpu_seconds * few.wakes - few.cpu_seconds * many.wakes) / between
        if wake >= 0 and token >= 0:
            return wake, token
        if token < 0:
            return many.cpu_seconds / max(1, many.wakes), 0.0
    return 0.0, many.cpu_seconds / max(1, many.tokens)


def loop_seconds(server: Running) -> float:
    """CPU time of its loop until now; 0 where the system does not say."""
    return server.loop_seconds or 0.0
