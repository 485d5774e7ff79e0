"""More runs than the server takes: what is refused is refused at once, and what was accepted ends whole."""

import asyncio
from dataclasses import dataclass
from typing import Final

from lab.benchmarks.load.client import Heard, ask, question, request
from lab.benchmarks.load.paced import text_of
from lab.benchmarks.load.process import Running
from lab.benchmarks.load.streams import CHAT, read_paced
from lab.benchmarks.percentiles import percentiles

REFUSED: Final = 429


@dataclass(frozen=True)
class Flood:
    """Of many requests at once."""

    requests: int
    accepted: int
    accepted_lost: int
    """Accepted ones whose answer was not whole."""
    refused: int
    refused_ms_p50: float
    refused_ms_p99: float
    refused_without_retry_after: int
    others: int
    """Neither accepted nor refused: no answer, or another status."""


async def flood(server: Running, *, runs: int, requests: int, tokens: int) -> Flood:
    """Fill the server, then send more.

    Args:
        server: with the paced policy.
        runs: that fill it; they begin first.
        requests: in all.
        tokens: stamped ones of an answer.
    """

    async def one(number: int, *, after: float) -> tuple[str, Heard | None]:
        await asyncio.sleep(after)
        marker = f"m{number}x0"
        sent = request(server.address, CHAT, question(text_of("whole", marker), stream=True))
        return marker, await ask(server.address, sent)

    first = [one(number, after=0.0) for number in range(runs)]
    more = [one(number, after=0.5 + 0.002 * (number - runs)) for number in range(runs, requests)]
    heard = await asyncio.gather(*first, *more)
    accepted = [(marker, one) for marker, one in heard if one and one.status == 200]
    refused = [one for _, one in heard if one and one.status == REFUSED]
    cuts = percentiles([1000 * one.seconds for one in refused])
    return Flood(
        requests=requests,
        accepted=len(accepted),
        accepted_lost=sum(not read_paced(one, marker, tokens).whole for marker, one in accepted),
        refused=len(refused),
        refused_ms_p50=cuts[49],
        refused_ms_p99=cuts[98],
        refused_without_retry_after=sum(not one.header("retry-after").isdigit() for one in refused),
        others=requests - len(accepted) - len(refused),
    )
