"""The addresses of `/v1/responses`. A run ends when its client leaves, unless it was requested in the background."""

import time

from fastapi import FastAPI, Request, Response

from server.chat.service import ConversationTurn, Service, make_turn
from server.http.encoding import json_response
from server.http.errors import bad_request
from server.http.schema import streamed
from server.responses.output import Output
from server.responses.request import ResponseRequest, read_request
from server.responses.schema import DeletedResponse, ReasoningSettings, ResponseObject
from server.responses.store import PREFIX, ResponseStore
from server.responses.turn import ResponseTurn
from server.runs.routes import begin_run

_FRAMES = "Events with the names and numbers of OpenAI's Responses API."


def add_responses(app: FastAPI, service: Service) -> None:
    """Add `POST /v1/responses`, and where runs are kept those of one response."""
    store = ResponseStore(service.run_manager) if service.run_manager else None
    if store:
        _add_kept(app, store)

    @app.post("/v1/responses", response_model=None, responses=streamed(ResponseObject, _FRAMES))
    async def responses(body: ResponseRequest, request: Request) -> Response:
        """Answer a question with reasoning, searches and cited text as items, streamed or not.

        It is kept unless `store` is false; a follow-up names it as `previous_response_id`, or sends its turns along.
        """
        made = await _open(service, store, body)
        if body.background and made.run_manager:
            await begin_run(request, made.run_manager, made.new_run, made.drive)
        elif body.stream:
            return service.streams(made.stream, last_words=made.output.last_words)
        else:
            await service.runs.unless_gone(request.receive, made.whole())
        return json_response(made.output.response)


def _add_kept(app: FastAPI, store: ResponseStore) -> None:
    @app.get("/v1/responses/{id}")
    async def get_response(id: str, *, stream: bool = False) -> ResponseObject:
        """A response that was kept, or one in the background as far as it is. It comes whole."""
        if stream:
            why = (
                "A stored response is not streamed; leave 'stream' out, or follow its run under /api/runs/{id}/events."
            )
            raise bad_request(why, param="stream")
        return await store.get(id)

    @app.delete("/v1/responses/{id}")
    async def delete_response(id: str) -> DeletedResponse:
        """Remove a response and its run."""
        await store.delete(id)
        return DeletedResponse(id=id)

    @app.post("/v1/responses/{id}/cancel")
    async def cancel_response(id: str) -> ResponseObject:
        """End a response that runs in the background."""
        return await store.cancel(id)


async def _open(service: Service, store: ResponseStore | None, body: ResponseRequest) -> ResponseTurn:
    """Read a request into a response that can begin.

    Raises:
        ApiError: it cannot be answered; nothing was started.
    """
    service.require(body.model)
    stores = store is not None and body.store is not False
    _check_background(body, stores=stores)
    before, conversation, libraries = (), "", ()
    if body.previous_response_id:
        if store is None:
            why = "This server keeps no responses; send the earlier turns as items of 'input'."
            raise bad_request(why, param="previous_response_id", code="previous_response_not_found")
        before, conversation, libraries = await store.before(body.previous_response_id)
    question = read_request(body, before=before, most_chars=service.question_chars)
    turn = make_turn(await service.searching(body), body, question, keep=_keep_nothing)
    turn.trace.conversation = conversation
    turn.trace.libraries = tuple(dict.fromkeys((*turn.trace.libraries, *libraries)))  # its history quotes them
    output = Output(_blank(turn, body, stores=stores))
    keep = _keep_nothing if body.store is False else service.keep
    return ResponseTurn(turn, output, service.run_manager if stores else None, keep)


def _check_background(body: ResponseRequest, *, stores: bool) -> None:
    if body.background and body.stream:
        why = "A response in the background is not streamed; leave 'stream' out, or follow a run under /api/runs."
        raise bad_request(why, param="stream")
    if body.background and not stores:
        why = "A response in the background must be stored; leave 'background' or 'store' out."
        raise bad_request(why, param="background")


def _keep_nothing(_: object) -> None:
    """The response keeps its run by itself, or nothing is kept."""


def _blank(turn: ConversationTurn, body: ResponseRequest, *, stores: bool) -> ResponseObject:
    return ResponseObject(
        id=f"{PREFIX}{turn.trace.id}",
        created_at=int(time.time()),
        background=bool(body.background),
        model=turn.model,
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        previous_response_id=body.previous_response_id,
        reasoning=ReasoningSettings(**body.reasoning.model_dump()) if body.reasoning else ReasoningSettings(),
        store=stores,
        temperature=body.temperature,
        top_p=body.top_p,
        user=body.user,
        metadata=body.metadata or {},
    )
