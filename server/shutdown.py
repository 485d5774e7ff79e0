"""How a server stops: it takes nothing new, lets runs go on, asks for answers, and ends them."""

import asyncio
from dataclasses import dataclass

from server.auth.admission import Admission
from server.http.stream import Runs
from server.telemetry.watch import Watch


@dataclass(frozen=True)
class Grace:
    """What runs on their way are given."""

    seconds: float = 10.0
    """To end by themselves …"""
    answer_seconds: float = 5.0
    """… and then to answer with what they found."""


class Shutdown:
    """The end of one server's runs. Until it is over the server still listens, so that probes hear that it stops."""

    def __init__(
        self,
        runs: Runs,
        *,
        admission: Admission | None = None,
        watch: Watch | None = None,
        grace: Grace | None = None,
    ) -> None:
        self._runs = runs
        self._admission = admission
        self._watch = watch or Watch()
        self._grace = grace or Grace()

    async def drain(self) -> None:
        """Wait until nothing is on its way any more, for as long as the grace says."""
        self._runs.closing = True
        if self._admission:
            self._admission.close()
        if await self._idle(self._grace.seconds):
            return
        self._watch.answer_now()
        if not await self._idle(self._grace.answer_seconds):
            self.end()

    def end(self) -> None:
        """End every run at once; to be called in its event loop."""
        self._runs.closing = True
        self._watch.stopping = True
        self._runs.end()

    async def _idle(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._runs.idle()
                await self._watch.idle()
        except TimeoutError:
            return False
        return True
