"""One request of `/v1/responses` on its way: its run, the events that it becomes, and the response that is kept."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.trace import Event as RunEvent
from agent.trace import Trace
from server.auth.keys import caller
from server.chat.service import ConversationTurn, failure_of
from server.http.errors import ApiError, internal_error
from server.http.stream import Put
from server.responses.output import Event, Output, frame
from server.runs.manager import RunManager
from server.store import NewRun

logger = logging.getLogger(__name__)

STORED_SECONDS: Final = 1.0
"""How long the end waits for the store, so that its id can be retrieved at once; a failing store delays no answer."""


def _ignore(event: Event | RunEvent) -> None:
    """The events are not shown."""


@dataclass(frozen=True)
class ResponseTurn:
    """A run and the response that it becomes."""

    turn: ConversationTurn
    output: Output
    run_manager: RunManager | None
    """Keeps the response when it has ended; None: its id means nothing later."""
    keep: Callable[[Trace], None]
    """Takes the trace where there is no run_manager."""

    @property
    def new_run(self) -> NewRun:
        """What is kept of it: the trace, and the response as far as it is at that moment."""
        return NewRun(self.turn.trace, self.turn.model, key_id=caller().key, metadata=self.output.as_json)

    async def stream(self, put: Put) -> None:
        """Run it and put every event as it comes."""
        for event in self.output.begin():
            put(frame(event))
        await self._to_the_end(lambda event: put(frame(event)))

    async def whole(self) -> None:
        """Run it to its end.

        Raises:
            ApiError: no answer can be made.
        """
        if failure := await self._to_the_end(_ignore):
            raise failure

    async def drive(self, emit: Emit, control: Control) -> None:
        """Run it for a run manager, which keeps it by itself."""
        await self._ended(_ignore, emit, control)

    async def _to_the_end(self, send: Callable[[Event], None]) -> ApiError | None:
        """Run it, and keep it before its end is sent. Gives why no answer can be made."""
        try:
            failure, closing = await self._ended(send)
        except asyncio.CancelledError:
            if self.run_manager:
                self.run_manager.put(self.new_run)
            else:
                self.keep(self.turn.trace)
            raise
        if self.run_manager:
            await self.run_manager.put_away(self.new_run, seconds=STORED_SECONDS)
        else:
            self.keep(self.turn.trace)
        for event in closing:
            send(event)
        return failure

    async def _ended(
        self, send: Callable[[Event], None], emit: Emit = _ignore, control: Control | None = None
    ) -> tuple[ApiError | None, list[Event]]:
        """Run it and close the response. Gives why no answer can be made, and the events that are still to be sent."""
        turn, output = self.turn, self.output

        def see(event: RunEvent) -> None:
            for part in turn.reply.feed(event):
                for made in output.feed(part):
                    send(made)
            emit(event)

        try:
            await turn.run(see, control)
            failure = failure_of(turn.trace)
        except asyncio.CancelledError:
            output.cancel(turn.reply)
            raise
        except Exception:  # the boundary: the response has begun, so the error goes into it
            logger.exception("the rollout %s failed", turn.trace.id)
            failure = internal_error()
        return failure, output.fail(failure, turn.reply) if failure else output.end(turn.reply, turn.trace)
