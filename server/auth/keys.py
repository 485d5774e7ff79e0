"""Keys of clients: made, known again and limited. What they used counts when a run ends.

A key is shown once and kept as its SHA-256. A `KeyStore` keeps keys and their usage: the database of `server.store`, or
`MemoryKeys`. Requests and concurrent runs are counted in this process, the rest in the store.
"""

import hashlib
import hmac
import secrets
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from http import HTTPStatus
from math import ceil
from time import monotonic, perf_counter
from typing import Final, Protocol

from pydantic import SecretStr

from agent.trace import Usage
from server.auth.ttl import TtlValue
from server.auth.usage import Spent, Used
from server.http.errors import ApiError


@dataclass(frozen=True)
class Caller:
    """One request as those see it who do not know the web."""

    request_id: str = ""
    key: str = ""
    """Id of its key, never the key itself; empty: it came without one, or with the server's own."""
    parent: str = ""
    """The `traceparent` that it came with."""
    began: float = field(default_factory=perf_counter)


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


def caller() -> Caller:
    """Who asks here; a caller without a name where there is no request, as in a command."""
    return CALLER.get() or Caller()


PREFIX: Final = "cairn"
MINUTE_SECONDS: Final = 60.0
_NO_DIGEST: Final = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
"""What a key is compared with that no client has."""


@dataclass(frozen=True)
class KeyLimits:
    """What one key may use; None: as much as it likes."""

    requests_per_minute: int | None = None
    concurrent_runs: int | None = None
    tokens_per_day: int | None = None
    """Prompt, what the environment wrote and what the policy sampled; a day ends at midnight UTC."""
    searches_per_day: int | None = None
    credits_per_day: float | None = None


@dataclass(frozen=True)
class ApiKey:
    """One client's key, without its secret."""

    id: str
    name: str
    digest: str
    """SHA-256 of the whole key, in hex."""
    created: datetime
    limits: KeyLimits = field(default_factory=KeyLimits)
    revoked: datetime | None = None


class KeyStore(Protocol):
    """Where keys and their usage are kept."""

    async def keys(self) -> Sequence[ApiKey]:
        """All of them, in the order in which they were made; also those that were revoked."""
        ...

    async def add_key(self, key: ApiKey) -> None: ...

    async def revoke_key(self, id: str, when: datetime) -> bool:
        """Whether there was such a key, not revoked yet."""
        ...

    async def used(self, id: str, day: date) -> Used:
        """What the key used on that day, by all servers."""
        ...

    async def add_usage(self, id: str, day: date, used: Used) -> None:
        """Add to it; two servers that add at the same time are both counted."""
        ...


class MemoryKeys:
    """Keys of one process, for tests and for a server without a store."""

    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}
        self._used: defaultdict[tuple[str, date], Used] = defaultdict(Used)

    async def keys(self) -> Sequence[ApiKey]:
        return list(self._keys.values())

    async def add_key(self, key: ApiKey) -> None:
        self._keys[key.id] = key

    async def revoke_key(self, id: str, when: datetime) -> bool:
        key = self._keys.get(id)
        if key is None or key.revoked:
            return False
        self._keys[id] = ApiKey(key.id, key.name, key.digest, key.created, key.limits, when)
        return True

    async def used(self, id: str, day: date) -> Used:
        return self._used[id, day]

    async def add_usage(self, id: str, day: date, used: Used) -> None:
        self._used[id, day] += used


def new_key(name: str, limits: KeyLimits | None = None) -> tuple[SecretStr, ApiKey]:
    """Make a key: what the client sends, which is kept nowhere, and what is kept."""
    id = secrets.token_hex(4)
    secret = f"{PREFIX}-{id}-{secrets.token_urlsafe(32)}"
    kept = ApiKey(id=id, name=name, digest=digest(secret), created=datetime.now(UTC), limits=limits or KeyLimits())
    return SecretStr(secret), kept


def digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Keys:
    """Who may ask: the server's own key, which has no limits, and those of the store."""

    def __init__(
        self, *, server_key: SecretStr | None = None, store: KeyStore | None = None, ttl_seconds: float = 2.0
    ) -> None:
        """Read keys from a store.

        Args:
            server_key: what the settings say; empty: none.
            store: where the others stand; without one there are none.
            ttl_seconds: how long a key that was just revoked may still be taken here.
        """
        secret = server_key.get_secret_value() if server_key else ""
        self._server = digest(secret) if secret else ""
        self._kept = TtlValue(_by_id(store), what="the keys of clients", seconds=ttl_seconds) if store else None
        self._requests: defaultdict[str, deque[float]] = defaultdict(deque)
        self.spent = Spent(store, ttl_seconds=ttl_seconds)

    async def admit(self, authorization: str) -> str:
        """Give the id of the key in this header; empty for the server's own key, and where no key is needed.

        Raises:
            ApiError: the key is missing or wrong (401), used too often (429), or keys cannot be read (503).
        """
        if self._kept and not await self._kept.refresh():  # as long as they were never read, no request passes
            raise _unreadable()
        if not self._server and not self._keys:
            return ""
        id = self._known(authorization)
        if id is None:
            raise ApiError(
                HTTPStatus.UNAUTHORIZED,
                "The key is missing or wrong; send your key as 'Authorization: Bearer KEY'.",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        if id:
            self._count(self._keys[id])
            if _has_daily(self._keys[id].limits) and not await self.spent.refresh(id):
                raise _unreadable()
        return id

    @property
    def _keys(self) -> Mapping[str, ApiKey]:
        return (self._kept.value if self._kept else None) or {}

    def limit(self, who: Caller, runs: int) -> None:
        """Refuse a run that is more than the key may have.

        Raises:
            ApiError: 429, with when to ask again.
        """
        key = self._keys.get(who.key)
        if key is None:
            return
        limits = key.limits
        if limits.concurrent_runs is not None and runs >= limits.concurrent_runs:
            raise _over(f"it has {runs} active runs, of at most {limits.concurrent_runs}", wait_seconds=1)
        _within_the_day(limits, self.spent.today(key.id), more=Used())

    def may_search(self, searches: int) -> None:
        """Refuse `searches` where they are more than the caller's key may have.

        Raises:
            ApiError: 429, with when to ask again.
        """
        if key := self._keys.get(caller().key):
            limits = replace(key.limits, tokens_per_day=None)
            _within_the_day(limits, self.spent.today(key.id), more=Used(searches=searches))

    def searched(self, searches: int, credits: float) -> None:
        """Count searches that belong to no run."""
        self.spent.add(caller().key, Usage(searches=searches, credits=credits))

    def answered(self, usage: Usage) -> None:
        """Count an answer that another model gave, after the run that it answers from."""
        self.spent.add(caller().key, usage)

    def _known(self, authorization: str) -> str | None:
        """Whose key it is. A wrong one takes as long as a right one: digests are compared, each in constant time."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        sent = digest(token)
        parts = token.split("-", 2)
        key = self._keys.get(parts[1]) if len(parts) == 3 and parts[0] == PREFIX else None
        is_key = hmac.compare_digest(sent, key.digest if key else _NO_DIGEST)
        is_server = hmac.compare_digest(sent, self._server or _NO_DIGEST)
        if scheme.lower() != "bearer":
            return None
        if is_server:
            return ""
        return key.id if key and is_key and not key.revoked else None

    def _count(self, key: ApiKey) -> None:
        most = key.limits.requests_per_minute
        if most is None:
            return
        now, recent = monotonic(), self._requests[key.id]
        while recent and recent[0] <= now - MINUTE_SECONDS:
            recent.popleft()
        if len(recent) >= most:
            wait = ceil(recent[0] + MINUTE_SECONDS - now) if recent else ceil(MINUTE_SECONDS)
            raise _over(f"it may send {most:,} requests a minute", wait_seconds=wait)
        recent.append(now)


def _by_id(store: KeyStore) -> Callable[[], Awaitable[Mapping[str, ApiKey]]]:
    async def read() -> Mapping[str, ApiKey]:
        return {key.id: key for key in await store.keys()}

    return read


def _unreadable() -> ApiError:
    return ApiError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The API keys cannot be read; check the server's store, then try again.",
        code="keys_unreadable",
        headers={"retry-after": "2"},
    )


def _has_daily(limits: KeyLimits) -> bool:
    return any(most is not None for most in (limits.tokens_per_day, limits.searches_per_day, limits.credits_per_day))


def _within_the_day(limits: KeyLimits, used: Used, *, more: Used) -> None:
    """Refuse a key that has used up one of them, or would with more than one.

    Raises:
        ApiError: 429, with when to ask again.
    """
    for name in (what.name for what in fields(used)):
        most, amount, wanted = getattr(limits, f"{name}_per_day"), getattr(used, name), getattr(more, name)
        if most is not None and amount + max(wanted - 1, 0) >= most:
            also = f", and this request needs {wanted:,} more" if wanted > 1 else ""
            why = f"it has used {amount:,} of its {most:,} {name} today{also}"
            raise _over(why, wait_seconds=_until_midnight())


def _until_midnight() -> int:
    now = datetime.now(UTC)
    return 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)


def _over(why: str, *, wait_seconds: int) -> ApiError:
    return ApiError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"This key has reached its limit: {why}; try again in {wait_seconds:,} s, or request a higher limit.",
        code="rate_limit_exceeded",
        headers={"retry-after": str(wait_seconds)},
    )
