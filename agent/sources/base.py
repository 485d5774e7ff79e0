"""What a source is, and the one boundary where whatever goes wrong in one becomes `SourceError`."""

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agent.errors import SourceError
from agent.evidence import Passage
from agent.plan import Filter


class Source(Protocol):
    """Web, news, arXiv, a corpus, a knowledge graph: all answer a query with passages, best first."""

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Give at most `limit` passages.

        Raises:
            SourceError: the source failed; `kind` says how.
        """
        ...


@runtime_checkable
class Paid(Protocol):
    """A source whose searches cost something."""

    @property
    def credits_per_search(self) -> float: ...


def credits_of(source: Source) -> float:
    """What one search of a source costs; 0 for a source that says nothing about it."""
    return source.credits_per_search if isinstance(source, Paid) else 0.0


async def ask(
    source: Source, query: str, *, limit: int, seconds: float, filters: Sequence[Filter] = ()
) -> list[Passage]:
    """Ask one source, for at most `seconds`.

    Raises:
        SourceError: whatever went wrong in it.
    """
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            found = await source.search(query, limit=limit, filters=filters)
            return list(found[:limit])
    except SourceError:
        raise
    except TimeoutError as error:
        why = f"no answer in {seconds:g} s" if scope.expired() else f"it timed out: {error}"
        raise SourceError(why, kind="timeout") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise SourceError("the source gave up on itself") from error
    except Exception as error:  # third-party code raises anything
        raise SourceError(f"{type(error).__name__}: {error}") from error
