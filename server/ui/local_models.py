"""Model servers of this machine, offered where no model is connected yet. Nothing is connected by itself."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.policies import local_servers
from agent.policies.local_servers import LocalServer, find_local_servers
from agent.settings import CairnSettings

FRESH_SECONDS: Final = 10.0
"""A page that is loaded again and again knocks at the ports this often at most."""


def has_no_model(settings: CairnSettings) -> bool:
    """Whether nothing is named that writes, so that the shipped checkpoint does."""
    named = settings.checkpoint or settings.model or settings.base_url
    return settings.policy == "embedded" and not named


async def find_usable(settings: CairnSettings) -> list[LocalServer]:
    """The servers of this machine that have a model, where none is named; Cairn's own port is left alone."""
    if not has_no_model(settings):
        return []
    ports = {port: name for port, name in local_servers.PORTS.items() if port != settings.port}
    return [server for server in await find_local_servers(ports=ports) if server.models]


@dataclass
class LocalServerFinder:
    """Looks for servers when the page is loaded, so that one started later is offered, too."""

    settings: CairnSettings
    ttl_seconds: float = FRESH_SECONDS
    _found: Sequence[LocalServer] = ()
    _until: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> Sequence[LocalServer]:
        async with self._lock:
            if time.monotonic() >= self._until:
                self._found = await find_usable(self.settings)
                self._until = time.monotonic() + self.ttl_seconds
            return self._found
