"""What a client of `/v1/responses` sends, reduced to a question with its earlier turns."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import Discriminator, Field, Tag, model_validator

from agent.sanitize.strict import Chars
from server.chat.request import ChatQuestion, Effort, Incoming, Message, Metadata, Name, RunOptions, Text, read_question
from server.http.errors import bad_request
from server.libraries.filters import AnyFilter, FileFilter, either
from server.libraries.manager import AttributeFilters

_NO_ITEMS: Final = "Items are not stored by id here; send the earlier items in full."


class MessageIn(Message):
    """One turn, as a client writes it or as an earlier response gave it."""

    type: Literal["message"] = "message"


class OtherItem(Incoming):
    """Reasoning, calls and their outputs, of any kind that there is: nothing that a question can be read from."""

    type: Name


def _kind(item: Any) -> str:
    given = cast(Mapping[str, Any], item).get("type") if isinstance(item, Mapping) else getattr(item, "type", None)
    return "message" if given in (None, "message") else "other"


InputItem = Annotated[Annotated[MessageIn, Tag("message")] | Annotated[OtherItem, Tag("other")], Discriminator(_kind)]


def _form(given: Any) -> str:
    return "text" if isinstance(given, str) else "items"


Input = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[InputItem], Field(fail_fast=True, max_length=5_000), Tag("items")],
    Discriminator(_form),
]


class ReasoningOptions(Incoming):
    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class FileSearch(Incoming):
    type: Literal["file_search"]
    vector_store_ids: Annotated[list[Name], Field(fail_fast=True, max_length=32)]
    filters: FileFilter | None = Field(default=None, description="Which files of these, by their attributes.")


class OtherTool(Incoming):
    """A tool of the client's or of OpenAI's: the server searches by itself, and calls none."""

    type: Name


def _tool(given: Any) -> str:
    kind = cast(Mapping[str, Any], given).get("type") if isinstance(given, Mapping) else getattr(given, "type", None)
    return "file_search" if kind == "file_search" else "other"


Tool = Annotated[Annotated[FileSearch, Tag("file_search")] | Annotated[OtherTool, Tag("other")], Discriminator(_tool)]


class ResponseRequest(RunOptions):
    """The parameters that this server reads; all others of OpenAI's are taken and ignored."""

    input: Input
    instructions: Text | None = Field(default=None, description="Only `cairn-chat` follows them.")
    previous_response_id: Name | None = Field(default=None, description="Of a kept response that this one follows up.")
    store: bool | None = Field(default=None, description="False: nothing of it is kept, and its id means nothing.")
    background: bool | None = Field(
        default=None, description="Answer at once with a response that goes on; ask for it by its id, or cancel it."
    )
    tools: Annotated[list[Tool], Field(fail_fast=True, max_length=128)] | None = Field(
        default=None, description="`file_search` names libraries, as `libraries` does; others mean nothing."
    )
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning: ReasoningOptions | None = None
    stream: bool | None = False
    metadata: Metadata | None = None
    user: Annotated[str, Chars(512)] | None = None

    @model_validator(mode="after")
    def _search_named_files(self) -> Self:
        named = [id for tool in self.tools or () if isinstance(tool, FileSearch) for id in tool.vector_store_ids]
        if named:
            self.libraries = [*(self.libraries or ()), *named]
        return self

    @property
    def file_filters(self) -> AttributeFilters:
        """A library that several tools name is searched for what one of them wants."""
        found: dict[str, list[AnyFilter | None]] = {}
        for tool in self.tools or ():
            for id in tool.vector_store_ids if isinstance(tool, FileSearch) else ():
                found.setdefault(id, []).append(tool.filters if isinstance(tool, FileSearch) else None)
        return {id: either([one for one in each if one]) for id, each in found.items() if None not in each}

    @property
    def effort(self) -> Effort | None:
        return self.reasoning.effort if self.reasoning else None

    @property
    def most_tokens(self) -> int | None:
        return self.max_output_tokens


def read_request(request: ResponseRequest, *, before: Sequence[Message] = (), most_chars: int) -> ChatQuestion:
    """The question of a request.

    Args:
        request: what a client sent.
        before: the turns of the response that it follows up.
        most_chars: of the question, and of the turns before it.

    Raises:
        ApiError: there is no question, one that cannot be taken, or an item that would have to be kept here.
    """
    if len(request.instructions or "") > most_chars:
        raise bad_request(
            f"The instructions have {len(request.instructions or ''):,} characters; the limit is {most_chars:,}.",
            param="instructions",
            code="instructions_too_long",
        )
    items = [MessageIn(role="user", content=request.input)] if isinstance(request.input, str) else request.input
    if any(isinstance(item, OtherItem) and item.type == "item_reference" for item in items):
        raise bad_request(_NO_ITEMS, param="input", code="item_not_found")
    said: list[Message] = [*before, *(item for item in items if isinstance(item, MessageIn))]
    if request.instructions:
        said.insert(0, Message(role="system", content=request.instructions))
    return read_question(said, most_chars=most_chars, param="input")
