"""What this server's answers hold, for `/openapi.json` and for its readers. It describes, and makes nothing."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.trace import Check, StopReason, Timings


class CitedSpan(BaseModel):
    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(BaseModel):
    """A passage that the answer cites: its first mark in the content, or else the whole of it."""

    type: Literal["url_citation"]
    url_citation: CitedSpan


class AnswerMessage(BaseModel):
    role: Literal["assistant"]
    content: str
    reasoning_content: str
    reasoning: str
    annotations: list[Annotation]


class CompletionChoice(BaseModel):
    index: int
    message: AnswerMessage
    logprobs: None
    finish_reason: Literal["stop", "length"]


class TokenDetails(BaseModel):
    reasoning_tokens: int


class CompletionUsage(BaseModel):
    """What the environment wrote into the context counts as prompt."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: TokenDetails
    num_search_queries: int


class ListedResult(BaseModel):
    title: str
    url: str
    date: str | None
    snippet: str
    source: str
    id: str
    cited: bool


class QuotedPlace(BaseModel):
    cite: int = Field(description="The mark `[n]` of the passage that is quoted.")
    start: int
    end: int
    text: str


class CheckedClaim(BaseModel):
    text: str
    cites: list[int]
    derived: bool
    check: Check
    quotes: list[QuotedPlace]


class MarkedClaims(BaseModel):
    cite: int
    claims: list[int]
    found: list[int]


class Summary(BaseModel):
    """Evidence, its checks and timings: the `cairn` object of the end."""

    v: Literal[1]
    kind: Literal["done"]
    trace: str
    evidence: list[CheckedClaim]
    citations: list[MarkedClaims]
    timings: Timings
    stopped: StopReason | None


class Completion(BaseModel):
    """A whole answer. A stream's chunks hold the same, piece by piece."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice] = Field(min_length=1, max_length=1)
    usage: CompletionUsage
    citations: list[str] = Field(description="Addresses; `[n]` in the content is the n-th.")
    search_results: list[ListedResult]
    cairn: Summary


class ListedModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["cairn"] = "cairn"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ListedModel]


class RetrievedDocument(BaseModel):
    id: str
    contents: str = Field(description="The title in quotes, a line break, and the text.")
    url: str | None = None
    date: str | None = None


class ScoredDocument(BaseModel):
    document: RetrievedDocument
    score: float


class FailedQuery(BaseModel):
    query: int = Field(description="Its place in the request.")
    kind: str
    message: str


class Retrieved(BaseModel):
    """Documents for each query, in the queries' order."""

    result: list[list[RetrievedDocument] | list[ScoredDocument]]
    errors: list[FailedQuery] | None = Field(default=None, description="Only of a request with `partial`.")


class Version(BaseModel):
    """What runs here."""

    name: Literal["cairn-search"] = "cairn-search"
    version: str
    policy: str | None = None
    protocol: str | None = None
    sources: list[str]
    default_source: str | None = None
    notices: list[str] | None = None


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Whether requests should be sent here, and if not, why."""

    status: Literal["ready", "not ready", "stopping"]
    source: str
    engine: str | None = None
    kind: str | None = None
    why: str | None = None
    notices: list[str] | None = None


class ErrorObject(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str
    type: str
    param: str | None
    code: str
    kind: str | None = Field(default=None, description="Of a search that failed.")


class ErrorBody(BaseModel):
    """What went wrong, as OpenAI's clients read it; each message gives a hint."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorObject


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request cannot be answered; the message gives a hint."},
    "5XX": {"model": ErrorBody, "description": "The engine, a source or the server failed, or it stops."},
}
"""For every address; said once, it also keeps the framework from describing errors that are never sent."""


def streamed(model: type[BaseModel], frames: str) -> dict[int | str, dict[str, Any]]:
    """The success of an address that answers whole or streamed."""
    event = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"], "description": frames}
    stream = {"text/event-stream": {"schema": event}}
    return {200: {"model": model, "description": "The answer; with `stream`, server-sent events.", "content": stream}}
