"""What a client of `/v1/evidence` sends and gets: RSTool's arguments and bundle, and who is to answer from it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agent.rstool import Downstream, EvidenceBundle, ToolArguments
from agent.sanitize.strict import Chars, Strict


class AnswerWith(Strict):
    """Which model is to answer from the evidence."""

    model: Annotated[str, Chars(200)] = Field(
        description="One of those that the operator of this server allows.", min_length=1
    )


class EvidenceRequest(ToolArguments):
    """The arguments of the tool, and how the answer is to come."""

    stream: bool | None = Field(default=None, description="Whether steps are told as they happen, the bundle last.")
    answer_with: AnswerWith | None = Field(
        default=None, description="Let another model answer from the evidence; its answer comes beside ours."
    )


class EvidenceReply(BaseModel):
    """The evidence. Of a stream, this is the last frame before `[DONE]`."""

    object: Literal["evidence"] = "evidence"
    id: str = Field(description="Of the run, as in the bundle.")
    bundle: EvidenceBundle
    text: str = Field(
        description="The same for a model to read: labelled as untrusted, sanitized, between marks no one can forge."
    )
    downstream: Downstream | None = Field(
        default=None, description="What the other model made of it, where one was asked for."
    )


class EvidenceStep(BaseModel):
    """A frame of a stream before the evidence: that the search began (`step` is null), or one step of it."""

    object: Literal["evidence.step"] = "evidence.step"
    id: str
    step: dict[str, Any] | None = None


class ToolList(BaseModel):
    """The tool in the forms of function-calling APIs and of MCP clients."""

    object: Literal["list"] = "list"
    tools: list[dict[str, Any]] = Field(description="For `tools` of a chat completion.")
    mcp_tools: list[dict[str, Any]] = Field(description="What `tools/list` of `/mcp` gives.")
