"""What `/v1/responses` gives, as its clients read it: a response, its items, its usage. Data alone; it makes none."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from server.http.schema import Summary

ItemStatus = Literal["in_progress", "completed", "incomplete"]
CallStatus = Literal["in_progress", "searching", "completed", "failed"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]


class SummaryText(BaseModel):
    type: Literal["summary_text"] = "summary_text"
    text: str = ""


class ReasoningItem(BaseModel):
    """What the policy thought, planned, merged and noted between two searches."""

    id: str
    type: Literal["reasoning"] = "reasoning"
    summary: list[SummaryText] = Field(default_factory=list[SummaryText])
    status: ItemStatus = "in_progress"


class SearchedPage(BaseModel):
    type: Literal["url"] = "url"
    url: str


class SearchAction(BaseModel):
    type: Literal["search"] = "search"
    query: str
    queries: list[str]
    sources: list[SearchedPage] = Field(default_factory=list[SearchedPage])


class SearchItem(BaseModel):
    """One round of searches."""

    id: str
    type: Literal["web_search_call"] = "web_search_call"
    status: CallStatus = "in_progress"
    action: SearchAction


class UrlCitation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url: str
    title: str
    start_index: int
    end_index: int


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str = ""
    annotations: list[UrlCitation] = Field(default_factory=list[UrlCitation])
    logprobs: list[float] = Field(default_factory=list[float], max_length=0, description="Always empty.")


class MessageItem(BaseModel):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: ItemStatus = "in_progress"
    content: list[OutputText] = Field(default_factory=list[OutputText])


Item = Annotated[ReasoningItem | SearchItem | MessageItem, Field(discriminator="type")]


class InputDetails(BaseModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputDetails(BaseModel):
    reasoning_tokens: int


class ResponseUsage(BaseModel):
    input_tokens: int
    input_tokens_details: InputDetails = InputDetails()
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int
    num_search_queries: int


class ResponseFailure(BaseModel):
    code: Literal["server_error"] = "server_error"
    message: str


class IncompleteDetails(BaseModel):
    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ReasoningSettings(BaseModel):
    effort: str | None = None
    summary: str | None = None


class TextFormat(BaseModel):
    type: Literal["text"] = "text"


class TextSettings(BaseModel):
    format: TextFormat = TextFormat()


class DeletedResponse(BaseModel):
    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class ResponseObject(BaseModel):
    """A response. The members that every one of OpenAI's has, and `cairn`: evidence and timings."""

    id: str
    object: Literal["response"] = "response"
    created_at: float
    completed_at: float | None = None
    status: ResponseStatus = "in_progress"
    background: bool = False
    error: ResponseFailure | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    model: str
    output: list[Item] = Field(default_factory=list[Item])
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    reasoning: ReasoningSettings = ReasoningSettings()
    store: bool = Field(default=False, description="Whether it can be retrieved by its id later.")
    temperature: float | None = None
    text: TextSettings = TextSettings()
    tool_choice: Literal["auto"] = "auto"
    tools: list[str] = Field(default_factory=list[str], max_length=0, description="Always empty: the server searches.")
    top_p: float | None = None
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict[str, str])
    citations: list[str] | None = Field(default=None, description="Addresses; `[n]` in the text is the n-th.")
    cairn: Summary | None = None
