"""What the server's event loop costs: a share of its time for itself, and seconds for each token that it passes on."""

from dataclasses import dataclass

from server.load.process import Running


@dataclass(frozen=True)
class Work:
    """What the event loop did for a while."""

    seconds: float
    tokens: int
    """That it passed on."""
    cpu_seconds: float


def share_and_token(one: Work, many: Work) -> tuple[float, float]:
    """The share of its time that the loop needs for itself, and seconds of a token: two equations, of few and of many.

    One stream alone cannot tell them apart: while it waits for its tokens, the loop's own timers are most of what it
    does. Neither is negative.
    """
    tokens = many.tokens * one.seconds - one.tokens * many.seconds
    token = (many.cpu_seconds * one.seconds - one.cpu_seconds * many.seconds) / tokens if tokens else 0.0
    share = (one.cpu_seconds - token * one.tokens) / one.seconds
    if token > 0 and share > 0:
        return share, token
    return 0.0, many.cpu_seconds / max(1, many.tokens)


def loop_seconds(server: Running) -> float:
    """CPU time of its loop until now; 0 where the system does not tell."""
    return server.loop_seconds or 0.0
