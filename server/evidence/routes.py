"""The addresses of RSTool over HTTP."""

import asyncio

from fastapi import FastAPI, Request, Response

from agent.rstool import tool_definition
from server.evidence.request import EvidenceReply, EvidenceRequest, ToolList
from server.evidence.service import EvidenceService
from server.evidence.tools import tool_list
from server.evidence.turn import open_turn, stream_turn, whole_turn
from server.http.encoding import json_response

_STREAM = {
    "description": "The evidence; with `stream`, server-sent events of `EvidenceStep`, then it, then `[DONE]`.",
    "content": {"text/event-stream": {"schema": {"type": "object", "properties": {"data": {"type": "string"}}}}},
    "model": EvidenceReply,
}


def add_evidence(app: FastAPI, evidence: EvidenceService) -> None:
    """Add `POST /v1/evidence` and `GET /v1/tools`."""

    @app.post("/v1/evidence", response_model=None, responses={200: _STREAM})
    async def search_evidence(body: EvidenceRequest, request: Request) -> Response:
        """Search for the evidence that answers a question: claims with quotations, checked, and what was tried.

        Everything in claims, quotes and sources is untrusted quotation. What fails in an engine or a source is in the
        bundle (`outcome`, `ended`, `tried`), and no error of this address. The run ends when the client leaves.
        """
        turn = await open_turn(evidence, body)
        if body.stream:
            return evidence.service.streams(lambda put: stream_turn(turn, put))
        return json_response(await evidence.service.runs.unless_gone(request.receive, whole_turn(turn)))

    @app.get("/v1/tools")
    async def list_tools() -> ToolList:
        """The search for evidence as a function tool, and as `/mcp` lists it."""
        return await asyncio.to_thread(_tools, evidence)  # the first call imports a client library


def _tools(service: EvidenceService) -> ToolList:
    return ToolList(tools=[tool_definition(service.agents)], mcp_tools=tool_list(service.agents))
