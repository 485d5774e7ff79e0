"""The address `/v1/responses`: streamed and not. A run ends when its client leaves."""

import logging
import time

from fastapi import FastAPI, Request, Response

from agent.trace import Event
from server.chat import Service
from server.encoding import json_response
from server.errors import internal_error
from server.responses.asked import ResponseRequest, read_request
from server.responses.output import Output, frame
from server.responses.schema import Reasoning, ResponseObject
from server.schema import streamed
from server.stream import Put
from server.turn import Turn, failure_of, make_turn

logger = logging.getLogger(__name__)


def add_responses(app: FastAPI, service: Service) -> None:
    """Add `POST /v1/responses`."""
    frames = "Events with the names and numbers of OpenAI's Responses API."

    @app.post("/v1/responses", response_model=None, responses=streamed(ResponseObject, frames))
    async def responses(body: ResponseRequest, request: Request) -> Response:
        """Answer a question with reasoning, searches and cited text as items, streamed or not.

        Nothing is stored: a follow-up sends its earlier turns along.
        """
        turn = make_turn(service, body, read_request(body, most_chars=service.question_chars))
        output = Output(_blank(turn, body))
        if body.stream:
            return service.streams(lambda put: _stream(turn, output, put), last_words=output.last_words)
        await service.runs.unless_gone(request.receive, _whole(turn, output))
        return json_response(output.response)


def _blank(turn: Turn, body: ResponseRequest) -> ResponseObject:
    return ResponseObject(
        id=f"resp_{turn.trace.id}",
        created_at=int(time.time()),
        model=turn.model,
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        reasoning=Reasoning(**body.reasoning.model_dump()) if body.reasoning else Reasoning(),
        temperature=body.temperature,
        top_p=body.top_p,
        user=body.user,
        metadata=body.metadata or {},
    )


async def _stream(turn: Turn, output: Output, put: Put) -> None:
    """Run it and put every event as it comes."""
    for event in output.begin():
        put(frame(event))

    def emit(event: Event) -> None:
        for part in turn.reply.feed(event):
            for made in output.feed(part):
                put(frame(made))

    try:
        await turn.run(turn.trace, emit)
        failure = failure_of(turn.trace)
    except Exception:  # the boundary: the answer has begun, so whatever broke is told in the stream
        logger.exception("the rollout %s broke", turn.trace.id)
        failure = internal_error()
    for event in output.fail(failure, turn.reply) if failure else output.end(turn.reply, turn.trace):
        put(frame(event))


async def _whole(turn: Turn, output: Output) -> None:
    """Run it to its end.

    Raises:
        ApiError: the engine failed.
    """

    def emit(event: Event) -> None:
        for part in turn.reply.feed(event):
            output.feed(part)

    await turn.run(turn.trace, emit)
    if failure := failure_of(turn.trace):
        raise failure
    output.end(turn.reply, turn.trace)
