"""Responses that are found by their ids: each lies in the store of runs, beside the trace of its run."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from agent.trace import Trace
from server.auth.keys import caller
from server.chat.request import Message
from server.http.errors import ApiError, bad_request
from server.responses.schema import MessageItem, ResponseFailure, ResponseObject
from server.runs.manager import RunManager
from server.runs.restore import read_trace
from server.store import RunRow

PREFIX: Final = "resp_"
_ID: Final = re.compile(rf"{PREFIX}([0-9A-Za-z]{{1,128}})", re.ASCII)
_CANCEL_SECONDS: Final = 5.0
_INSTEAD: Final = "send the earlier turns as items of 'input' instead, which always works"


class ResponseStore:
    """The responses of one store, as the caller may see them: with a key of a client, those that it requested."""

    def __init__(self, run_manager: RunManager) -> None:
        self._run_manager = run_manager

    async def get(self, id: str) -> ResponseObject:
        """The response as it is now.

        Raises:
            ApiError: there is none.
        """
        return (await self._find(id))[1]

    async def delete(self, id: str) -> None:
        """Remove a response that has ended, and its run.

        Raises:
            ApiError: there is none, or it goes on.
        """
        row, _ = await self._settled(id)
        if row.running or not await self._run_manager.store.writes.delete(row.id):
            message = f"The response is still running; cancel it first with POST /v1/responses/{id}/cancel."
            raise ApiError(HTTPStatus.CONFLICT, message, code="response_goes_on")

    async def cancel(self, id: str) -> ResponseObject:
        """End a response in the background, whichever replica makes it; of one that has ended, nothing changes.

        Raises:
            ApiError: there is none, or a client waits for it.
        """
        row, response = await self._find(id)
        if not response.background:
            message = "Only a response with 'background' can be cancelled; for others, close the connection."
            raise bad_request(message, code="not_in_background")
        if row.running:
            await self._run_manager.command(row.id, "cancel")
            await self._run_manager.until_ended(row.id, key_id=_key(), seconds=_CANCEL_SECONDS)
        return await self.get(id)

    async def before(self, id: str) -> tuple[Sequence[Message], str, tuple[str, ...]]:
        """The turns up to the end of a response, as messages; the conversation that it belongs to; its libraries.

        Raises:
            ApiError: there is none, or it goes on.
        """
        name = "previous_response_id"
        try:
            row, response = await self._settled(id)
        except ApiError as error:
            raise bad_request(
                f"{error.detail[:-1]}; {_INSTEAD}.", param=name, code="previous_response_not_found"
            ) from error
        if row.running:
            raise bad_request(
                "The previous response is still running; wait for it.", param=name, code="response_goes_on"
            )
        stored = await self._run_manager.store.reads.trace(row.id)
        trace = read_trace(stored) if stored else None
        answer = "\n\n".join(
            part.text for item in response.output if isinstance(item, MessageItem) for part in item.content
        )
        history, question = _sent(trace) if trace else ((), row.question)
        turns = [*history, (question, answer)]
        said = [Message(role=role, content=text) for turn in turns for role, text in zip(_ROLES, turn, strict=True)]
        return said, row.conversation or id, trace.libraries if trace else ()

    async def _settled(self, id: str) -> tuple[RunRow, ResponseObject]:
        """The same, once the store has the end of a response that says it has ended."""
        row, response = await self._find(id)
        if row.running and response.status != "in_progress":
            row = await self._run_manager.until_ended(row.id, key_id=_key(), seconds=_CANCEL_SECONDS) or row
        return row, response

    async def _find(self, id: str) -> tuple[RunRow, ResponseObject]:
        named = _ID.fullmatch(id)
        row = await self._run_manager.get(named[1], key_id=_key()) if named else None
        live = self._run_manager.live(row.id) if row else None
        said = live.new.metadata() if live else await self._run_manager.store.reads.metadata(row.id) if row else ""
        response = _read(said)
        if row is None or response is None:
            why = f"There is no response {id[:160]!r} here: it was not stored, or it was removed."
            raise ApiError(HTTPStatus.NOT_FOUND, why, param="id", code="response_not_found")
        if row.state == "interrupted":
            response.status = "failed"
            response.error = response.error or ResponseFailure(
                message="The server that made it has stopped; try again."
            )
        return row, response


_ROLES: Final = ("user", "assistant")


def _sent(trace: Trace) -> tuple[tuple[tuple[str, str], ...], str]:
    """The turns before a question, and the question, as they were sent: it may have been read as another one."""
    changed = trace.follow_up
    return (changed.history or trace.history, changed.text) if changed else (trace.history, trace.question)


def _read(said: str) -> ResponseObject | None:
    """The response that was kept; None where something else was, or nothing."""
    return ResponseObject.model_validate_json(said) if said.startswith(f'{{"id":"{PREFIX}') else None


def _key() -> str | None:
    return caller().key or None
