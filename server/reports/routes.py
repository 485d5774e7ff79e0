"""The addresses of reports: `POST /v1/reports`, and `/api/reports` with all below it."""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import FastAPI, Header, Query, Request, Response
from pydantic import ValidationError

from agent.errors import QuestionError, SetupError
from agent.loop.budgets import FACTORS, Budgets, Control
from agent.loop.plain import PlainChat
from agent.loop.recorder import Emit
from agent.report import Report, ReportBudget, ReportEvent, ReportPlan, Research
from agent.report.export import MEDIA, Format, export
from agent.report.outline import MOST_SECTIONS
from agent.report.research import NotDriven, Rollout
from agent.sanitize.text import whole
from agent.trace import Trace
from server.auth.admission import Slot
from server.auth.keys import caller
from server.chat.chunks import DONE, error_frame
from server.chat.service import CHAT_MODEL, Service, agent_of, level_of
from server.http.encoding import dumped, json_response
from server.http.errors import ApiError, bad_request, internal_error, sentence
from server.http.stream import Put
from server.reports.card import ReportCard, ReportDetail, ReportFrame, ReportPage, ReportReply
from server.reports.manager import END, ReportManager, follow
from server.reports.request import ReportBudgetOptions, ReportRequest, StreamedReportRequest
from server.runs.routes import RunId
from server.store import StoreError
from server.store.records import RunCommand
from server.store.reports import ReportRow
from server.store.serial import storable

MOST_SECONDS: Final = 1_800.0
_LONGEST_WAIT_SECONDS: Final = 60
"""A limit that lasts longer is no queue: a key has used up its day."""
_WAIT_SECONDS: Final = 0.5

logger = logging.getLogger(__name__)

_LAST_WORDS: Final = b"retry: 2000\n\n"
_PAGE: Final = 30
_STREAM: Final[dict[str, Any]] = {
    "description": "The report; with `stream`, server-sent events of `ReportFrame`, then it, then `[DONE]`.",
    "content": {"text/event-stream": {"schema": {"type": "object", "properties": {"data": {"type": "string"}}}}},
    "model": ReportReply,
}
_EVENTS: Final[dict[str, Any]] = {
    "description": "Server-sent events: `outline`, `section_started`, `section_ended`, `used`, `card` and `end`; "
    "docs/reports.md describes each.",
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
    "description": "The report as a file.",
    "model": Report,
    "content": {
        media.split(";")[0]: {"schema": {"type": "string", "format": "binary"}}
        for name, media in MEDIA.items()
        if name != "json"
    },
}


def add_reports(app: FastAPI, service: Service, manager: ReportManager | None) -> None:
    """Add the addresses; without a manager there are no reports that outlive their clients."""
    _add_waited_for(app, service)
    if manager:
        _add_lists(app, service, manager)
        _add_one(app, manager)
        _add_events(app, service, manager)
        _add_commands(app, manager)


def _add_waited_for(app: FastAPI, service: Service) -> None:
    @app.post("/v1/reports", response_model=None, responses={200: _STREAM})
    async def write_report(body: StreamedReportRequest, request: Request) -> Response:
        """Research a question section by section; only sentences that a check calls supported are in the report.

        It takes minutes; it ends when the client leaves. What fails in an engine or a source is in the report.
        """
        here = await service.searching(body)
        if body.stream:
            open_report(here, body)  # refused before the stream begins
            return service.streams(lambda put: _stream(here, body, put))
        research = open_report(here, body)
        report = await service.runs.unless_gone(request.receive, research.run())
        return json_response(ReportReply(id=report.id, report=report))


async def _stream(service: Service, body: ReportRequest, put: Put) -> None:
    """Put a frame for each event, then the report and `[DONE]`, or an error."""

    def emit(event: ReportEvent) -> None:
        put(f"data: {dumped(ReportFrame(id=research.id, event=event))}\n\n".encode())

    research = open_report(service, body, emit)
    try:
        report = await research.run()
    except Exception:  # the boundary: the stream has begun, so the error goes into it
        logger.exception("the report %s broke", research.id)
        put(error_frame(internal_error().body))
    else:
        put(f"data: {dumped(ReportReply(id=report.id, report=report))}\n\n".encode() + DONE)


def _add_lists(app: FastAPI, service: Service, manager: ReportManager) -> None:
    @app.post("/api/reports", status_code=HTTPStatus.CREATED)
    async def start_report(body: ReportRequest) -> ReportCard:
        """Begin a report that goes on when its client leaves; follow it under `/api/reports/{id}/events`."""
        here = await service.searching(body)
        return ReportCard.of(await manager.start(lambda emit: open_report(here, body, emit)))

    @app.get("/api/reports")
    async def list_reports(
        before: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = _PAGE,
    ) -> ReportPage:
        """Reports that outlive their clients, the latest first."""
        since = _cursor(before) if before else None
        rows = await manager.store.reports.list(key_id=_key(), before=since, limit=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return ReportPage(
            reports=[ReportCard.of(row) for row in rows[:limit]],
            next=f"{last.created!r}_{last.id}" if last else None,
        )


def _add_one(app: FastAPI, manager: ReportManager) -> None:
    @app.get("/api/reports/{id}")
    async def get_report(id: RunId) -> ReportDetail:
        """A report with its text; of one that still runs, as far as it goes."""
        row = await _found(manager, id)
        card = ReportCard.of(row)
        return ReportDetail(**card.model_dump(), report=await _report(manager, row, card))

    @app.delete("/api/reports/{id}", status_code=HTTPStatus.NO_CONTENT)
    async def delete_report(id: RunId) -> None:
        """Remove a report that has ended. The runs of its sections stay."""
        row = await _found(manager, id)
        if row.running or not await manager.store.reports.delete(id):
            message = "The report is still being researched; cancel it first with POST to its /cancel."
            raise ApiError(HTTPStatus.CONFLICT, message, code="report_goes_on")

    @app.get("/api/reports/{id}/export", response_model=None, responses={200: _FILES})
    async def export_report(id: RunId, format: Format = "md") -> Response:
        """The report as a file."""
        row = await _found(manager, id)
        report = await _report(manager, row, ReportCard.of(row))
        try:
            made = await asyncio.to_thread(export, report, format)
        except SetupError as error:
            raise ApiError(HTTPStatus.NOT_IMPLEMENTED, sentence(error), param="format", code="no_writer") from error
        named = {"content-disposition": f'attachment; filename="{made.name}"'}
        return Response(made.data, media_type=made.media_type, headers=named)


def _add_events(app: FastAPI, service: Service, manager: ReportManager) -> None:
    @app.get(
        "/api/reports/{id}/events",
        response_model=None,
        responses={200: _EVENTS, 204: {"description": "The client has seen the end; it need not come again."}},
    )
    async def follow_report(
        id: RunId,
        last_event_id: Annotated[str, Header(description="Id of the last event that was seen.")] = "",
        after: Annotated[str, Query(description="The same, for clients that can set no header.")] = "",
    ) -> Response:
        """What happens on the way to the report, from its beginning or from an event on, down to its end."""
        seen = last_event_id or after
        if seen and seen != END and not (seen.isascii() and seen.isdigit() and len(seen) < 10):
            message = "The last event id does not belong to this report; leave it out to start from the beginning."
            raise bad_request(message, param="Last-Event-ID")
        await _found(manager, id)
        if seen == END:
            return Response(status_code=HTTPStatus.NO_CONTENT)
        key_id = _key()

        async def produce(put: Put) -> None:
            try:
                place = int(seen or 0)
                ended = await follow(manager, id, place, put, key_id=key_id, stops=lambda: service.runs.closing)
            except StoreError as error:
                logger.warning("a reader of the report %s must come again: %s", id, error)
                ended = False
            if not ended:
                put(_LAST_WORDS)

        return service.streams(produce, last_words=_LAST_WORDS)


def _add_commands(app: FastAPI, manager: ReportManager) -> None:
    async def apply(id: str, command: RunCommand) -> ReportCard:
        row = await _found(manager, id)
        if row.running or manager.live(id):
            await manager.command(id, command)
        return ReportCard.of(await _found(manager, id))

    @app.post("/api/reports/{id}/cancel", status_code=HTTPStatus.ACCEPTED)
    async def cancel_report(id: RunId) -> ReportCard:
        """End the report, whichever replica researches it. Of one that has ended, nothing changes."""
        return await apply(id, "cancel")

    @app.post("/api/reports/{id}/answer_now", status_code=HTTPStatus.ACCEPTED)
    async def answer_now(id: RunId) -> ReportCard:
        """Search no more: write the report from what there is."""
        return await apply(id, "answer_now")


async def _found(manager: ReportManager, id: str) -> ReportRow:
    """The report, if the caller may see it.

    Raises:
        ApiError: there is none.
    """
    row = await manager.store.reports.get(id, key_id=_key())
    if row is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"There is no report {id!r}.", param="id", code="report_not_found")
    return row


async def _report(manager: ReportManager, row: ReportRow, card: ReportCard) -> Report:
    """Its text, as far as it goes.

    Raises:
        ApiError: another version of Cairn wrote it.
    """
    if row.running and (live := await manager.researched(row.id)):
        return live
    try:
        stored = Report.model_validate_json(await manager.store.reports.report(row.id))
    except ValidationError as error:
        message = "The report was written by another version of Cairn, which this one cannot read."
        raise ApiError(HTTPStatus.CONFLICT, message, code="report_unreadable") from error
    return stored if row.running else stored.ended(card.state)


def _key() -> str | None:
    """The client's key; none for the server's own, and where none is needed: these see every report."""
    return caller().key or None


def _cursor(before: str) -> tuple[float, str]:
    created, _, id = before.partition("_")
    try:
        return float(created), storable(id)
    except ValueError:
        raise bad_request("'before' must be the 'next' of an earlier page.", param="before") from None


def open_report(
    service: Service, request: ReportRequest, emit: Callable[[ReportEvent], None] = lambda event: None
) -> Research:
    """Read a request into a report that can start.

    Each of its runs takes a slot and counts for its key, as any run does.

    Raises:
        ApiError: it cannot be researched, or there is no room for it; nothing was started.
    """
    service.require(request.model)
    if request.model == CHAT_MODEL:
        raise bad_request(f"The model {CHAT_MODEL!r} does not search; leave 'model' out.", param="model")
    question = whole(request.question)
    if len(question) > service.question_chars:
        said = f"The question has {len(question):,} characters; at most {service.question_chars:,} are allowed."
        raise bad_request(said, param="question", code="question_too_long")
    agent = agent_of(service, request)
    headings = tuple(whole(heading) for heading in request.sections or ())
    budget = budget_of(request.budget or ReportBudgetOptions(), agent.budgets, factor=FACTORS[level_of(request)])
    try:
        plan = ReportPlan(question, headings=headings, sections=request.most_sections, budget=budget)
    except QuestionError as error:
        raise bad_request(sentence(error), param=error.about) from error
    service.admission.check(service.keys.limit)
    service.keys.may_search(1)

    async def drive(rollout: Rollout, trace: Trace, emit: Emit, control: Control) -> None:
        with await _slot(service, research.seconds_left):
            keep = _keep_nothing if isinstance(rollout, PlainChat) else None
            await service.run(research.in_time(rollout), trace, emit, control, keep=keep)

    research = Research(agent, plan, emit=emit, drive=drive, searched=service.keys.searched)
    return research


def budget_of(wanted: ReportBudgetOptions, own: Budgets, *, factor: float) -> ReportBudget:
    """`factor` of the usual budget, or what the request says, and never more than so many runs may use."""
    usual = ReportBudget()
    return ReportBudget(
        seconds=min(wanted.seconds or usual.seconds * factor, MOST_SECONDS),
        searches=min(wanted.searches or int(usual.searches * factor), max(1, own.searches) * MOST_SECTIONS),
        passages=min(wanted.passages or int(usual.passages * factor), max(1, own.passages) * MOST_SECTIONS),
        tokens=min(wanted.tokens or int(usual.tokens * factor), own.policy_tokens * (MOST_SECTIONS + 1)),
        credits=own.credits if wanted.credits is None else min(wanted.credits, own.credits),
    )


async def _slot(service: Service, seconds: float) -> Slot:
    """Wait for a slot as long as the report has time: its sections queue behind each other, and behind other runs.

    Raises:
        NotDriven: none came free, or the key may use no more today.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await service.enter()
                except ApiError as error:
                    wait = int((error.headers or {}).get("retry-after", "0"))
                    said = error.body["error"]["message"]
                    if service.admission.closed or wait > _LONGEST_WAIT_SECONDS:
                        raise NotDriven(f"it found no slot: {said[:1].lower()}{said[1:].rstrip('.')}") from error
                await asyncio.sleep(_WAIT_SECONDS)
    except TimeoutError as error:
        raise NotDriven("it found no slot before the time ended") from error


def _keep_nothing(trace: Trace) -> None:
    """The outline and the words of a section are in the report."""
