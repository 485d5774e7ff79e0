"""A service that searches libraries: what a request names, in the place of the server's own sources or beside them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agent.sources.base import Source
from agent.sources.fuse import FusedSource
from server.auth.keys import caller
from server.chat.request import RunOptions
from server.chat.service import Service
from server.http.errors import bad_request
from server.libraries.manager import LibraryManager
from server.store.libraries import Page

ALL: Final = "all"
_MOST: Final = 100
"""Libraries that are searched at once."""


async def searching(service: Service, request: RunOptions) -> Service:
    """The service with the libraries that a request names.

    Every name that a plan may use then means the libraries, or, where the request names sources too, both.

    Raises:
        ApiError: a library or a file is not there, or there are none at all. StoreError: they could not be looked for.
    """
    if not request.libraries and not request.files:
        return service
    manager = service.libraries
    if manager is None:
        raise bad_request("There are no libraries here; leave 'libraries' and 'files' out.", param="libraries")
    ids = await _libraries(manager, request)
    files = tuple(dict.fromkeys(request.files or ()))
    library = await manager.source(ids, files)
    agent = service.agent
    sources: Mapping[str, Source] = dict.fromkeys(agent.sources, library)
    if request.sources:
        sources = {name: FusedSource({"library": library, name: own}) for name, own in agent.sources.items()}
    return replace(service, agent=replace(agent, sources=sources, libraries=tuple(ids), scope=None))


async def _libraries(manager: LibraryManager, request: RunOptions) -> list[str]:
    """The ids of the libraries that are meant.

    Raises:
        ApiError: there are none.
    """
    key = caller().key or None
    named = list(dict.fromkeys(request.libraries or (ALL,)))
    if ALL not in named:
        return [library.id for library in await manager.allowed(named, key_id=key)]
    mine = await manager.rows.libraries(Page(limit=_MOST), key_id=key)
    if not mine:
        raise bad_request("You have no library yet; make one with POST /v1/vector_stores.", param="libraries")
    return [library.id for library in mine]
