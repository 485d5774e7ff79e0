"""All of `cairn bench load`: paced streams, clients that leave, a flood, and the embedded policy; one server each."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent.settings import CairnSettings
from lab.benchmarks.load import servers
from lab.benchmarks.load.bounds import missed
from lab.benchmarks.load.flood import Flood, flood
from lab.benchmarks.load.leaving import Leaving, leave
from lab.benchmarks.load.paced import ANSWER_TOKENS, THOUGHT_TOKENS
from lab.benchmarks.load.process import Running, running
from lab.benchmarks.load.streams import StreamLoad, load_embedded, load_paced

Tokens = tuple[int, int]
TOKENS: Final[Tokens] = (THOUGHT_TOKENS, ANSWER_TOKENS)
FLOOD_RUNS: Final = 20
FLOOD_QUEUE: Final = 10
FLOOD_REQUESTS: Final = 200
FLOOD_TOKENS: Final[Tokens] = (40, 20)

Show = Callable[[str, float, float], object]
"""Gets what goes on, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class LoadFigures:
    paced: StreamLoad
    leaving: Leaving
    flood: Flood
    embedded: StreamLoad | None

    @property
    def holds(self) -> bool:
        """Nothing was lost, nothing interleaved, everybody who left was heard of, and what was accepted ended whole."""
        loads = [self.paced, *([self.embedded] if self.embedded else [])]
        return (
            not any(load.lost or load.interleaved for load in loads)
            and self.leaving.cancelled == self.leaving.disconnects
            and not self.flood.accepted_lost + self.flood.others
        )

    @property
    def missed(self) -> list[str]:
        """The promises that were not kept, times and memory included."""
        return missed(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain names: those of the paced load as they are, those of the embedded policy behind `embedded_`."""
        embedded = {f"embedded_{name}": value for name, value in asdict(self.embedded).items()} if self.embedded else {}
        return (
            asdict(self.paced)
            | asdict(self.leaving)
            | asdict(self.flood)
            | embedded
            | {"holds": self.holds, "missed": self.missed}
        )


def measure(
    settings: CairnSettings,
    *,
    streams: int,
    seconds: float,
    disconnects: int = 100,
    with_embedded: bool = True,
    tokens: Tokens = TOKENS,
    show: Show = lambda what, done, total: None,
) -> LoadFigures:
    """Start a server for each part and measure it.

    Args:
        settings: of the embedded policy and of the server; its port should be 0.
        streams: open at the same time.
        seconds: of each load.
        disconnects: clients that leave.
        with_embedded: also load the embedded policy.
        tokens: stamped ones of a paced thought and of its answer.
        show: gets the progress.

    Raises:
        SetupError: a server could not be started.
    """
    roomy = {"max_runs": streams + disconnects, "max_queue": streams}
    with server_of(settings, roomy, tokens) as server:
        progress = partial(show_seconds, show, "paced streams", seconds)
        paced = asyncio.run(load_paced(server, streams=streams, seconds=seconds, tokens=sum(tokens), progress=progress))
        show("clients that leave", 0, 1)
        left = asyncio.run(leave(server, disconnects=disconnects))
    with server_of(settings, {"max_runs": FLOOD_RUNS, "max_queue": FLOOD_QUEUE}, FLOOD_TOKENS) as server:
        show("a flood", 0, 1)
        flooded = asyncio.run(flood(server, runs=FLOOD_RUNS, requests=FLOOD_REQUESTS, tokens=sum(FLOOD_TOKENS)))
    embedded = None
    if with_embedded:
        progress = partial(show_seconds, show, "the embedded policy", seconds)
        with server_of(settings, roomy) as server:
            questions = questions_of(settings)
            embedded = asyncio.run(
                load_embedded(server, questions, streams=streams, seconds=seconds, progress=progress)
            )
    return LoadFigures(paced, left, flooded, embedded)


def questions_of(settings: CairnSettings) -> list[str]:
    """The questions of the embedded policy: the little world's own."""
    from agent.world import load_world

    return [question.question for question in load_world(settings.world).questions]


@contextmanager
def server_of(
    settings: CairnSettings, bounds: dict[str, Any], tokens: Tokens | None = None, *, calls: Path | None = None
) -> Generator[Running]:
    """The real server with a store of its own.

    Args:
        settings: of the embedded policy and of the server.
        bounds: settings that take their place.
        tokens: stamped ones of the paced policy, which then writes.
        calls: where the embedded engine's calls are written down.

    Raises:
        SetupError: it could not be started.
    """
    with TemporaryDirectory(prefix="cairn-bench-") as folder:
        dumped = settings.model_dump() | bounds | {"store": str(Path(folder) / "runs.db")}
        make = partial(servers.paced, dumped, tokens) if tokens else partial(servers.embedded, dumped, calls)
        with running(make) as server:
            yield server


def show_seconds(show: Show, what: str, total: float, done: float) -> None:
    """Show how far something is; what goes beyond `total` is not shown."""
    show(what, min(done, total), total)
