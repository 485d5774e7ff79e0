"""One request of `/v1/evidence`: from its arguments to a run, and from the run to frames or to one object."""

import logging
from dataclasses import dataclass
from http import HTTPStatus

from agent.errors import QuestionError
from agent.rstool import Downstream, EvidenceBundle
from agent.trace import Delta, Event
from server.chat.chunks import DONE, error_frame
from server.evidence.answering import Answering, check_model
from server.evidence.request import EvidenceReply, EvidenceRequest, EvidenceStep
from server.evidence.service import EvidenceService, Search, ignore_event
from server.http.encoding import dumped
from server.http.errors import ApiError, bad_request, internal_error, sentence
from server.http.stream import Put

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EvidenceTurn:
    """A search, and who answers from what it finds."""

    search: Search
    answering: Answering | None
    model: str


async def open_turn(evidence: EvidenceService, request: EvidenceRequest) -> EvidenceTurn:
    """Read a request into a search that can start.

    Raises:
        ApiError: it cannot be answered; nothing was started.
    """
    wanted = request.answer_with
    try:
        who = check_model(evidence.service.answering, wanted.model) if wanted else None
    except QuestionError as error:
        raise ApiError(HTTPStatus.NOT_FOUND, sentence(error), param="answer_with", code="model_not_found") from error
    try:
        return EvidenceTurn(await evidence.open(request), who, wanted.model if wanted else "")
    except QuestionError as error:
        raise bad_request(sentence(error), param=error.about) from error


async def whole_turn(turn: EvidenceTurn) -> EvidenceReply:
    """Run it to its end."""
    return await _reply(turn, await turn.search.run(ignore_event))


async def stream_turn(turn: EvidenceTurn, put: Put) -> None:
    """Run it and put a frame for each step as it happens, then the evidence and `[DONE]`, or an error."""
    run = turn.search.trace.id
    put(_frame(EvidenceStep(id=run)))

    def emit(event: Event) -> None:
        if not isinstance(event, Delta):
            put(_frame(EvidenceStep(id=run, step=event.model_dump(mode="json"))))

    try:
        reply = await _reply(turn, await turn.search.run(emit))
    except Exception:  # the boundary: the stream has begun, so the error goes into it
        logger.exception("the search %s broke", run)
        put(error_frame(internal_error().body))
    else:
        put(_frame(reply) + DONE)


async def _reply(turn: EvidenceTurn, bundle: EvidenceBundle) -> EvidenceReply:
    said: Downstream | None = None
    if turn.answering is not None:
        said = await turn.answering.answer(bundle, turn.model, count=turn.search.service.keys.answered)
    return EvidenceReply(id=bundle.trace_id, bundle=bundle, text=bundle.to_prompt(), downstream=said)


def _frame(part: EvidenceReply | EvidenceStep) -> bytes:
    return f"data: {dumped(part)}\n\n".encode()
