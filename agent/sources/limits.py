"""How many requests one backend takes, and how long its answers are kept: each backend's class states it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Defaults are safe for a person's own address and a free plan; the settings may say otherwise."""

    concurrency: int = 4
    """Requests at the same time, in this process."""
    requests: float = 5.0
    """At most N requests …"""
    per_seconds: float = 1.0
    """… in N seconds."""
    timeout_seconds: float = 8.0
    """One try."""
    tries: int = 3
    """The first one and what follows where it failed with rate, upstream or timeout."""
    wait_seconds: float = 0.5
    """Before the second try; it doubles, with jitter. A Retry-After counts instead, where it is longer."""
    longest_wait_seconds: float = 30.0
    """A Retry-After that is longer ends the tries: the next backend is tried."""
    breaker_failures: int = 5
    """After N failures in a row the backend is left alone …"""
    breaker_seconds: float = 30.0
    """… for so long; then one request tries it."""
    keep_seconds: float = 24 * 3600.0
    """An answer in the cache is fresh for so long."""
    stale_seconds: float = 7 * 24 * 3600.0
    """How much longer it may be given where a new request fails, marked as stale."""
