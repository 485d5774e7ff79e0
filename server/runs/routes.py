"""The addresses of runs that outlive their clients: `/api/runs` and below. The web UI and slow clients use it."""

import logging
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import FastAPI, Header, Path, Query, Request, Response

from agent.outbound.numbers import amount
from agent.sanitize.text import whole
from agent.trace import Trace
from server.auth.admission import Slot
from server.auth.keys import caller
from server.chat.service import Service, open_turn
from server.http.encoding import dumped
from server.http.errors import ApiError, bad_request
from server.http.stream import Put
from server.runs.card import RunCard, RunDetail, RunPage, RunRequest
from server.runs.export import Format, export
from server.runs.follow_up import following_up
from server.runs.following import StreamPosition, follow
from server.runs.live import LiveRun
from server.runs.manager import Drive, RunManager
from server.runs.restore import read_trace, restored
from server.store import NewRun, RunRow, StoreError
from server.store.reading import LAST_SECOND, RunQuery
from server.store.records import Origin, RunCommand, State
from server.store.serial import storable

logger = logging.getLogger(__name__)

_LAST_WORDS: Final = b"retry: 2000\n\n"
_PAGE: Final = 30
_EVENTS: Final[dict[str, Any]] = {
    "description": "Server-sent events: `step`, `delta`, `snapshot`, `reset` and `end`; docs/runs.md describes each.",
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("id", "event", "data", "retry")},
                "description": "`data` is JSON.",
            }
        }
    },
}
_FILES: Final[dict[str, Any]] = {
    "description": "The run as a file; as JSON it is its trace.",
    "model": Trace,
    "content": {
        media: {"schema": {"type": "string"}} for media in ("text/markdown", "text/html", "application/x-bibtex")
    },
}

RunId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,128}$", description="The run's id.")]


def add_runs(app: FastAPI, service: Service, run_manager: RunManager) -> None:
    """Add every address of runs."""
    app.add_exception_handler(StoreError, _on_store_error)
    _add_lists(app, service, run_manager)
    _add_one(app, run_manager)
    _add_events(app, service, run_manager)
    _add_commands(app, run_manager)


async def begin_run(request: Request, run_manager: RunManager, new: NewRun, drive: Drive) -> LiveRun:
    """Begin a run that outlives its request, and takes the request's slot along.

    Raises:
        StoreError: it could not be written down; nothing was started.
    """
    slot: Slot | None = getattr(request.state, "slot", None)
    run = await run_manager.start(new, drive, then=slot.leave if slot else _nothing)
    if slot:
        slot.hand_over()
    return run


def _add_lists(app: FastAPI, service: Service, run_manager: RunManager) -> None:
    @app.post("/api/runs", status_code=HTTPStatus.CREATED)
    async def start_run(body: RunRequest, request: Request) -> RunCard:
        """Ask a question in a run that goes on when its client leaves; follow it under `/api/runs/{id}/events`."""
        turn = open_turn(await service.searching(body), body)
        if body.follows:
            began, before = await _ended(run_manager, body.follows)
            turn = following_up(turn, before, began=began, context=body.context)
        turn.trace.conversation = storable(body.conversation)
        new = NewRun(trace=turn.trace, model=turn.model, key_id=caller().key)
        return RunCard.of((await begin_run(request, run_manager, new, turn.run)).row())

    @app.get("/api/runs")
    async def list_runs(
        search: Annotated[str, Query(max_length=500, description="Words that begin words of question or answer.")] = "",
        conversation: Annotated[str | None, Query(max_length=200)] = None,
        state: State | None = None,
        origin: Origin | None = None,
        before: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = _PAGE,
    ) -> RunPage:
        """Runs, the latest first; those of /v1 are there when they have ended."""
        wanted = RunQuery(
            key_id=_key(),
            words=search,
            conversation=None if conversation is None else storable(conversation),
            state=state,
            origin=origin,
            before=_cursor(before) if before else None,
        )
        rows = await run_manager.store.reads.list(wanted, limit=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return RunPage(
            runs=[RunCard.of(row) for row in rows[:limit]], next=f"{last.created!r}_{last.id}" if last else None
        )


def _add_one(app: FastAPI, run_manager: RunManager) -> None:
    @app.get("/api/runs/{id}", response_model=None, responses={200: {"model": RunDetail}})
    async def get_run(id: RunId) -> Response:
        """A run with its trace."""
        row = await _found(run_manager, id)
        card = RunCard.of(row).model_dump_json()
        trace = await _trace(run_manager, row)
        return Response(f'{card[:-1]},"trace":{dumped(trace)}}}', media_type="application/json")

    @app.delete("/api/runs/{id}", status_code=HTTPStatus.NO_CONTENT)
    async def delete_run(id: RunId) -> None:
        """Remove a run that has ended, with all that is stored of it."""
        row = await _found(run_manager, id)
        if row.running or not await run_manager.store.writes.delete(id):
            message = "The run is still running; cancel it first with POST to its /cancel."
            raise ApiError(HTTPStatus.CONFLICT, message, code="run_goes_on")

    @app.get("/api/runs/{id}/export", response_model=None, responses={200: _FILES})
    async def export_run(id: RunId, format: Format = "json") -> Response:
        """The run as a file: its trace, a page to read, or its sources for a bibliography."""
        made = export(await _trace(run_manager, await _found(run_manager, id)), format)
        named = {"content-disposition": f'attachment; filename="{made.name}"'}
        return Response(whole(made.text), media_type=made.media_type, headers=named)


def _add_events(app: FastAPI, service: Service, run_manager: RunManager) -> None:
    @app.get(
        "/api/runs/{id}/events",
        response_model=None,
        responses={200: _EVENTS, 204: {"description": "The client has seen the end; it need not come again."}},
    )
    async def follow_run(
        id: RunId,
        last_event_id: Annotated[str, Header(description="Id of the last event that was seen.")] = "",
        after: Annotated[str, Query(description="The same, for clients that can set no header.")] = "",
    ) -> Response:
        """What happens in the run, from its beginning or from an event on, down to its end."""
        try:
            place = StreamPosition.of(last_event_id or after)
        except ValueError:
            message = "The last event id does not belong to this run; leave it out to start from the beginning."
            raise bad_request(message, param="Last-Event-ID") from None
        await _found(run_manager, id)
        if place.over:
            return Response(status_code=HTTPStatus.NO_CONTENT)

        async def produce(put: Put) -> None:
            try:
                ended = await follow(run_manager, id, place, put, stops=lambda: service.runs.closing)
            except StoreError as error:
                logger.warning("a reader of the run %s must come again: %s", id, error)
                ended = False
            if not ended:
                put(_LAST_WORDS)  # the client comes again, from where it was

        return service.streams(produce, last_words=_LAST_WORDS)


def _add_commands(app: FastAPI, run_manager: RunManager) -> None:
    async def apply(id: str, command: RunCommand) -> RunCard:
        row = await _found(run_manager, id)
        if row.running:
            await run_manager.command(id, command)
        return RunCard.of(await _found(run_manager, id))

    @app.post("/api/runs/{id}/cancel", status_code=HTTPStatus.ACCEPTED)
    async def cancel_run(id: RunId) -> RunCard:
        """End the run, whichever replica runs it. Of one that has ended, nothing changes."""
        return await apply(id, "cancel")

    @app.post("/api/runs/{id}/answer_now", status_code=HTTPStatus.ACCEPTED)
    async def answer_now(id: RunId) -> RunCard:
        """Search no more: answer with what there is."""
        return await apply(id, "answer_now")


async def _ended(run_manager: RunManager, id: str) -> tuple[float, Trace]:
    """When a run that can be followed up began, in seconds since 1970, and its trace.

    Raises:
        ApiError: there is none, or it goes on.
    """
    row = await _found(run_manager, id)
    if row.running:
        raise bad_request("The run is still running; follow it up when it has ended.", param="follows")
    return amount(row.created, most=LAST_SECOND) or 0.0, await _trace(run_manager, row)


async def _found(run_manager: RunManager, id: str) -> RunRow:
    """The run, if the caller may see it: with a key of a client, only those that were requested with it.

    Raises:
        ApiError: there is none.
    """
    row = await run_manager.get(id, key_id=_key())
    if row is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"There is no run {id!r}.", param="id", code="run_not_found")
    return row


async def _trace(run_manager: RunManager, row: RunRow) -> Trace:
    """The trace of a run, as far as it goes."""
    if live := run_manager.live(row.id):
        return live.trace
    reads = run_manager.store.reads
    stored = await reads.trace(row.id)
    if stored is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"The run {row.id!r} was removed.", param="id", code="run_not_found")
    if row.running and (look := await reads.look(row.id)) and look.row.running:
        return restored(stored, await reads.grown(row.id), look.open_block, ends=False)[0]
    return read_trace(stored)


def _key() -> str | None:
    """The client's key; none for the server's own, and where none is needed: these see every run."""
    return caller().key or None


def _cursor(before: str) -> tuple[float, str]:
    created, _, id = before.partition("_")
    try:
        return float(created), storable(id)
    except ValueError:
        raise bad_request("'before' must be the 'next' of an earlier page.", param="before") from None


def _nothing() -> None:
    """There is no slot to leave."""


async def _on_store_error(_: Request, error: Exception) -> Response:
    """The client gets a hint; what the database said, and of which host and user, stays in the log."""
    assert isinstance(error, StoreError)
    logger.warning("%s", error)
    why = f"{error.hint[:1].upper()}{error.hint[1:]}."
    if error.kind == "unreadable":
        return ApiError(HTTPStatus.CONFLICT, why, code="run_unreadable").response()
    status, headers = HTTPStatus.SERVICE_UNAVAILABLE, {"retry-after": "2"}
    return ApiError(status, f"{why} Try again in a moment.", code="store_failed", headers=headers).response()
