"""The five tools as MCP clients list them: plain data, made without the SDK."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from agent.loop.agent import Agent
from agent.rstool import EvidenceBundle, arguments_schema
from agent.rstool.tool import DESCRIPTION, NAME
from agent.sanitize.strict import Chars, Strict

State = Literal["running", "ended", "cancelled", "interrupted"]
SEARCH: Final = NAME
START: Final = f"{NAME}_start"
STATUS: Final = f"{NAME}_status"
RESULT: Final = f"{NAME}_result"
CANCEL: Final = f"{NAME}_cancel"
LONGEST_WAIT_SECONDS: Final = 25.0
"""Clients give up on a call after about a minute."""


class JobState(BaseModel):
    """How far a search is."""

    id: str = Field(description="To ask for it again; the run's id, under /api/runs too.")
    state: State = Field(
        description="Of one that ended there is a result. interrupted: it broke, or its server ended; the result holds "
        "what was found until then."
    )
    question: str
    seconds: float = Field(description="Since it was started, up to its end.")
    steps: int = Field(description="How many steps there were.")
    latest: tuple[str, ...] = Field(description="What the latest of them were.")


class JobArguments(Strict):
    """Which search is meant."""

    id: Annotated[str, Chars(200)] = Field(description=f"As {START} gave it.")


class WaitArguments(JobArguments):
    """Which search is meant, and how long to wait for it."""

    wait_seconds: float = Field(
        default=0.0,
        ge=0,
        le=LONGEST_WAIT_SECONDS,
        description="How long to wait for its end before this call answers; it answers at once when the search ends.",
    )


def tool_list(agents: Mapping[str, Agent]) -> list[dict[str, Any]]:
    """What `tools/list` gives: names, schemas of arguments and results, and hints."""
    inputs, bundle, state = arguments_schema(agents), EvidenceBundle.model_json_schema(), JobState.model_json_schema()
    one, wait = JobArguments.model_json_schema(), WaitArguments.model_json_schema()
    return [
        _tool(NAME, "Search for evidence", DESCRIPTION, inputs, bundle),
        _tool(
            START,
            "Start a search for evidence",
            f"The same search as {NAME} for clients that give up on slow tools: starts it and gives its id at once. "
            f"Then ask {STATUS} or {RESULT}.",
            inputs,
            state,
        ),
        _tool(STATUS, "How far a search is", "How far a started search is, and what it did last.", wait, state),
        _tool(
            RESULT,
            "The evidence of a started search",
            f"What a started search found, as {NAME} gives it. An error while it still runs.",
            wait,
            bundle,
        ),
        _tool(CANCEL, "Cancel a search", "Ends a started search; it has no result then.", one, state),
    ]


def _tool(
    name: str, title: str, description: str, arguments: Mapping[str, Any], result: Mapping[str, Any]
) -> dict[str, Any]:
    searches = name in (NAME, START)
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": arguments,
        "outputSchema": result,
        "annotations": {
            "readOnlyHint": name not in (START, CANCEL),
            "destructiveHint": name == CANCEL,
            "idempotentHint": not searches,
            "openWorldHint": searches,
        },
    }
